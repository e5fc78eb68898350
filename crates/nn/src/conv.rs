//! Convolution layers.

use std::panic::Location;

use stridegrad_autograd::{Conv2dOptions, IntoPair, PadMode, Padding, Tensor};
use stridegrad_core::{Result, bail};

use crate::{Forward, Init, Module};

const OP: &str = "Conv2d";

/// A convolution of images (N, C, H, W), or of one image (C, H, W), with a learned kernel.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_nn::{Conv2d, Forward, Init};
/// let layer = Conv2d::builder(3, 8, 3).stride(2).padding(1).build(&mut Init::cpu().seed(1));
/// assert_eq!(layer.forward(&Tensor::ones([4, 3, 16, 16])).sizes(), [4, 8, 8, 8]);
/// ```
#[derive(Module, Debug, Clone)]
#[module(crate = "crate")]
pub struct Conv2d {
    /// (out_channels, in_channels / groups, height, width).
    pub weight: Tensor,
    /// (out_channels), unless it has none.
    pub bias: Option<Tensor>,
    /// Stride, padding, dilation and groups.
    pub options: Conv2dOptions,
    /// What the padding consists of.
    #[module(skip)]
    pub padding_mode: PadMode,
}

impl Conv2d {
    /// From `inputs` channels to `outputs`, with a kernel of this size: a number, or `[height, width]`.
    pub fn builder(inputs: usize, outputs: usize, kernel: impl IntoPair) -> Conv2dBuilder {
        let kernel = kernel.into_pair();
        let padding_mode = PadMode::ZEROS;
        Conv2dBuilder { inputs, outputs, kernel, bias: true, options: Conv2dOptions::new(), padding_mode }
    }

    /// The padding in numbers, as [`Tensor::pad`] takes it: before and after the width, then the height.
    fn padding(&self) -> [usize; 4] {
        match self.options.padding {
            Padding::Explicit([h, w]) => [w, w, h, h],
            Padding::Same => {
                let reach = |i: usize| self.weight.sizes().get(2 + i).map_or(0, |n| n.saturating_sub(1));
                let total = |i: usize| self.options.dilation[i].saturating_mul(reach(i));
                let (h, w) = (total(0), total(1));
                [w / 2, w - w / 2, h / 2, h - h / 2]
            }
            _ => [0; 4],
        }
    }
}

impl Forward for Conv2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        if self.padding_mode == PadMode::ZEROS {
            return x.conv2d(&self.weight, self.bias.as_ref(), self.options);
        }
        let padded = x.pad(self.padding(), self.padding_mode);
        padded.conv2d(&self.weight, self.bias.as_ref(), self.options.padding(Padding::Valid))
    }
}

/// Makes a [`Conv2d`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv2dBuilder {
    inputs: usize,
    outputs: usize,
    kernel: [usize; 2],
    bias: bool,
    options: Conv2dOptions,
    padding_mode: PadMode,
}

impl Conv2dBuilder {
    /// Step of the kernel: a number, or `[height, width]`; 1 by default.
    pub fn stride(mut self, stride: impl IntoPair) -> Self {
        self.options = self.options.stride(stride);
        self
    }

    /// Zeros around the input: a number, `[height, width]`, [`Padding::Same`] or [`Padding::Valid`]; none by default.
    pub fn padding(mut self, padding: impl Into<Padding>) -> Self {
        self.options = self.options.padding(padding);
        self
    }

    /// What the padding consists of: [`PadMode::ZEROS`] by default, which costs nothing; any other is written around
    /// a copy of the input.
    pub fn padding_mode(mut self, padding_mode: PadMode) -> Self {
        self.padding_mode = padding_mode;
        self
    }

    /// Step between the kernel's elements: a number, or `[height, width]`; 1 by default.
    pub fn dilation(mut self, dilation: impl IntoPair) -> Self {
        self.options = self.options.dilation(dilation);
        self
    }

    /// Groups of channels that do not see each other; 1 by default. As many as input channels: depthwise.
    pub fn groups(mut self, groups: usize) -> Self {
        self.options = self.options.groups(groups);
        self
    }

    /// Whether it has a bias; it does by default.
    pub fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// The layer, with PyTorch's default initialisation: weight and bias within `1 / sqrt(fan_in)` of 0, where an
    /// output has `fan_in` inputs.
    ///
    /// # Panics
    /// If the groups do not divide the channels, or a size, stride or dilation is 0; [`try_build`](Self::try_build)
    /// gives an error.
    #[track_caller]
    pub fn build(self, init: &mut Init) -> Conv2d {
        let caller = Location::caller();
        self.try_build(init).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`build`](Self::build).
    ///
    /// # Errors
    /// `Argument` if the groups do not divide the channels, or a size, stride or dilation is 0; `OutOfMemory`,
    /// `Overflow`, or the device's.
    pub fn try_build(self, init: &mut Init) -> Result<Conv2d> {
        let Conv2dBuilder { inputs, outputs, kernel: [height, width], bias, options, padding_mode } = self;
        let groups = options.groups;
        if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            bail!(
                Argument,
                OP,
                "{inputs} input and {outputs} output channels must be divisible by {groups} groups"
            );
        }
        let steps = [options.stride, options.dilation].concat();
        if outputs == 0 || height == 0 || width == 0 || steps.contains(&0) {
            bail!(
                Argument,
                OP,
                "{outputs} output channels, kernel {height}x{width}, stride {:?}, dilation {:?}: none may be 0",
                options.stride,
                options.dilation
            );
        }
        if options.padding == Padding::Same && options.stride != [1, 1] {
            bail!(Argument, OP, "padding 'same' is not supported for strided convolutions");
        }
        let sizes = [outputs, inputs / groups, height, width];
        let fan_in = crate::init::fans(&sizes)?.fan_in;
        let weight = init.within_fan_in(&sizes, fan_in)?;
        let bias = bias.then(|| init.within_fan_in(&[outputs], fan_in)).transpose()?;
        Ok(Conv2d { weight, bias, options, padding_mode })
    }
}
