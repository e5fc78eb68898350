//! Subtraction.

use stridegrad_core::{DType, Error, ErrorKind, Result};

use super::elementwise::{binary, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static SUB("sub") = |[a, b], []| a - b;
}

pub(crate) fn sub(a: &Operand, b: &Operand) -> Result<Tensor> {
    let dtype = promoted(&[a, b]);
    if dtype == DType::Bool {
        return Err(Error::new(ErrorKind::DType, "sub", "subtraction of two bool tensors is not supported")
            .hint("use logical_xor, or convert with to_dtype()"));
    }
    binary(
        &SUB,
        a,
        b,
        dtype,
        dtype,
        |_| {},
        |ctx, g| Ok([Some(g.clone()), ctx.needs(1).then(|| g.try_neg()).transpose()?]),
    )
}

faces! {
    /// `self - other`, broadcast and promoted as PyTorch does; also the `-` operator. Refuses two bools.
    pub fn sub | try_sub(&self, other: impl Into<Operand>) -> Tensor {
        sub(&self.into(), &other.into())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sub", || binary_samples(Domain::Any, Domain::Any, |a, b| a.try_sub(b), |a, b| a - b))
        .refusal("two bools", ErrorKind::DType, || {
            let b = Tensor::try_full([2], true)?;
            b.try_sub(&b)
        })
}
