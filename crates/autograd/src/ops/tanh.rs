//! The hyperbolic tangent.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static TANH("tanh") = |[x], []| x.tanh();
    static TANH_GRAD("tanh_backward") = |[g, y], []| g * (E::lit(1.0) - y * y);
}

faces! {
    /// The hyperbolic tangent, elementwise; integers give `f32`. Saves its result for backward.
    pub fn tanh | try_tanh(&self) -> Tensor {
        unary(&TANH, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &TANH_GRAD, &[], &[g, &y], || g.try_mul(&one_minus(&y.try_mul(&y)?)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("tanh", || unary_samples(Domain::Any, |x| x.try_tanh(), f64::tanh))
}
