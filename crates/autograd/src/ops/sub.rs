//! Subtraction.

use stridegrad_core::{DType, Error, ErrorKind, Result, exec};

use super::elementwise::{binary, check_in_place_dtype, device_of, promoted};
use crate::faces::faces;
use crate::inplace::in_place;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static SUB("sub") = |[a, b], []| a - b;
}

/// The dtype of a difference; two bools have none.
fn dtype_of(op: &'static str, a: &Operand, b: &Operand) -> Result<DType> {
    match promoted(&[a, b]) {
        DType::Bool => {
            Err(Error::new(ErrorKind::DType, op, "subtraction of two bool tensors is not supported")
                .hint("use logical_xor, or convert with to_dtype()"))
        }
        dtype => Ok(dtype),
    }
}

pub(crate) fn sub(a: &Operand, b: &Operand) -> Result<Tensor> {
    let dtype = dtype_of("sub", a, b)?;
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

    /// Subtracts `other` from this tensor, in place; also the `-=` operator. The destination is never broadcast.
    pub fn sub_ | try_sub_(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = dtype_of("sub_", &a, &b)?;
        check_in_place_dtype("sub_", dtype, self.dtype())?;
        let b = b.resolve(dtype, device_of(&[&a]))?;
        in_place("sub_", self, &[&b], |_| Ok(()),
            |out| exec::map_into(&SUB, dtype, &[], out, &[out, b.array()]),
            |ctx, g| {
                let gb = if ctx.needs(1) { ctx.reduce_to(1, g.try_neg()?)? } else { None };
                Ok(vec![Some(g.clone()), gb])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sub", || {
        binary_samples(Domain::Any, Domain::Any, |a, b| a.try_sub(b), |a, b| a - b)
            .into_iter()
            .map(|s| s.in_place(|x, others| x.try_sub_(&others[0]).map(drop)))
            .collect()
    })
    .refusal("two bools", ErrorKind::DType, || {
        let b = Tensor::try_full([2], true)?;
        b.try_sub(&b)
    })
}
