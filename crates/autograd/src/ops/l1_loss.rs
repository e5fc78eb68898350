//! The absolute error.

use super::reduction::{Reduction, check_target};
use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The absolute differences `|self - target|`, reduced; the gradient where they are equal is 0. Sizes must be equal.
    ///
    /// ```
    /// use stridegrad_autograd::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, -3.0], [2]);
    /// assert_eq!(x.l1_loss(&Tensor::zeros([2]), Reduction::Sum).item::<f32>(), 4.0);
    /// ```
    pub fn l1_loss | try_l1_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        check_target("l1_loss", self, target)?;
        reduction.apply(self.try_sub(target)?.try_abs()?)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use super::reduction::loss_samples;
    use crate::spec::*;
    OpSpec::new("l1_loss", || {
        // Disjoint, to stay away from the kink.
        let domains = [Domain::Between(1.0, 2.0), Domain::Between(-2.0, 0.5)];
        loss_samples(domains, |x, t, r| x.try_l1_loss(t, r), |x, t| (x - t).abs())
    })
    .refusal("sizes that would broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([3, 1])?.try_l1_loss(&Tensor::try_ones([3])?, Reduction::Mean)
    })
}
