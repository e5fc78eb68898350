//! The absolute value.

use super::elementwise::{Save, linear, no_bool, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ABS("abs") = |[x], []| x.abs();
    // The sign of `x` times the gradient; 0 at 0.
    static ABS_GRAD("abs_backward") = |[g, x], []| E::select(x.gt(E::lit(0.0)), g, E::select(x.lt(E::lit(0.0)), -g, E::lit(0.0)));
}

faces! {
    /// `|self|`, elementwise, in the tensor's own dtype; the smallest integer stays as it is. The gradient at 0 is 0.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1.5f32, 0.0, 2.0], [3]).abs().to_vec::<f32>(), [1.5, 0.0, 2.0]);
    /// ```
    pub fn abs | try_abs(&self) -> Tensor {
        no_bool("abs", self.dtype(), "it is its own absolute value")?;
        unary_as(&ABS, self, &[], self.dtype(), Save::Input, |ctx, g| linear(&ABS_GRAD, &[], g, &[&ctx.input(0)?]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("abs", || {
        unary_samples(Domain::AwayFromZero, |x| x.try_abs(), f64::abs)
            .into_iter()
            .map(Sample::numbers)
            .collect()
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], true)?.try_abs())
}
