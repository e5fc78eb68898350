//! Printing tensors.

use std::fmt;

use crate::Tensor;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} strides {:?}", self.dtype(), self.sizes(), self.strides())?;
        if let Some(op) = self.grad_fn() {
            write!(f, ", grad_fn={op}")?;
        } else if self.requires_grad() {
            write!(f, ", requires_grad")?;
        }
        write!(f, ")")
    }
}
