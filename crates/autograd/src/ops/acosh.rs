//! The inverse hyperbolic cosine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ACOSH("acosh") = |[x], []| x.acosh();
    static ACOSH_GRAD("acosh_backward") = |[g, x], []| g / (x * x - E::lit(1.0)).sqrt();
}

faces! {
    /// The inverse hyperbolic cosine, elementwise; NaN below 1; integers give `f32`.
    pub fn acosh | try_acosh(&self) -> Tensor {
        unary(&ACOSH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ACOSH_GRAD, &[], &[g, &x], || g.try_mul(x.try_square()?.try_sub(1.0)?.try_rsqrt()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("acosh", || unary_samples(Domain::Between(1.25, 2.0), |x| x.try_acosh(), f64::acosh))
}
