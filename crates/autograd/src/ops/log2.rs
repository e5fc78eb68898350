//! The base-2 logarithm.

use super::elementwise::{Save, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static LOG2("log2") = |[x], []| x.log2();
}

faces! {
    /// The base-2 logarithm, elementwise; integers give `f32`.
    pub fn log2 | try_log2(&self) -> Tensor {
        unary(&LOG2, self, &[], Save::Input, |ctx, g| g.try_div(&ctx.input(0)?.try_mul(std::f64::consts::LN_2)?))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("log2", || unary_samples(Domain::Positive, |x| x.try_log2(), f64::log2))
}
