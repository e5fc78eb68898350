//! Dims walked backwards, as a view.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The given dims walked backwards: a view with negative strides, as NumPy's `flip` (PyTorch's copies).
    pub fn reversed | try_reversed(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("reversed", &move |l| l.reversed(&dims))
    }
}
