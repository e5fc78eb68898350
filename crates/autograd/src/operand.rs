//! What stands on the other side of a binary op: a tensor or a Rust number.

use stridegrad_core::{DType, Device, Layout, Result, Scalar, TypeArg, exec};

use crate::Tensor;

/// A tensor or a Rust number, by promotion's rules.
#[derive(Clone)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A number: its category counts for promotion, its width does not.
    Scalar(Scalar),
}

impl From<Tensor> for Operand {
    fn from(t: Tensor) -> Operand {
        Operand::Tensor(t)
    }
}

impl From<&Tensor> for Operand {
    fn from(t: &Tensor) -> Operand {
        Operand::Tensor(t.clone())
    }
}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for Operand { fn from(v: $t) -> Operand { Operand::Scalar(v.into()) } }
    )*};
}
from!(f64, f32, i64, i32, i16, i8, u8, usize, u32, isize, bool, Scalar);

impl Operand {
    /// Its bucket for promotion.
    pub fn type_arg(&self) -> TypeArg {
        match self {
            Operand::Tensor(t) => t.type_arg(),
            Operand::Scalar(s) => TypeArg::Wrapped(*s),
        }
    }

    /// The tensor itself, or a 0-dim tensor of the number: in `dtype` (what the op computes in), on `device`.
    pub(crate) fn resolve(&self, dtype: DType, device: Device) -> Result<Tensor> {
        match self {
            Operand::Tensor(t) => Ok(t.clone()),
            Operand::Scalar(s) => Tensor::of_scalar(*s, exec::compute_dtype(dtype), device),
        }
    }
}

impl Tensor {
    /// This tensor's bucket for promotion.
    pub fn type_arg(&self) -> TypeArg {
        match self.dim() {
            0 => TypeArg::ZeroDim(self.dtype()),
            _ => TypeArg::Dimensioned(self.dtype()),
        }
    }

    pub(crate) fn of_scalar(s: Scalar, dtype: DType, device: Device) -> Result<Tensor> {
        Ok(Tensor::from_array(exec::full(Layout::scalar(), s, dtype, device)?))
    }
}
