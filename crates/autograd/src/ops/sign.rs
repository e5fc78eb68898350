//! The sign.

use super::elementwise::{no_bool, step};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SIGN("sign") = |[x], []| E::select(x.gt(E::lit(0.0)), E::lit(1.0), E::select(x.lt(E::lit(0.0)), E::lit(-1.0), E::lit(0.0)));
}

faces! {
    /// 1, -1 or 0 as `self` is positive, negative or neither (0 and NaN), in the tensor's own dtype. The gradient is 0.
    pub fn sign | try_sign(&self) -> Tensor {
        no_bool("sign", self.dtype(), "convert it with to_dtype()")?;
        step(&SIGN, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sign", || {
        unary_samples(Domain::AwayFromZero, |x| x.try_sign(), |x| if x == 0.0 { 0.0 } else { x.signum() })
            .into_iter()
            .map(Sample::numbers)
            .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_sign())
}
