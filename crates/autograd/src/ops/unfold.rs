//! Sliding windows as a view.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Windows of `size` along `dim`, every `step`: the window becomes the last dim. A view whose elements may
    /// overlap; the gradient adds up over the windows an element is in.
    pub fn unfold | try_unfold(&self, dim: i64, size: i64, step: i64) -> Tensor {
        self.make_view("unfold", &move |l| l.unfold(dim, size, step))
    }
}
