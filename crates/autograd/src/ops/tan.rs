//! The tangent.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static TAN("tan") = |[x], []| x.tan();
    static TAN_GRAD("tan_backward") = |[g, y], []| g * (E::lit(1.0) + y * y);
}

faces! {
    /// The tangent of radians, elementwise; integers give `f32`. Saves its result for backward.
    pub fn tan | try_tan(&self) -> Tensor {
        unary(&TAN, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &TAN_GRAD, &[], &[g, &y], || g.try_mul(&y.try_mul(&y)?.try_add(1.0)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("tan", || unary_samples(Domain::Between(-1.2, 1.2), |x| x.try_tan(), f64::tan))
}
