//! The natural logarithm.

use super::elementwise::{Save, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static LOG("log") = |[x], []| x.ln();
}

faces! {
    /// The natural logarithm, elementwise; integers give `f32`. Of 0 it is minus infinity, of a negative number NaN.
    pub fn log | try_log(&self) -> Tensor {
        unary(&LOG, self, &[], Save::Input, |ctx, g| g.try_div(&ctx.input(0)?))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("log", || unary_samples(Domain::Positive, |x| x.try_log(), f64::ln))
}
