//! Ranges of a dim: `slice` and `narrow`.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Elements `start..end` of `dim`, every `step`-th: a view. Bounds are Python's: negative ones count from the
    /// end, and both are clamped. A negative step walks backwards, as in NumPy (PyTorch refuses it).
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(5.0);
    /// assert_eq!(x.slice(0, Some(1), None, 2).to_vec::<f32>(), [1.0, 3.0]);
    /// assert_eq!(x.slice(0, None, None, -1).to_vec::<f32>(), [4.0, 3.0, 2.0, 1.0, 0.0]);
    /// ```
    pub fn slice | try_slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Tensor {
        self.make_view("slice", &move |l| l.slice(dim, start, end, step))
    }

    /// Elements `start..start + length` of `dim`: a view. Out of range is refused, never clamped.
    pub fn narrow | try_narrow(&self, dim: i64, start: i64, length: i64) -> Tensor {
        self.make_view("narrow", &move |l| l.narrow(dim, start, length))
    }
}
