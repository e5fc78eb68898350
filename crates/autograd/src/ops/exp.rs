//! The exponential function.

use super::elementwise::{Save, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static EXP("exp") = |[x], []| x.exp();
}

faces! {
    /// `e^self`, elementwise; integers give `f32`. Saves its result for backward.
    pub fn exp | try_exp(&self) -> Tensor {
        unary(&EXP, self, &[], Save::Output, |ctx, g| g.try_mul(&ctx.output(0)?))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("exp", || unary_samples(Domain::Any, |x| x.try_exp(), f64::exp))
}
