//! Dims of size 1 taken away or put in.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Without its dims of size 1: a view.
    pub fn squeeze | try_squeeze(&self) -> Tensor {
        self.make_view("squeeze", &|l| l.squeeze(None))
    }

    /// Without those of `dims` that have size 1: a view.
    pub fn squeeze_dims | try_squeeze_dims(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("squeeze", &move |l| l.squeeze(Some(&dims)))
    }

    /// With a new dim of size 1 before place `dim` (negative: counted from the end of the result): a view.
    pub fn unsqueeze | try_unsqueeze(&self, dim: i64) -> Tensor {
        self.make_view("unsqueeze", &move |l| l.unsqueeze(dim))
    }
}
