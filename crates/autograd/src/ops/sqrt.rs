//! The square root.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SQRT("sqrt") = |[x], []| x.sqrt();
    static SQRT_GRAD("sqrt_backward") = |[g, y], []| g / (y + y);
}

faces! {
    /// The square root, elementwise; integers give `f32`, negative numbers NaN. The gradient at 0 is infinite. Saves its result
    /// for backward.
    pub fn sqrt | try_sqrt(&self) -> Tensor {
        unary(&SQRT, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &SQRT_GRAD, &[], &[g, &y], || g.try_div(&y.try_mul(2.0)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sqrt", || unary_samples(Domain::Positive, |x| x.try_sqrt(), f64::sqrt))
}
