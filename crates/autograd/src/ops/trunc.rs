//! Rounding towards zero.

use super::elementwise::{no_bool, step};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static TRUNC("trunc") = |[x], []| x.trunc();
}

faces! {
    /// The integer part, elementwise, in the tensor's own dtype. The gradient is 0.
    pub fn trunc | try_trunc(&self) -> Tensor {
        no_bool("trunc", self.dtype(), "convert it with to_dtype()")?;
        step(&TRUNC, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("trunc", || {
        unary_samples(
            Domain::Between(-0.9, -0.1),
            |x| x.try_trunc(),
            |x| if x < 0.0 { x.ceil() } else { x.floor() },
        )
        .into_iter()
        .map(Sample::numbers)
        .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_trunc())
}
