//! Errors that are squared near 0 and absolute beyond: `smooth_l1_loss` and `huber_loss`.

use stridegrad_core::{DType, Error, ErrorKind, Result};

use super::elementwise::linear;
use super::reduction::{Reduction, check_target};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::map_kernel! {
    // (x - t)^2 / 2 within delta, else delta (|x - t| - delta / 2).
    static HUBER("huber_loss") = |[d], [delta]| {
        let a = d.abs();
        E::select(a.lt(delta), E::lit(0.5) * d * d, delta * (a - E::lit(0.5) * delta))
    };
    static INSIDE("huber_loss_inside") = |[g, d], [delta]| {
        E::select(d.abs().lt(delta), g, E::lit(0.0))
    };
    static OUTSIDE("huber_loss_outside") = |[g, d], [delta]| {
        E::select(d.abs().lt(delta), E::lit(0.0), E::select(d.lt(E::lit(0.0)), -(g * delta), g * delta))
    };
}

/// The Huber function of each difference.
fn huber(op: &'static str, d: &Tensor, delta: f64) -> Result<Tensor> {
    let params = [delta.into()];
    let mut rec = Recorder::new(op, &[d]);
    rec.save_input(0);
    let dtype: DType = d.dtype();
    let out = stridegrad_core::exec::map(&HUBER, dtype, &params, dtype, &[d.array()])?;
    rec.finish(out, move |ctx, g| {
        let d = ctx.input(0)?;
        let inside = linear(&INSIDE, &params, g, &[&d])?.try_mul(&d)?;
        Ok(vec![Some(inside.try_add(linear(&OUTSIDE, &params, g, &[&d])?)?)])
    })
}

faces! {
    /// With `d = self - target`: `d^2 / (2 beta)` where `|d| < beta`, else `|d| - beta / 2`, reduced. `beta` 0 gives the
    /// absolute error. Sizes must be equal.
    ///
    /// ```
    /// use stridegrad_autograd::{Reduction, Tensor};
    /// let x = Tensor::from_slice(&[0.5f32, -3.0], [2]);
    /// assert_eq!(x.smooth_l1_loss(&Tensor::zeros([2]), 1.0, Reduction::Sum).item::<f32>(), 2.625);
    /// ```
    pub fn smooth_l1_loss | try_smooth_l1_loss(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Tensor {
        let op = "smooth_l1_loss";
        check_target(op, self, target)?;
        if beta.is_nan() || beta < 0.0 {
            return Err(Error::new(ErrorKind::Argument, op, format!("does not support negative values for beta, got {beta}")));
        }
        let d = self.try_sub(target)?;
        if beta == 0.0 {
            return reduction.apply(d.try_abs()?);
        }
        reduction.apply(huber(op, &d, beta)?.try_div(beta)?)
    }

    /// With `d = self - target`: `d^2 / 2` where `|d| < delta`, else `delta (|d| - delta / 2)`, reduced. Sizes must be
    /// equal, `delta` positive.
    pub fn huber_loss | try_huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Tensor {
        let op = "huber_loss";
        check_target(op, self, target)?;
        if delta.is_nan() || delta <= 0.0 {
            return Err(Error::new(ErrorKind::Argument, op, format!("does not support non-positive values for delta, got {delta}")));
        }
        reduction.apply(huber(op, &self.try_sub(target)?, delta)?)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use super::reduction::loss_samples;
    use crate::spec::*;
    OpSpec::new("smooth_l1_loss", || {
        let smooth = |beta: f64| {
            move |x: f64, t: f64| {
                let d = (x - t).abs();
                if d < beta { d * d / (2.0 * beta) } else { d - beta / 2.0 }
            }
        };
        // Differences in [0.5, 4], and the kink on either side of them.
        let domains = [Domain::Between(1.0, 2.0), Domain::Between(-2.0, 0.5)];
        let mut all = Vec::new();
        for beta in [0.25, 4.5, 0.0] {
            all.extend(loss_samples(domains, move |x, t, r| x.try_smooth_l1_loss(t, beta, r), smooth(beta)));
        }
        for delta in [0.25, 4.5] {
            let huber = move |x, t| delta * smooth(delta)(x, t);
            all.extend(loss_samples(domains, move |x, t, r| x.try_huber_loss(t, delta, r), huber));
        }
        all
    })
    .refusal("sizes that would broadcast", ErrorKind::Shape, || {
        Tensor::try_ones([3, 1])?.try_smooth_l1_loss(&Tensor::try_ones([3])?, 1.0, Reduction::Mean)
    })
    .refusal("a negative beta", ErrorKind::Argument, || {
        Tensor::try_ones([3])?.try_smooth_l1_loss(&Tensor::try_ones([3])?, -1.0, Reduction::Mean)
    })
    .refusal("a delta of 0", ErrorKind::Argument, || {
        Tensor::try_ones([3])?.try_huber_loss(&Tensor::try_ones([3])?, 0.0, Reduction::Mean)
    })
}
