//! Convolution of images: `conv2d`, and `conv1d` as one-row images.
//!
//! The three products of a convolution (forward, input gradient, weight gradient) are each bilinear in their two
//! operands, and each one's gradients are the other two: so all are recorded ops, and derivatives of any order
//! are made of them ([`passes`]).

mod options;
pub(crate) mod passes;
#[cfg(feature = "testkit")]
mod spec;

pub use options::{Conv2dOptions, Padding};
#[cfg(feature = "testkit")]
pub(crate) use spec::{spec, spec_conv1d};

use stridegrad_core::exec::conv_output_size;
use stridegrad_core::kernel::Conv2dParams;
use stridegrad_core::{DType, Error, ErrorKind, MemoryFormat, Result, bail};

use crate::Tensor;
use crate::faces::faces;

/// What a convolution works on, checked: images of rank 4, and the output's sizes.
struct Checked {
    params: Conv2dParams,
    sizes: [usize; 4],
}

/// Refuses what does not fit, in the order and words of PyTorch.
fn check(
    op: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &Conv2dOptions,
) -> Result<Checked> {
    let (xs, ws) = (x.sizes(), weight.sizes());
    let (&[n, c, h, w], &[k, channels, r, s]) = (xs, ws) else {
        bail!(
            Shape,
            op,
            "expected {}-dimensional weight for {}-dimensional input {xs:?}, but got weight of size {ws:?} instead",
            xs.len(),
            xs.len()
        );
    };
    let params = options.resolve(op, [r, s])?;
    let groups = params.groups;
    if k == 0 || k % groups != 0 {
        bail!(
            Shape,
            op,
            "given groups={groups}, expected weight to be at least {groups} and divisible by {groups} at dimension 0, but got weight of size {ws:?} instead"
        );
    }
    if channels.checked_mul(groups) != Some(c) {
        return Err(Error::new(
            ErrorKind::Shape,
            op,
            format!(
                "given groups={groups}, weight of size {ws:?}, expected input{xs:?} to have {} channels, but got {c} channels instead",
                channels.saturating_mul(groups)
            ),
        )
        .hint("the input is (batch, channels, height, width), the weight (out, channels / groups, height, width)"));
    }
    if let Some(b) = bias
        && b.sizes() != [k]
    {
        bail!(
            Shape,
            op,
            "given weight of size {ws:?}, expected bias to be 1-dimensional with {k} elements, but got bias of size {:?} instead",
            b.sizes()
        );
    }
    let out = |i: usize, size, kernel| {
        conv_output_size(size, kernel, params.stride[i], params.padding[i], params.dilation[i])
    };
    let (Some(p), Some(q)) = (out(0, h, r), out(1, w, s)) else {
        let padded =
            |i: usize, size: usize| params.padding[i].iter().fold(size, |sum, &p| sum.saturating_add(p));
        let reach =
            |i: usize, kernel: usize| (kernel - 1).saturating_mul(params.dilation[i]).saturating_add(1);
        bail!(
            Shape,
            op,
            "calculated padded input size per channel: ({} x {}). Kernel size: ({} x {}). Kernel size can't be greater than actual input size",
            padded(0, h),
            padded(1, w),
            reach(0, r),
            reach(1, s)
        );
    };
    if h == 0 || w == 0 {
        bail!(Shape, op, "expected an input with pixels, but got sizes {xs:?}");
    }
    for (other, what) in [Some((weight, "weight")), bias.map(|b| (b, "bias"))].into_iter().flatten() {
        if other.dtype() != x.dtype() {
            return Err(Error::new(
                ErrorKind::DType,
                op,
                format!("input type ({}) and {what} type ({}) should be the same", x.dtype(), other.dtype()),
            )
            .hint("convert one with to_dtype()"));
        }
    }
    if x.dtype() == DType::Bool {
        bail!(DType, op, "convolution of bool tensors is not supported");
    }
    Ok(Checked { params, sizes: [n, k, p, q] })
}

/// The format of a convolution's results: channels-last as soon as one operand asks for it.
fn format_of(x: &Tensor, weight: &Tensor) -> MemoryFormat {
    match (x.suggested_format(), weight.suggested_format()) {
        (MemoryFormat::Contiguous, MemoryFormat::Contiguous) => MemoryFormat::Contiguous,
        _ if x.sizes()[0] == 0 => MemoryFormat::Contiguous,
        _ => MemoryFormat::ChannelsLast,
    }
}

/// The convolution of images of rank 4, or of one image of rank 3.
fn conv(
    op: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &Conv2dOptions,
) -> Result<Tensor> {
    match x.dim() {
        3 if weight.dim() == 4 => conv(op, &x.try_unsqueeze(0)?, weight, bias, options)?.try_squeeze_dims(0),
        3 | 4 => {
            let Checked { params, sizes } = check(op, x, weight, bias, options)?;
            passes::forward(x, weight, bias, params, sizes, format_of(x, weight))
        }
        _ => bail!(
            Shape,
            op,
            "expected 3D (unbatched) or 4D (batched) input to {op}, but got input of size: {:?}",
            x.sizes()
        ),
    }
}

faces! {
    /// The cross-correlation of images (N, C, H, W), or of one image (C, H, W), with a weight of sizes
    /// (K, C / groups, R, S), plus a bias (K): images of K channels and `floor((H + 2 p - d (R - 1) - 1) / s) + 1` rows.
    ///
    /// Every stride pattern is read as it is. The result is channels-last if the input's or the weight's strides ask
    /// for it, else row-major (always so for an empty batch); the same goes for the gradients of input and weight.
    /// With no input channels the result is the bias. Dtypes must be equal; integers are taken, bools are not.
    ///
    /// ```
    /// use stridegrad_autograd::{Conv2dOptions, Tensor};
    /// let x = Tensor::ones([2, 3, 8, 8]).to_format(stridegrad_core::MemoryFormat::ChannelsLast);
    /// let w = Tensor::ones([4, 3, 3, 3]);
    /// let y = x.conv2d(&w, None, Conv2dOptions::new().stride(2).padding(1));
    /// assert_eq!((y.sizes(), y.strides()), (&[2, 4, 4, 4][..], &[64, 1, 16, 4][..]));
    /// ```
    pub fn conv2d | try_conv2d(&self, weight: &Tensor, bias: Option<&Tensor>, options: Conv2dOptions) -> Tensor {
        conv("conv2d", self, weight, bias, &options)
    }

    /// The cross-correlation of sequences (N, C, L), or of one sequence (C, L), with a weight of sizes
    /// (K, C / groups, S), plus a bias (K). Of the options, the numbers for the width count.
    pub fn conv1d | try_conv1d(&self, weight: &Tensor, bias: Option<&Tensor>, options: Conv2dOptions) -> Tensor {
        let op = "conv1d";
        if !(2..=3).contains(&self.dim()) || weight.dim() != 3 {
            bail!(Shape, op, "expected 2D (unbatched) or 3D (batched) input to conv1d and a 3D weight, but got sizes {:?} and {:?}",
                self.sizes(), weight.sizes());
        }
        // Sequences are images of one row.
        conv(op, &self.try_unsqueeze(-2)?, &weight.try_unsqueeze(-2)?, bias, &options.of_width())?.try_squeeze_dims(-2)
    }
}
