//! The arc tangent.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ATAN("atan") = |[x], []| x.atan();
    static ATAN_GRAD("atan_backward") = |[g, x], []| g / (x * x + E::lit(1.0));
}

faces! {
    /// The arc tangent in radians, elementwise; integers give `f32`.
    pub fn atan | try_atan(&self) -> Tensor {
        unary(&ATAN, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ATAN_GRAD, &[], &[g, &x], || g.try_div(x.try_square()?.try_add(1.0)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("atan", || unary_samples(Domain::Any, |x| x.try_atan(), f64::atan))
}
