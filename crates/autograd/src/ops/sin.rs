//! The sine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SIN("sin") = |[x], []| x.sin();
    static SIN_GRAD("sin_backward") = |[g, x], []| g * x.cos();
}

faces! {
    /// The sine of radians, elementwise; integers give `f32`.
    pub fn sin | try_sin(&self) -> Tensor {
        unary(&SIN, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SIN_GRAD, &[], &[g, &x], || g.try_mul(&x.try_cos()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sin", || unary_samples(Domain::Any, |x| x.try_sin(), f64::sin))
}
