//! Piecewise linear activations between two bounds.

use stridegrad_core::{Error, ErrorKind};

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// `self` limited to `min..=max`, elementwise: the activation, whose bounds must be in order. NaN stays. The
    /// gradient at a bound is 0. Integers give `f32`; [`Tensor::clamp`] is the function of any bounds.
    pub fn hardtanh | try_hardtanh(&self, min: f64, max: f64) -> Tensor {
        if min.is_nan() || max.is_nan() || min > max {
            return Err(Error::new(ErrorKind::Argument, "hardtanh",
                format!("the lower bound {min} must not be above the upper one, {max}")));
        }
        self.try_clamp(min, max)
    }

    /// `min(max(self, 0), 6)`, elementwise; NaN stays; the gradient at 0 and at 6 is 0.
    ///
    /// Source: Howard et al., "MobileNets", 2017.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.0f32, 2.0, 7.0], [3]).relu6().to_vec::<f32>(), [0.0, 2.0, 6.0]);
    /// ```
    pub fn relu6 | try_relu6(&self) -> Tensor {
        self.try_clamp(0, 6)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("hardtanh", || {
        // Gradients are checked off the bounds, which are no values of the domain.
        let mut all =
            unary_samples(Domain::AwayFromZero, |x| x.try_hardtanh(-0.1, 2.5), |x| x.clamp(-0.1, 2.5));
        all.extend(unary_samples(Domain::AwayFromZero, |x| x.try_relu6(), |x| x.clamp(0.0, 6.0)));
        all
    })
    .refusal("bounds out of order", ErrorKind::Argument, || Tensor::try_ones([2])?.try_hardtanh(1.0, -1.0))
    .refusal("a bound of NaN", ErrorKind::Argument, || Tensor::try_ones([2])?.try_hardtanh(f64::NAN, 1.0))
}
