//! How a convolution moves its kernel.

use stridegrad_core::kernel::Conv2dParams;
use stridegrad_core::{Error, ErrorKind, Result, bail};

use crate::ops::pair::IntoPair;

/// The zeros around a convolution's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Padding {
    /// So many on each side, as (height, width).
    Explicit([usize; 2]),
    /// As many as keep the input's size; an odd one goes to the bottom or right. Only with a stride of 1.
    Same,
    /// None.
    Valid,
}

impl<T: IntoPair> From<T> for Padding {
    fn from(pair: T) -> Padding {
        Padding::Explicit(pair.into_pair())
    }
}

/// Stride, padding, dilation and groups of a convolution. Starts as stride 1, no padding, dilation 1, one group.
///
/// ```
/// use stridegrad_autograd::{Conv2dOptions, Padding};
/// let halving = Conv2dOptions::new().stride(2).padding([1, 0]);
/// assert_eq!(halving.padding, Padding::Explicit([1, 0]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conv2dOptions {
    /// Step of the kernel, as (height, width).
    pub stride: [usize; 2],
    /// Zeros around the input.
    pub padding: Padding,
    /// Step between the kernel's elements, as (height, width).
    pub dilation: [usize; 2],
    /// Groups of channels that do not see each other.
    pub groups: usize,
}

impl Default for Conv2dOptions {
    fn default() -> Conv2dOptions {
        Conv2dOptions { stride: [1; 2], padding: Padding::Valid, dilation: [1; 2], groups: 1 }
    }
}

impl Conv2dOptions {
    /// Stride 1, no padding, dilation 1, one group.
    pub fn new() -> Conv2dOptions {
        Conv2dOptions::default()
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl IntoPair) -> Conv2dOptions {
        self.stride = stride.into_pair();
        self
    }

    /// With another padding: numbers, [`Padding::Same`] or [`Padding::Valid`].
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Padding>) -> Conv2dOptions {
        self.padding = padding.into();
        self
    }

    /// With another dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl IntoPair) -> Conv2dOptions {
        self.dilation = dilation.into_pair();
        self
    }

    /// With a number of groups.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Conv2dOptions {
        self.groups = groups;
        self
    }

    /// For rows of one pixel's height: what concerns the height is left out.
    pub(crate) fn of_width(self) -> Conv2dOptions {
        let padding = match self.padding {
            Padding::Explicit([_, w]) => Padding::Explicit([0, w]),
            p => p,
        };
        Conv2dOptions {
            stride: [1, self.stride[1]],
            padding,
            dilation: [1, self.dilation[1]],
            groups: self.groups,
        }
    }

    /// In numbers, for a kernel of these sizes.
    pub(crate) fn resolve(&self, op: &'static str, kernel: [usize; 2]) -> Result<Conv2dParams> {
        let Conv2dOptions { stride, dilation, groups, .. } = *self;
        if groups == 0 {
            bail!(Argument, op, "non-positive groups is not supported");
        }
        if stride.contains(&0) {
            bail!(Argument, op, "non-positive stride is not supported, got {stride:?}");
        }
        if dilation.contains(&0) {
            bail!(Argument, op, "dilation should be greater than zero, but got {dilation:?}");
        }
        if kernel.contains(&0) {
            bail!(Argument, op, "kernel size should be greater than zero, but got {kernel:?}");
        }
        let padding = match self.padding {
            Padding::Explicit([h, w]) => [[h; 2], [w; 2]],
            Padding::Valid => [[0; 2]; 2],
            Padding::Same if stride != [1; 2] => {
                return Err(Error::new(
                    ErrorKind::Argument,
                    op,
                    format!(
                        "padding 'same' is not supported for strided convolutions, got stride {stride:?}"
                    ),
                )
                .hint("give the padding in numbers"));
            }
            Padding::Same => {
                let total = |i: usize| dilation[i].saturating_mul(kernel[i] - 1);
                [0, 1].map(|i| [total(i) / 2, total(i) - total(i) / 2])
            }
        };
        Ok(Conv2dParams { stride, padding, dilation, groups })
    }
}
