//! Dims in another order: `permute`, `transpose`, `t`, `movedim`.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The dims in the order given: a view. Refuses a repeated dim or a wrong number of them.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3, 4, 4]).permute([0, 2, 3, 1]).strides(), [48, 4, 1, 16]);
    /// ```
    pub fn permute | try_permute(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("permute", &move |l| l.permute(&dims))
    }

    /// Two dims exchanged: a view.
    pub fn transpose | try_transpose(&self, a: i64, b: i64) -> Tensor {
        self.make_view("transpose", &move |l| l.transpose(a, b))
    }

    /// The transposed matrix, a view; 0- and 1-dim tensors are returned as they are, higher ranks refused.
    pub fn t | try_t(&self) -> Tensor {
        self.make_view("t", &|l| l.t())
    }

    /// The dims `source` moved to the places `destination`, the others in their order: a view.
    pub fn movedim | try_movedim(&self, source: impl IntoDims, destination: impl IntoDims) -> Tensor {
        let (source, destination) = (source.into_dims(), destination.into_dims());
        self.make_view("movedim", &move |l| l.movedim(&source, &destination))
    }
}
