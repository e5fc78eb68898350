//! Rounding down.

use super::elementwise::{no_bool, step};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static FLOOR("floor") = |[x], []| x.floor();
}

faces! {
    /// The largest integer not above, elementwise, in the tensor's own dtype. The gradient is 0.
    pub fn floor | try_floor(&self) -> Tensor {
        no_bool("floor", self.dtype(), "convert it with to_dtype()")?;
        step(&FLOOR, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("floor", || {
        unary_samples(Domain::Between(-0.9, -0.1), |x| x.try_floor(), f64::floor)
            .into_iter()
            .map(Sample::numbers)
            .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_floor())
}
