//! The logarithm of the logistic function.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    // Of the absolute value, so that nothing overflows.
    static LOGSIGMOID("logsigmoid") = |[x], []| x.min(E::lit(0.0)) - (-x.abs()).exp().ln_1p();
    static LOGSIGMOID_GRAD("logsigmoid_backward") = |[g, x], []| g / (E::lit(1.0) + x.exp());
}

faces! {
    /// `ln(1 / (1 + e^-self))`, elementwise, without overflow; integers give `f32`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[-1000.0f32, 1000.0], [2]).logsigmoid().to_vec::<f32>(), [-1000.0, 0.0]);
    /// ```
    pub fn logsigmoid | try_logsigmoid(&self) -> Tensor {
        unary(&LOGSIGMOID, self, &[], Save::Input, move |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &LOGSIGMOID_GRAD, &[], &[g, &x], || g.try_mul(&x.try_neg()?.try_sigmoid()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("logsigmoid", || {
        unary_samples(Domain::Any, |x| x.try_logsigmoid(), |x| -(1.0 + (-x).exp()).ln())
    })
}
