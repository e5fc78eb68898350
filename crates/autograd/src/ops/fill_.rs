//! Writing one value everywhere.

use stridegrad_core::{Scalar, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::inplace::in_place;

faces! {
    /// Writes `value` into every element, converted to the dtype. Returns the tensor itself.
    pub fn fill_ | try_fill_(&self, value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        in_place("fill_", self, &[], |_| Ok(()), |out| exec::fill(out, value), |_, _| Ok(vec![None]))?;
        Ok(self.clone())
    }

    /// Writes zeros. Returns the tensor itself.
    pub fn zero_ | try_zero_(&self) -> Tensor {
        self.try_fill_(0.0)
    }
}
