//! One over the tensor.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static RECIPROCAL("reciprocal") = |[x], []| E::lit(1.0) / x;
    static RECIPROCAL_GRAD("reciprocal_backward") = |[g, y], []| -g * y * y;
}

faces! {
    /// `1 / self`, elementwise; integers give `f32`. Saves its result for backward.
    pub fn reciprocal | try_reciprocal(&self) -> Tensor {
        unary(&RECIPROCAL, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &RECIPROCAL_GRAD, &[], &[g, &y], || g.try_mul(&y.try_mul(&y)?)?.try_neg())
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("reciprocal", || unary_samples(Domain::AwayFromZero, |x| x.try_reciprocal(), |x| 1.0 / x))
}
