//! Pooling layers.

use stridegrad_autograd::{AvgPool2dOptions, IntoPair, MaxPool2dOptions, Tensor};

use crate::{Forward, Module};

/// The largest value of each window of images (N, C, H, W), or of one image (C, H, W).
///
/// ```
/// use stridegrad_autograd::{MaxPool2dOptions, Tensor};
/// use stridegrad_nn::{Forward, MaxPool2d};
/// let x = Tensor::ones([1, 1, 8, 8]);
/// assert_eq!(MaxPool2d::new(2).forward(&x).sizes(), [1, 1, 4, 4]);
/// let strided = MaxPool2d::new(MaxPool2dOptions::new(3).stride(2).padding(1));
/// assert_eq!(strided.forward(&x).sizes(), [1, 1, 4, 4]);
/// ```
#[derive(Module, Debug, Clone, Copy, PartialEq, Eq)]
#[module(crate = "crate")]
pub struct MaxPool2d {
    /// Window, stride, padding, dilation and rounding.
    pub options: MaxPool2dOptions,
}

impl MaxPool2d {
    /// With a window of this size, side by side, or with these options.
    pub fn new(options: impl Into<MaxPool2dOptions>) -> MaxPool2d {
        MaxPool2d { options: options.into() }
    }
}

impl Forward for MaxPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.max_pool2d(self.options)
    }
}

/// The average of each window of images (N, C, H, W), or of one image (C, H, W).
#[derive(Module, Debug, Clone, Copy, PartialEq, Eq)]
#[module(crate = "crate")]
pub struct AvgPool2d {
    /// Window, stride, padding, rounding and divisor.
    pub options: AvgPool2dOptions,
}

impl AvgPool2d {
    /// With a window of this size, side by side, or with these options.
    pub fn new(options: impl Into<AvgPool2dOptions>) -> AvgPool2d {
        AvgPool2d { options: options.into() }
    }
}

impl Forward for AvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.avg_pool2d(self.options)
    }
}

/// Images averaged to a given height and width, whatever theirs; 1 is global average pooling.
#[derive(Module, Debug, Clone, Copy, PartialEq, Eq)]
#[module(crate = "crate")]
pub struct AdaptiveAvgPool2d {
    output_size: [usize; 2],
}

impl AdaptiveAvgPool2d {
    /// To this size: a number, or `[height, width]`.
    pub fn new(output_size: impl IntoPair) -> AdaptiveAvgPool2d {
        AdaptiveAvgPool2d { output_size: output_size.into_pair() }
    }
}

impl Forward for AdaptiveAvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.adaptive_avg_pool2d(self.output_size)
    }
}
