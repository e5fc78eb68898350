//! The error function.

use std::f64::consts::FRAC_2_SQRT_PI;

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ERF("erf") = |[x], []| x.erf();
    static ERF_GRAD("erf_backward") = |[g, x], []| g * E::lit(FRAC_2_SQRT_PI) * (-x * x).exp();
}

faces! {
    /// The error function, elementwise; integers give `f32`.
    pub fn erf | try_erf(&self) -> Tensor {
        unary(&ERF, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ERF_GRAD, &[], &[g, &x], || {
                g.try_mul(&x.try_mul(&x)?.try_neg()?.try_exp()?.try_mul(FRAC_2_SQRT_PI)?)
            })
        })
    }
}

/// The Maclaurin series: good to 1e-13 for |x| <= 2.
#[cfg(feature = "testkit")]
pub(crate) fn reference(x: f64) -> f64 {
    let (mut power, mut sum) = (x, x);
    for n in 1..60 {
        power *= -x * x / n as f64;
        sum += power / (2 * n + 1) as f64;
    }
    FRAC_2_SQRT_PI * sum
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("erf", || unary_samples(Domain::Any, |x| x.try_erf(), reference))
}
