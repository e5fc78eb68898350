//! The hyperbolic sine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SINH("sinh") = |[x], []| x.sinh();
    static SINH_GRAD("sinh_backward") = |[g, x], []| g * x.cosh();
}

faces! {
    /// The hyperbolic sine, elementwise; integers give `f32`.
    pub fn sinh | try_sinh(&self) -> Tensor {
        unary(&SINH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SINH_GRAD, &[], &[g, &x], || g.try_mul(x.try_cosh()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sinh", || unary_samples(Domain::Any, |x| x.try_sinh(), f64::sinh))
}
