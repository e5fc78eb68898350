//! A smooth form of the rectified linear unit.

use stridegrad_core::{Error, ErrorKind, Result};

use super::elementwise::{Save, fused, linear, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SOFTPLUS("softplus") = |[x], [beta, threshold]| {
        E::select((x * beta).gt(threshold), x, (x * beta).exp().ln_1p() / beta)
    };
    static SOFTPLUS_GRAD("softplus_backward") = |[g, x], [beta, threshold]| {
        E::select((x * beta).gt(threshold), g, g / (E::lit(1.0) + (-x * beta).exp()))
    };
    // `g` in the linear part or in the other one, else 0.
    static LINEAR_PART("softplus_linear") = |[g, x], [beta, threshold]| {
        E::select((x * beta).gt(threshold), g, E::lit(0.0))
    };
    static CURVED_PART("softplus_curved") = |[g, x], [beta, threshold]| {
        E::select((x * beta).gt(threshold), E::lit(0.0), g)
    };
}

fn softplus(x: &Tensor, beta: f64, threshold: f64) -> Result<Tensor> {
    if beta == 0.0 || beta.is_nan() || threshold.is_nan() {
        return Err(Error::new(
            ErrorKind::Argument,
            "softplus",
            format!("beta {beta} and threshold {threshold} must be numbers, beta not zero"),
        ));
    }
    let params = [beta.into(), threshold.into()];
    unary(&SOFTPLUS, x, &params, Save::Input, move |ctx, g| {
        let x = ctx.input(0)?;
        fused(ctx, &SOFTPLUS_GRAD, &params, &[g, &x], || {
            let curved =
                linear(&CURVED_PART, &params, g, &[&x])?.try_mul(&x.try_mul(beta)?.try_sigmoid()?)?;
            linear(&LINEAR_PART, &params, g, &[&x])?.try_add(curved)
        })
    })
}

faces! {
    /// `ln(1 + e^self)`, elementwise; `self` itself beyond 20. Integers give `f32`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let y = Tensor::from_slice(&[-1000.0f32, 1000.0], [2]).softplus();
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 1000.0]);
    /// ```
    pub fn softplus | try_softplus(&self) -> Tensor {
        softplus(self, 1.0, 20.0)
    }

    /// `ln(1 + e^(beta self)) / beta`, elementwise; `self` itself where `beta self > threshold`.
    pub fn softplus_with | try_softplus_with(&self, beta: f64, threshold: f64) -> Tensor {
        softplus(self, beta, threshold)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("softplus", || {
        let mut all = unary_samples(Domain::Any, |x| x.try_softplus(), |x| (1.0 + x.exp()).ln());
        all.extend(unary_samples(
            Domain::AwayFromZero,
            |x| x.try_softplus_with(3.0, 0.0),
            |x| if x > 0.0 { x } else { (1.0 + (3.0 * x).exp()).ln() / 3.0 },
        ));
        all
    })
    .refusal("beta of 0", ErrorKind::Argument, || Tensor::try_ones([2])?.try_softplus_with(0.0, 20.0))
}
