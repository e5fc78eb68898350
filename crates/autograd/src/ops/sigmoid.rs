//! The logistic function.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SIGMOID("sigmoid") = |[x], []| E::lit(1.0) / (E::lit(1.0) + (-x).exp());
    static SIGMOID_GRAD("sigmoid_backward") = |[g, y], []| g * ((E::lit(1.0) - y) * y);
}

faces! {
    /// `1 / (1 + e^-self)`, elementwise; integers give `f32`. Saves its result for backward.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[-1000.0f32, 0.0, 1000.0], [3]);
    /// assert_eq!(x.sigmoid().to_vec::<f32>(), [0.0, 0.5, 1.0]);
    /// ```
    pub fn sigmoid | try_sigmoid(&self) -> Tensor {
        unary(&SIGMOID, self, &[], Save::Output, |ctx, g| {
            let y = ctx.output(0)?;
            fused(ctx, &SIGMOID_GRAD, &[], &[g, &y], || g.try_mul(&one_minus(&y)?.try_mul(&y)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sigmoid", || {
        unary_samples(Domain::Any, |x| x.try_sigmoid(), |x| 0.5 * (0.5 * x).tanh() + 0.5)
    })
}
