//! The scaled exponential linear unit.

use super::elementwise::{Save, fused, linear, unary};
use crate::Tensor;
use crate::faces::faces;

/// The fixed point's constants: with them activations keep mean 0 and variance 1.
const ALPHA: f64 = 1.673_263_242_354_377_2;
const SCALE: f64 = 1.050_700_987_355_480_5;

stridegrad_cpu::map_kernel! {
    static SELU("selu") = |[x], []| {
        E::lit(SCALE) * E::select(x.gt(E::lit(0.0)), x, E::lit(ALPHA) * x.expm1())
    };
    static SELU_GRAD("selu_backward") = |[g, x], []| {
        g * E::lit(SCALE) * E::select(x.gt(E::lit(0.0)), E::lit(1.0), E::lit(ALPHA) * x.exp())
    };
    static POSITIVE_PART("selu_positive") = |[g, x], []| E::select(x.gt(E::lit(0.0)), g, E::lit(0.0));
    static OTHER_PART("selu_other") = |[g, x], []| E::select(x.gt(E::lit(0.0)), E::lit(0.0), g);
}

faces! {
    /// `scale * self` where it is positive, else `scale * alpha (e^self - 1)`, with the constants of the source;
    /// integers give `f32`.
    ///
    /// Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    pub fn selu | try_selu(&self) -> Tensor {
        unary(&SELU, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SELU_GRAD, &[], &[g, &x], || {
                // The exponential of the other part alone: that of a large positive value would overflow.
                let slope = linear(&OTHER_PART, &[], &x, &[&x])?.try_exp()?.try_mul(ALPHA)?;
                let other = linear(&OTHER_PART, &[], g, &[&x])?.try_mul(&slope)?;
                linear(&POSITIVE_PART, &[], g, &[&x])?.try_add(other)?.try_mul(SCALE)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("selu", || {
        unary_samples(
            Domain::AwayFromZero,
            |x| x.try_selu(),
            |x| 1.0507009873554805 * if x > 0.0 { x } else { 1.6732632423543772 * (x.exp() - 1.0) },
        )
    })
}
