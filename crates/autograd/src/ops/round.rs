//! Rounding to the nearest integer.

use super::elementwise::{no_bool, step};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ROUND("round") = |[x], []| x.round();
}

faces! {
    /// The nearest integer, elementwise, in the tensor's own dtype; halves go to the even one. The gradient is 0.
    pub fn round | try_round(&self) -> Tensor {
        no_bool("round", self.dtype(), "convert it with to_dtype()")?;
        step(&ROUND, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("round", || {
        unary_samples(
            Domain::Between(0.6, 1.4),
            |x| x.try_round(),
            |x| {
                let f = x.floor();
                if x - f < 0.5 { f } else { f + 1.0 }
            },
        )
        .into_iter()
        .map(Sample::numbers)
        .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_round())
}
