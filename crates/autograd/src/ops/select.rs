//! One index of a dim.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The sub-tensor at `index` of `dim`, without that dim: a view. Negative indices count from the end; one out of
    /// range is refused.
    pub fn select | try_select(&self, dim: i64, index: i64) -> Tensor {
        self.make_view("select", &move |l| l.select(dim, index))
    }
}
