//! Negation.

use stridegrad_core::{DType, Error, ErrorKind};

use super::elementwise::{Save, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static NEG("neg") = |[x], []| -x;
}

faces! {
    /// `-self`; also the unary `-` operator. Refuses bools.
    pub fn neg | try_neg(&self) -> Tensor {
        if self.dtype() == DType::Bool {
            return Err(Error::new(ErrorKind::DType, "neg", "negation of a bool tensor is not supported")
                .hint("use logical_not"));
        }
        unary_as(&NEG, self, &[], self.dtype(), Save::Nothing, |_, g| g.try_neg())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("neg", || unary_samples(Domain::Any, |x| x.try_neg(), |x| -x)).refusal(
        "a bool",
        ErrorKind::DType,
        || Tensor::try_full([2], true)?.try_neg(),
    )
}
