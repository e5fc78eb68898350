//! The cross entropy of two classes, from logits.

use super::elementwise::{binary, fused, promoted};
use super::reduction::{Reduction, check_target};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    // -t ln s(x) - (1 - t) ln s(-x) with s the logistic function, in terms that cannot overflow.
    static BCE("bce_with_logits") = |[x, t], []| {
        E::select(x.lt(E::lit(0.0)), E::lit(0.0), x) - x * t + (-x.abs()).exp().ln_1p()
    };
    static BCE_GRAD("bce_with_logits_backward") = |[g, x, t], []| {
        let e = (-x.abs()).exp();
        let s = E::select(x.lt(E::lit(0.0)), e, E::lit(1.0)) / (E::lit(1.0) + e);
        g * (s - t)
    };
}

faces! {
    /// The binary cross entropy of the logits `self` and probabilities `target`, reduced: `-t ln s(x) - (1 - t) ln s(-x)`
    /// with `s` the sigmoid, computed so that large logits neither overflow nor round to nothing. Sizes must be equal.
    ///
    /// ```
    /// use stridegrad_autograd::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[1000.0f32], [1]);
    /// assert_eq!(x.bce_with_logits(&Tensor::zeros([1]), Reduction::Mean).item::<f32>(), 1000.0);
    /// ```
    pub fn bce_with_logits | try_bce_with_logits(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        check_target("bce_with_logits", self, target)?;
        let (x, t) = (Operand::from(self), Operand::from(target));
        let dtype = promoted(&[&x, &t]);
        let losses = binary(&BCE, &x, &t, dtype, dtype,
            |rec| {
                rec.save_input(0);
                if rec.needs(0) { rec.save_input(1) }
            },
            |ctx, g| {
                let x = ctx.input(0)?;
                let gx = match ctx.needs(0) {
                    true => {
                        let t = ctx.input(1)?;
                        Some(fused(ctx, &BCE_GRAD, &[], &[g, &x, &t], || x.try_sigmoid()?.try_sub(&t)?.try_mul(g))?)
                    }
                    false => None,
                };
                let gt = ctx.needs(1).then(|| g.try_mul(&x)?.try_neg()).transpose()?;
                Ok([gx, gt])
            })?;
        reduction.apply(losses)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use super::reduction::loss_samples;
    use crate::spec::*;
    OpSpec::new("bce_with_logits", || {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        loss_samples(
            [Domain::AwayFromZero, Domain::Between(0.0, 1.0)],
            |x, t, r| x.try_bce_with_logits(t, r),
            move |x, t| -t * sigmoid(x).ln() - (1.0 - t) * sigmoid(-x).ln(),
        )
    })
    .refusal("sizes that would broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([3, 1])?.try_bce_with_logits(&Tensor::try_ones([3])?, Reduction::Mean)
    })
}
