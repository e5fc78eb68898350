//! Normalisation of channels over a batch.
//!
//! Two sums over the batch give mean and variance, one pass writes the result; backward takes two more sums and one
//! pass. Statistics are kept in `f32` for half precision. The mean is subtracted before anything is scaled, so that a
//! constant channel gives exactly the bias.

mod grad;
#[cfg(feature = "testkit")]
mod spec;

#[cfg(feature = "testkit")]
pub(crate) use spec::spec;

use stridegrad_core::{Array, DType, Error, ErrorKind, Layout, Result, bail, exec, self_overlaps};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;
use crate::ops::mean::{OVER, want_float};
use crate::ops::mul::MUL;
use crate::ops::sum::SUM;

const OP: &str = "batch_norm";

stridegrad_cpu::map_kernel! {
    static SQUARED_DEVIATION("batch_norm_var") = |[x, mean], []| (x - mean) * (x - mean);
    // One over the standard deviation, from the sum of squared deviations.
    static INV_STD("batch_norm_inv_std") = |[s], [n, eps]| E::lit(1.0) / (s / n + eps).sqrt();
    static SCALE("batch_norm") = |[x, mean, scale], []| (x - mean) * scale;
    static SCALE_SHIFT("batch_norm") = |[x, mean, scale, bias], []| (x - mean) * scale + bias;
    static RUNNING("batch_norm_running") = |[old, new], [m, n]| (E::lit(1.0) - m) * old + m * (new / n);
}

/// Mode, momentum and epsilon of a batch normalisation.
///
/// ```
/// use stridegrad_autograd::BatchNormOptions;
/// assert_eq!(BatchNormOptions::training().momentum(0.01).eps, 1e-5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BatchNormOptions {
    /// Whether the batch's own statistics are used, and the running ones updated.
    pub training: bool,
    /// The part of the batch in the running statistics: 0.1. For a cumulative average, one over the number of batches.
    pub momentum: f64,
    /// Added to the variance: 1e-5.
    pub eps: f64,
}

impl BatchNormOptions {
    /// The batch's statistics.
    pub fn training() -> BatchNormOptions {
        BatchNormOptions { training: true, momentum: 0.1, eps: 1e-5 }
    }

    /// The running statistics.
    pub fn eval() -> BatchNormOptions {
        BatchNormOptions { training: false, ..BatchNormOptions::training() }
    }

    /// With another momentum.
    #[must_use]
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// With another epsilon.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }
}

/// The channel's values as (1, C, 1, ..), to meet an input of this rank.
fn across(a: &Array, rank: usize) -> Result<Array> {
    let mut layout = a.layout().unsqueeze(0)?;
    for _ in 2..rank {
        layout = layout.unsqueeze(-1)?;
    }
    a.with_layout(layout)
}

/// (1, C, 1, ..), dense, as (C).
fn channel(a: &Array) -> Result<Array> {
    a.with_layout(Layout::contiguous(&[a.sizes()[1]])?.with_offset(a.layout().offset())?)
}

/// The layout of a fresh image-like result: channels-last if `x` is, else row-major.
pub(crate) fn same_format(x: &Layout) -> Result<Layout> {
    Layout::contiguous(x.sizes())?.in_format(x.suggested_format())
}

/// Everything that is refused.
fn check(
    x: &Tensor,
    running: [Option<&Tensor>; 2],
    affine: [Option<&Tensor>; 2],
    o: &BatchNormOptions,
) -> Result<()> {
    want_float(OP, x)?;
    let sizes = x.sizes();
    let &[n, c, ..] = sizes else {
        bail!(Shape, OP, "expected an input of sizes (batch, channels, ..), got {sizes:?}");
    };
    if running[0].is_some() != running[1].is_some() {
        bail!(Argument, OP, "running_mean and running_var are given together or not at all");
    }
    if !o.training && running[0].is_none() {
        return Err(Error::new(
            ErrorKind::Argument,
            OP,
            "expected running_mean and running_var to be defined when training is false",
        )
        .hint("BatchNormOptions::training() takes the batch's statistics"));
    }
    let per_channel: usize = n * sizes[2..].iter().product::<usize>();
    if o.training && per_channel == 1 && c > 0 {
        bail!(Shape, OP, "expected more than 1 value per channel when training, got input size {sizes:?}");
    }
    let vectors = [
        ("running_mean", running[0]),
        ("running_var", running[1]),
        ("weight", affine[0]),
        ("bias", affine[1]),
    ];
    for (name, t) in vectors {
        let Some(t) = t else { continue };
        want_float(OP, t)?;
        if t.sizes() != [c] {
            bail!(
                Shape,
                OP,
                "{name} should contain {c} elements, one a channel of an input of sizes {sizes:?}, but has sizes {:?}",
                t.sizes()
            );
        }
        if t.device() != x.device() {
            bail!(Device, OP, "the input lies on {}, {name} on {}", x.device(), t.device());
        }
    }
    if let Some(t) = running.into_iter().flatten().find(|t| o.training && self_overlaps(t.layout())) {
        bail!(
            Overlap,
            OP,
            "running statistics of strides {:?} overlap themselves and cannot be updated",
            t.strides()
        );
    }
    Ok(())
}

/// Mean and one over the standard deviation of each channel, as (1, C, 1, ..) in the dtype that sums have.
struct Stats {
    mean: Array,
    inv_std: Array,
}

/// The batch's statistics, and the sum of squared deviations.
fn of_batch(x: &Array, reduced: &[bool], n: f64, eps: f64) -> Result<(Stats, Array)> {
    let wide = x.dtype().compute_float();
    let sum = exec::reduce(&SUM, wide, wide, reduced, true, x)?;
    let mean = exec::map_donated(&OVER, wide, &[n.into()], wide, sum, &[])?;
    let squares = exec::map(&SQUARED_DEVIATION, wide, &[], wide, &[x, &mean])?;
    let squares = exec::reduce(&SUM, wide, wide, reduced, true, &squares)?;
    let inv_std = exec::map(&INV_STD, wide, &[n.into(), eps.into()], wide, &[&squares])?;
    Ok((Stats { mean, inv_std }, squares))
}

/// The running statistics. The mean is copied: it may be updated before backward reads it.
fn of_running(mean: &Tensor, var: &Tensor, rank: usize, wide: DType, eps: f64) -> Result<Stats> {
    let mean = across(mean.array(), rank)?;
    let mean = exec::copy_to(&mean, mean.layout().dense_like(), wide)?;
    let inv_std = exec::map(&INV_STD, wide, &[1.0.into(), eps.into()], wide, &[&across(var.array(), rank)?])?;
    Ok(Stats { mean, inv_std })
}

fn batch_norm(
    x: &Tensor,
    running: [Option<&Tensor>; 2],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    o: &BatchNormOptions,
) -> Result<Tensor> {
    check(x, running, [weight, bias], o)?;
    let rank = x.dim();
    let wide = x.dtype().compute_float();
    let reduced: Vec<bool> = (0..rank).map(|d| d != 1).collect();
    let n = crate::ops::mean::count(x, &reduced);
    let inputs: Vec<&Tensor> = [Some(x), weight, bias].into_iter().flatten().collect();
    let mut rec = Recorder::new(OP, &inputs);
    rec.save_input(0);
    if weight.is_some() {
        rec.save_input(1);
    }
    // An empty batch has no statistics; nothing divides by its size.
    let (stats, update) = match running {
        [Some(mean), Some(var)] if !o.training => (of_running(mean, var, rank, wide, o.eps)?, None),
        _ => {
            let (stats, squares) = of_batch(x.array(), &reduced, n.max(1) as f64, o.eps)?;
            (stats, Some(squares).filter(|_| n > 0))
        }
    };
    let Stats { mean, inv_std } = &stats;
    let scaled = weight
        .map(|w| exec::map(&MUL, wide, &[], wide, &[inv_std, &across(w.array(), rank)?]))
        .transpose()?;
    let scale = scaled.as_ref().unwrap_or(inv_std);
    let layout = same_format(x.layout())?;
    let out = match bias {
        Some(b) => {
            let b = across(b.array(), rank)?;
            exec::map_with_layout(&SCALE_SHIFT, wide, &[], x.dtype(), layout, &[x.array(), mean, scale, &b])?
        }
        None => exec::map_with_layout(&SCALE, wide, &[], x.dtype(), layout, &[x.array(), mean, scale])?,
    };
    if let ([Some(running_mean), Some(running_var)], Some(squares)) = (running, update) {
        // On the arrays: the buffers are no part of the graph.
        let unbiased = [o.momentum.into(), (n.saturating_sub(1) as f64).into()];
        let (m, v) = (running_mean.array(), running_var.array());
        exec::map_into(&RUNNING, wide, &[o.momentum.into(), 1.0.into()], m, &[m, &channel(mean)?])?;
        exec::map_into(&RUNNING, wide, &unbiased, v, &[v, &channel(&squares)?])?;
    }
    rec.save_extra(mean);
    rec.save_extra(inv_std);
    let (training, eps) = (o.training, o.eps);
    let affine = [weight.is_some(), bias.is_some()];
    rec.finish(out, move |ctx, g| {
        let given = grad::Given { training, eps, weight: affine[0], reduced: &reduced, n: n.max(1) as f64 };
        let [gx, gw, gb] = if ctx.create_graph { given.composite(ctx, g)? } else { given.fused(ctx, g)? };
        let gw = affine[0].then_some(gw);
        let gb = affine[1].then_some(gb);
        let mut grads = vec![gx];
        for g in [gw, gb].into_iter().flatten() {
            grads.push(match g {
                Some(g) => ctx.reduce_to(grads.len(), g)?,
                None => None,
            });
        }
        Ok(grads)
    })
}

faces! {
    /// `(self - mean) / sqrt(var + eps) * weight + bias` for each channel of (N, C, ..), with the batch's mean and
    /// (biased) variance in training, the running ones otherwise.
    ///
    /// Training updates the running statistics in place, outside the graph: `(1 - momentum) running + momentum batch`,
    /// where the batch's variance is the unbiased one. An empty batch leaves them alone. The mean is subtracted first:
    /// a constant channel gives the bias, exactly. The result is channels-last if the input is, else row-major.
    ///
    /// Panics in training with a single value a channel, without running statistics otherwise, and where sizes do not fit.
    ///
    /// ```
    /// use stridegrad_autograd::{BatchNormOptions, Tensor};
    /// let (mean, var) = (Tensor::zeros([1]), Tensor::ones([1]));
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2, 1]);
    /// let y = x.batch_norm(Some(&mean), Some(&var), None, None, BatchNormOptions::training());
    /// assert!((y.to_vec::<f32>()[1] - 1.0).abs() < 1e-4);
    /// assert_eq!((mean.item::<f32>(), var.item::<f32>()), (0.2, 1.1));
    /// ```
    pub fn batch_norm | try_batch_norm(
        &self,
        running_mean: Option<&Tensor>,
        running_var: Option<&Tensor>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        options: BatchNormOptions
    ) -> Tensor {
        batch_norm(self, [running_mean, running_var], weight, bias, &options)
    }
}
