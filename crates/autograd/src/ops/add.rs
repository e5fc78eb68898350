//! Addition.

use stridegrad_core::{DType, exec};

use super::elementwise::{binary, check_in_place_dtype, device_of, promoted};
use crate::faces::faces;
use crate::inplace::in_place;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    pub(crate) static ADD("add") = |[a, b], []| a + b;
    static OR("add") = |[a, b], []| E::from_mask(E::or(a.ne(E::lit(0.0)), b.ne(E::lit(0.0))));
}

/// Addition of bools is "or", as in PyTorch.
fn kernel(dtype: DType) -> &'static stridegrad_core::kernel::MapKernel {
    if dtype == DType::Bool { &OR } else { &ADD }
}

faces! {
    /// `self + other`, broadcast and promoted as PyTorch does; also the `+` operator.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1i32, 2], [2]);
    /// assert_eq!((&x + 0.5).to_vec::<f32>(), [1.5, 2.5]);
    /// ```
    pub fn add | try_add(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = promoted(&[&a, &b]);
        binary(kernel(dtype), &a, &b, dtype, dtype, |_| {}, |_, g| Ok([Some(g.clone()), Some(g.clone())]))
    }

    /// Adds `other` into this tensor, in place. The destination is never broadcast.
    pub fn add_ | try_add_(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = promoted(&[&a, &b]);
        check_in_place_dtype("add_", dtype, self.dtype())?;
        let b = b.resolve(dtype, device_of(&[&a]))?;
        in_place("add_", self, &[&b], |_| Ok(()),
            |out| exec::map_into(kernel(dtype), dtype, &[], out, &[out, b.array()]),
            |ctx, g| {
                let gb = if ctx.needs(1) { ctx.reduce_to(1, g.clone())? } else { None };
                Ok(vec![Some(g.clone()), gb])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("add", || {
        binary_samples(Domain::Any, Domain::Any, |a, b| a.try_add(b), |a, b| a + b)
            .into_iter()
            .map(|s| s.in_place(|x, others| x.try_add_(&others[0]).map(drop)))
            .collect()
    })
    .refusal("shapes that do not broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_add(&Tensor::try_ones([4])?)
    })
}
