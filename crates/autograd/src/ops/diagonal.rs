//! Diagonals as a view.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The diagonal of dims `dim1` and `dim2`, `offset` above (or below) the main one, as the last dim: a view.
    /// (NumPy's is read-only; this one can be written.)
    pub fn diagonal | try_diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        self.make_view("diagonal", &move |l| l.diagonal(offset, dim1, dim2))
    }
}
