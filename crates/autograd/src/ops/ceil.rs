//! Rounding up.

use super::elementwise::{no_bool, step};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static CEIL("ceil") = |[x], []| x.ceil();
}

faces! {
    /// The smallest integer not below, elementwise, in the tensor's own dtype. The gradient is 0.
    pub fn ceil | try_ceil(&self) -> Tensor {
        no_bool("ceil", self.dtype(), "convert it with to_dtype()")?;
        step(&CEIL, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("ceil", || {
        unary_samples(Domain::Between(0.1, 0.9), |x| x.try_ceil(), f64::ceil)
            .into_iter()
            .map(Sample::numbers)
            .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_ceil())
}
