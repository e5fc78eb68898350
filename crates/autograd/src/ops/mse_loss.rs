//! The squared error.

use super::elementwise::{binary, fused, promoted};
use super::reduction::{Reduction, check_target};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static SQUARED_ERROR("mse_loss") = |[x, t], []| (x - t) * (x - t);
    static SQUARED_ERROR_GRAD("mse_loss_backward") = |[g, x, t], []| E::lit(2.0) * g * (x - t);
}

faces! {
    /// The squared differences `(self - target)^2`, reduced. Sizes must be equal (PyTorch broadcasts, with a warning).
    ///
    /// ```
    /// use stridegrad_autograd::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]);
    /// assert_eq!(x.mse_loss(&Tensor::zeros([2]), Reduction::Mean).item::<f32>(), 5.0);
    /// ```
    pub fn mse_loss | try_mse_loss(&self, target: &Tensor, reduction: Reduction) -> Tensor {
        check_target("mse_loss", self, target)?;
        let (x, t) = (Operand::from(self), Operand::from(target));
        let dtype = promoted(&[&x, &t]);
        let losses = binary(&SQUARED_ERROR, &x, &t, dtype, dtype,
            |rec| { rec.save_input(0); rec.save_input(1) },
            |ctx, g| {
                let (x, t) = (ctx.input(0)?, ctx.input(1)?);
                let gx = fused(ctx, &SQUARED_ERROR_GRAD, &[], &[g, &x, &t], || x.try_sub(&t)?.try_mul(2.0)?.try_mul(g))?;
                let gt = ctx.needs(1).then(|| gx.try_neg()).transpose()?;
                Ok([ctx.needs(0).then_some(gx), gt])
            })?;
        reduction.apply(losses)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use super::reduction::loss_samples;
    use crate::spec::*;
    OpSpec::new("mse_loss", || {
        loss_samples([Domain::Any; 2], |x, t, r| x.try_mse_loss(t, r), |x, t| (x - t).powi(2))
    })
    .refusal("sizes that would broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([3, 1])?.try_mse_loss(&Tensor::try_ones([3])?, Reduction::Mean)
    })
    .refusal("integers", stridegrad_core::ErrorKind::DType, || {
        Tensor::try_full([3], 1)?.try_mse_loss(&Tensor::try_ones([3])?, Reduction::Mean)
    })
}
