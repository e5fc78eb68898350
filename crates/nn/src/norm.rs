//! Normalisation layers.

use std::panic::Location;

use stridegrad_autograd::{BatchNormOptions, Tensor, no_grad};
use stridegrad_core::{DType, Result, bail};

use crate::{Forward, Init, Module};

const OP: &str = "BatchNorm2d";

/// Batch normalisation of images (N, C, H, W), channel by channel (Ioffe and Szegedy, 2015).
///
/// In training a batch is normalised by its own mean and variance, which also move the running ones; in evaluation
/// by the running ones.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_nn::{BatchNorm2d, Forward, Init, Module};
/// let mut layer = BatchNorm2d::builder(3).build(&mut Init::cpu());
/// layer.forward(&Tensor::ones([2, 3, 4, 4]));
/// assert_eq!(layer.running_mean.as_ref().unwrap().to_vec::<f32>(), [0.1; 3]);
/// layer.eval();
/// ```
#[derive(Module, Debug, Clone)]
#[module(crate = "crate")]
pub struct BatchNorm2d {
    /// The factor of each channel, unless it has none.
    pub weight: Option<Tensor>,
    /// What is added to each channel, unless it has none.
    pub bias: Option<Tensor>,
    /// The running mean of each channel, if it is kept.
    #[module(buffer)]
    pub running_mean: Option<Tensor>,
    /// The running (unbiased) variance of each channel, if it is kept.
    #[module(buffer)]
    pub running_var: Option<Tensor>,
    /// The batches seen in training, `i64`, if they are counted.
    #[module(buffer)]
    pub num_batches_tracked: Option<Tensor>,
    /// Added to the variance.
    pub eps: f64,
    /// The part of a batch in the running statistics; `None`: they are the average over all batches.
    pub momentum: Option<f64>,
    /// Whether batches are normalised by their own statistics.
    #[module(training)]
    pub training: bool,
}

impl BatchNorm2d {
    /// Of images with this many channels.
    pub fn builder(channels: usize) -> BatchNorm2dBuilder {
        BatchNorm2dBuilder { channels, eps: 1e-5, momentum: Some(0.1), affine: true, track: true }
    }

    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.dim() != 4 {
            bail!(Shape, OP, "expected 4D input (got {}D input of sizes {:?})", x.dim(), x.sizes());
        }
        let count = self.num_batches_tracked.as_ref().filter(|_| self.training);
        let momentum = match (self.momentum, count) {
            (Some(m), _) => m,
            (None, Some(n)) => 1.0 / (n.try_item::<i64>()? + 1) as f64,
            (None, None) => 0.0,
        };
        let options = match self.training || self.running_mean.is_none() {
            true => BatchNormOptions::training(),
            false => BatchNormOptions::eval(),
        };
        let options = options.momentum(momentum).eps(self.eps);
        let (mean, var) = (self.running_mean.as_ref(), self.running_var.as_ref());
        let y = x.try_batch_norm(mean, var, self.weight.as_ref(), self.bias.as_ref(), options)?;
        if let Some(n) = count {
            no_grad(|| n.try_add_(1))?;
        }
        Ok(y)
    }
}

impl Forward for BatchNorm2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let caller = Location::caller();
        self.try_forward(x).unwrap_or_else(|e| e.at(caller).raise())
    }
}

/// Makes a [`BatchNorm2d`].
#[derive(Clone, Debug)]
#[must_use]
pub struct BatchNorm2dBuilder {
    channels: usize,
    eps: f64,
    momentum: Option<f64>,
    affine: bool,
    track: bool,
}

impl BatchNorm2dBuilder {
    /// Added to the variance; 1e-5 by default.
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// The part of a batch in the running statistics, 0.1 by default; `None`: they are the average over all batches.
    pub fn momentum(mut self, momentum: impl Into<Option<f64>>) -> Self {
        self.momentum = momentum.into();
        self
    }

    /// Whether it has a weight and a bias; it does by default.
    pub fn affine(mut self, affine: bool) -> Self {
        self.affine = affine;
        self
    }

    /// Whether it keeps running statistics, as it does by default; without them evaluation is as training.
    pub fn track_running_stats(mut self, track: bool) -> Self {
        self.track = track;
        self
    }

    /// The layer, in training mode: weights 1, biases 0, running means 0, running variances 1.
    ///
    /// # Panics
    /// If memory cannot be had; [`try_build`](Self::try_build) gives an error.
    #[track_caller]
    pub fn build(self, init: &mut Init) -> BatchNorm2d {
        let caller = Location::caller();
        self.try_build(init).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`build`](Self::build).
    ///
    /// # Errors
    /// `OutOfMemory`, or the device's.
    pub fn try_build(self, init: &mut Init) -> Result<BatchNorm2d> {
        let BatchNorm2dBuilder { channels, eps, momentum, affine, track } = self;
        let sizes = [channels];
        let count = || Tensor::try_full_on((), 0, DType::I64, init.device());
        Ok(BatchNorm2d {
            num_batches_tracked: track.then(count).transpose()?,
            weight: affine.then(|| init.constant(&sizes, 1.0)).transpose()?,
            bias: affine.then(|| init.constant(&sizes, 0.0)).transpose()?,
            running_mean: track.then(|| init.buffer(&sizes, 0.0)).transpose()?,
            running_var: track.then(|| init.buffer(&sizes, 1.0)).transpose()?,
            eps,
            momentum,
            training: true,
        })
    }
}
