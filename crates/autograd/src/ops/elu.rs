//! The exponential linear unit.

use super::elementwise::{Save, fused, linear, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ELU("elu") = |[x], [alpha]| E::select(x.gt(E::lit(0.0)), x, alpha * x.expm1());
    static ELU_GRAD("elu_backward") = |[g, x], [alpha]| {
        E::select(x.gt(E::lit(0.0)), g, g * alpha * x.exp())
    };
    static POSITIVE_PART("elu_positive") = |[g, x], []| E::select(x.gt(E::lit(0.0)), g, E::lit(0.0));
    static OTHER_PART("elu_other") = |[g, x], []| E::select(x.gt(E::lit(0.0)), E::lit(0.0), g);
}

faces! {
    /// `self` where it is positive, else `alpha (e^self - 1)`; integers give `f32`. The gradient at 0 is `alpha`.
    ///
    /// Source: Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by ELUs", 2015.
    pub fn elu | try_elu(&self, alpha: f64) -> Tensor {
        unary(&ELU, self, &[alpha.into()], Save::Input, move |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ELU_GRAD, &[alpha.into()], &[g, &x], || {
                // The exponential of the other part alone: that of a large positive value would overflow.
                let slope = linear(&OTHER_PART, &[], &x, &[&x])?.try_exp()?.try_mul(alpha)?;
                let other = linear(&OTHER_PART, &[], g, &[&x])?.try_mul(&slope)?;
                linear(&POSITIVE_PART, &[], g, &[&x])?.try_add(other)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("elu", || {
        unary_samples(
            Domain::AwayFromZero,
            |x| x.try_elu(1.5),
            |x| if x > 0.0 { x } else { 1.5 * (x.exp() - 1.0) },
        )
    })
}
