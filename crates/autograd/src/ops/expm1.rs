//! The exponential, less one.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static EXPM1("expm1") = |[x], []| x.expm1();
    static EXPM1_GRAD("expm1_backward") = |[g, y], []| g * (y + E::lit(1.0));
}

faces! {
    /// `e^self - 1`, elementwise, accurate near 0; integers give `f32`. Saves its result for backward.
    pub fn expm1 | try_expm1(&self) -> Tensor {
        unary(&EXPM1, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &EXPM1_GRAD, &[], &[g, &y], || g.try_mul(&y.try_add(1.0)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("expm1", || unary_samples(Domain::Any, |x| x.try_expm1(), f64::exp_m1))
}
