//! The continuously differentiable exponential linear unit.

use stridegrad_core::{Error, ErrorKind};

use super::elementwise::{Save, fused, linear, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static CELU("celu") = |[x], [alpha]| E::select(x.gt(E::lit(0.0)), x, alpha * (x / alpha).expm1());
    static CELU_GRAD("celu_backward") = |[g, x], [alpha]| {
        E::select(x.gt(E::lit(0.0)), g, g * (x / alpha).exp())
    };
    static POSITIVE_PART("celu_positive") = |[g, x], []| E::select(x.gt(E::lit(0.0)), g, E::lit(0.0));
    static OTHER_PART("celu_other") = |[g, x], []| E::select(x.gt(E::lit(0.0)), E::lit(0.0), g);
}

faces! {
    /// `self` where it is positive, else `alpha (e^(self / alpha) - 1)`; integers give `f32`. `alpha` must not be 0.
    ///
    /// Source: Barron, "Continuously Differentiable Exponential Linear Units", 2017.
    pub fn celu | try_celu(&self, alpha: f64) -> Tensor {
        if alpha == 0.0 {
            return Err(Error::new(ErrorKind::Argument, "celu", "alpha cannot be 0"));
        }
        unary(&CELU, self, &[alpha.into()], Save::Input, move |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &CELU_GRAD, &[alpha.into()], &[g, &x], || {
                // The exponential of the other part alone: that of a large positive value would overflow.
                let slope = linear(&OTHER_PART, &[], &x, &[&x])?.try_div(alpha)?.try_exp()?;
                let other = linear(&OTHER_PART, &[], g, &[&x])?.try_mul(&slope)?;
                linear(&POSITIVE_PART, &[], g, &[&x])?.try_add(other)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("celu", || {
        unary_samples(
            Domain::AwayFromZero,
            |x| x.try_celu(1.5),
            |x| if x > 0.0 { x } else { 1.5 * ((x / 1.5).exp() - 1.0) },
        )
    })
    .refusal("alpha 0", ErrorKind::Argument, || Tensor::try_ones([2])?.try_celu(0.0))
}
