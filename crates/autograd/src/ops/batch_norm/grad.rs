//! The gradient of batch normalisation, in two sums and one pass, and in tensor ops where it is differentiated itself.

use stridegrad_core::{Array, Result, exec};

use super::{across, channel, same_format};
use crate::Tensor;
use crate::graph::Ctx;
use crate::ops::mean::OVER;
use crate::ops::mul::MUL;
use crate::ops::sum::SUM;

stridegrad_cpu::map_kernel! {
    static CORRELATION("batch_norm_backward") = |[g, x, mean], []| g * (x - mean);
    // The mean of the gradient, and its slope along the deviation, are taken out.
    static GRAD("batch_norm_backward") = |[g, x, mean, scale, mean_g, slope], []| {
        (g - mean_g - (x - mean) * slope) * scale
    };
    static SLOPE("batch_norm_backward") = |[dot, inv_std], [n]| dot * inv_std * inv_std / n;
}

/// What backward knows.
pub(super) struct Given<'a> {
    pub(super) training: bool,
    pub(super) eps: f64,
    pub(super) weight: bool,
    pub(super) reduced: &'a [bool],
    pub(super) n: f64,
}

impl Given<'_> {
    fn wants(&self, ctx: &Ctx<'_>) -> [bool; 3] {
        let bias = 1 + usize::from(self.weight);
        [ctx.needs(0), self.weight && ctx.needs(1), ctx.wanted.get(bias).is_some_and(|w| *w)]
    }

    /// The gradients of input, weight and bias: two sums and one pass.
    pub(super) fn fused(&self, ctx: &Ctx<'_>, g: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [want_x, want_w, want_b] = self.wants(ctx);
        let (x, rank) = (ctx.input(0)?, self.reduced.len());
        let (mean, inv_std) = (ctx.extra(0)?, ctx.extra(1)?);
        let (x, g, mean, inv_std) = (x.array(), g.array(), mean.array(), inv_std.array());
        let wide = x.dtype().compute_float();
        let sum = |a: &Array| exec::reduce(&SUM, wide, wide, self.reduced, true, a);
        let centred = want_x && self.training;
        let sum_g = if want_b || centred { Some(sum(g)?) } else { None };
        let dot = match want_w || centred {
            true => Some(sum(&exec::map(&CORRELATION, wide, &[], wide, &[g, x, mean])?)?),
            false => None,
        };
        let gx = match want_x {
            true => {
                let scaled = match self.weight {
                    true => {
                        let w = ctx.input(1)?;
                        Some(exec::map(&MUL, wide, &[], wide, &[inv_std, &across(w.array(), rank)?])?)
                    }
                    false => None,
                };
                let scale = scaled.as_ref().unwrap_or(inv_std);
                let layout = same_format(x.layout())?;
                Some(Tensor::from_array(match (&sum_g, &dot) {
                    (Some(sum_g), Some(dot)) if self.training => {
                        let mean_g = exec::map(&OVER, wide, &[self.n.into()], wide, &[sum_g])?;
                        let slope = exec::map(&SLOPE, wide, &[self.n.into()], wide, &[dot, inv_std])?;
                        exec::map_with_layout(
                            &GRAD,
                            wide,
                            &[],
                            x.dtype(),
                            layout,
                            &[g, x, mean, scale, &mean_g, &slope],
                        )?
                    }
                    _ => exec::map_with_layout(&MUL, wide, &[], x.dtype(), layout, &[g, scale])?,
                }))
            }
            false => None,
        };
        let gw = match dot {
            Some(dot) if want_w => Some(Tensor::from_array(channel(&exec::map_donated(
                &MUL,
                wide,
                &[],
                wide,
                dot,
                &[inv_std],
            )?)?)),
            _ => None,
        };
        let gb = match sum_g {
            Some(sum) if want_b => Some(Tensor::from_array(channel(&sum)?)),
            _ => None,
        };
        Ok([gx, gw, gb])
    }

    /// The same in tensor ops, for derivatives of derivatives. The batch's statistics are made anew from the input: they
    /// depend on it.
    pub(super) fn composite(&self, ctx: &Ctx<'_>, g: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [want_x, want_w, want_b] = self.wants(ctx);
        let x = ctx.input(0)?;
        let dims: Vec<i64> = (0..self.reduced.len() as i64).filter(|&d| d != 1).collect();
        let sum = |t: &Tensor| t.try_sum_dims(&dims, true);
        let (deviation, inv_std) = match self.training {
            true => {
                let deviation = x.try_sub(sum(&x)?.try_div(self.n)?)?;
                let variance = sum(&deviation.try_square()?)?.try_div(self.n)?;
                (deviation, variance.try_add(self.eps)?.try_rsqrt()?)
            }
            false => (x.try_sub(ctx.extra(0)?)?, ctx.extra(1)?),
        };
        let normal = deviation.try_mul(&inv_std)?;
        let sum_g = sum(g)?;
        let dot = sum(&g.try_mul(&normal)?)?;
        let gx = match want_x {
            true => {
                let inner = match self.training {
                    true => {
                        let slope = normal.try_mul(dot.try_div(self.n)?)?;
                        g.try_sub(sum_g.try_div(self.n)?)?.try_sub(slope)?
                    }
                    false => g.clone(),
                };
                let gx = inner.try_mul(&inv_std)?;
                let gx = match self.weight {
                    true => {
                        let mut sizes = vec![1; x.dim()];
                        sizes[1] = x.sizes()[1];
                        gx.try_mul(ctx.input(1)?.try_reshape(sizes)?)?
                    }
                    false => gx,
                };
                ctx.reduce_to(0, gx)?
            }
            false => None,
        };
        let c = x.sizes()[1];
        let gw = want_w.then(|| dot.try_view([c])).transpose()?;
        let gb = want_b.then(|| sum_g.try_view([c])).transpose()?;
        Ok([gx, gw, gb])
    }
}
