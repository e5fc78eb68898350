//! The inverse hyperbolic tangent.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ATANH("atanh") = |[x], []| x.atanh();
    static ATANH_GRAD("atanh_backward") = |[g, x], []| g / (E::lit(1.0) - x * x);
}

faces! {
    /// The inverse hyperbolic tangent, elementwise; NaN outside [-1, 1]; integers give `f32`.
    pub fn atanh | try_atanh(&self) -> Tensor {
        unary(&ATANH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ATANH_GRAD, &[], &[g, &x], || g.try_div(one_minus(&x.try_square()?)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("atanh", || unary_samples(Domain::Between(-0.75, 0.75), |x| x.try_atanh(), f64::atanh))
}
