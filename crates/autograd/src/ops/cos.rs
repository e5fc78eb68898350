//! The cosine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static COS("cos") = |[x], []| x.cos();
    static COS_GRAD("cos_backward") = |[g, x], []| -g * x.sin();
}

faces! {
    /// The cosine of radians, elementwise; integers give `f32`.
    pub fn cos | try_cos(&self) -> Tensor {
        unary(&COS, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &COS_GRAD, &[], &[g, &x], || g.try_mul(&x.try_sin()?)?.try_neg())
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("cos", || unary_samples(Domain::Any, |x| x.try_cos(), f64::cos))
}
