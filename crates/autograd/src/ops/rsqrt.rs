//! One over the square root.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static RSQRT("rsqrt") = |[x], []| E::lit(1.0) / x.sqrt();
    static RSQRT_GRAD("rsqrt_backward") = |[g, y], []| E::lit(-0.5) * g * y * y * y;
}

faces! {
    /// `1 / sqrt(self)`, elementwise; integers give `f32`. Saves its result for backward.
    pub fn rsqrt | try_rsqrt(&self) -> Tensor {
        unary(&RSQRT, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &RSQRT_GRAD, &[], &[g, &y], || g.try_mul(&y.try_mul(&y)?.try_mul(&y)?)?.try_mul(-0.5))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("rsqrt", || unary_samples(Domain::Positive, |x| x.try_rsqrt(), |x| 1.0 / x.sqrt()))
}
