//! The inverse hyperbolic sine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ASINH("asinh") = |[x], []| x.asinh();
    static ASINH_GRAD("asinh_backward") = |[g, x], []| g / (x * x + E::lit(1.0)).sqrt();
}

faces! {
    /// The inverse hyperbolic sine, elementwise; integers give `f32`.
    pub fn asinh | try_asinh(&self) -> Tensor {
        unary(&ASINH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ASINH_GRAD, &[], &[g, &x], || g.try_mul(x.try_square()?.try_add(1.0)?.try_rsqrt()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("asinh", || unary_samples(Domain::Any, |x| x.try_asinh(), f64::asinh))
}
