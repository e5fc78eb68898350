//! Broadcasting as a view.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Dims of size 1 repeated to `sizes` without a copy (stride 0); -1 keeps a dim; new dims may lead.
    pub fn expand | try_expand(&self, sizes: impl IntoDims) -> Tensor {
        let sizes = sizes.into_dims();
        self.make_view("expand", &move |l| l.expand(&sizes))
    }

    /// As [`Tensor::expand`], to the sizes of another tensor.
    pub fn expand_as | try_expand_as(&self, other: &Tensor) -> Tensor {
        self.try_expand(other.sizes())
    }
}
