//! What the pooling ops share: the window's checks, the output's sizes and layout.

use stridegrad_core::kernel::Pool2dParams;
use stridegrad_core::{Layout, Result, bail};

use crate::Tensor;

/// A pooling's window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) ceil_mode: bool,
}

impl Window {
    pub(crate) fn params(&self, count_include_pad: bool, divisor: Option<i64>) -> Pool2dParams {
        let Window { kernel, stride, padding, dilation, .. } = *self;
        Pool2dParams { kernel, stride, padding, dilation, count_include_pad, divisor }
    }

    /// The sizes of the result for images of rank 4, after everything that PyTorch refuses.
    pub(crate) fn output(&self, op: &'static str, x: &Tensor) -> Result<[usize; 4]> {
        let Window { kernel, stride, padding, dilation, .. } = *self;
        let positive = [(kernel, "kernel size"), (stride, "stride"), (dilation, "dilation")];
        if let Some((pair, what)) = positive.into_iter().find(|(pair, _)| pair.contains(&0)) {
            bail!(Argument, op, "{what} should not be zero, got {pair:?}");
        }
        let reach = [0, 1].map(|i| (kernel[i] - 1).saturating_mul(dilation[i]).saturating_add(1));
        if (0..2).any(|i| padding[i] > reach[i] / 2) {
            bail!(
                Argument,
                op,
                "pad should be at most half of effective kernel size, but got pad={padding:?}, kernel_size={kernel:?} and dilation={dilation:?}"
            );
        }
        let &[n, c, h, w] = x.sizes() else {
            bail!(Shape, op, "expected images of rank 4, got sizes {:?}", x.sizes());
        };
        check_images(op, x)?;
        let out = [0, 1].map(|i| self.output_size(i, [h, w][i], reach[i]));
        let [Some(p), Some(q)] = out else {
            bail!(
                Shape,
                op,
                "given input size: ({c}x{h}x{w}). Calculated output size: ({c}x{}x{}). Output size is too small",
                out[0].unwrap_or(0),
                out[1].unwrap_or(0)
            );
        };
        Ok([n, c, p, q])
    }

    /// The number of windows along a dim, none if not even one fits.
    fn output_size(&self, i: usize, size: usize, reach: usize) -> Option<usize> {
        let (stride, padding) = (self.stride[i], self.padding[i]);
        let padded = size.checked_add(padding.checked_mul(2)?)?;
        let n = match padded.checked_sub(reach) {
            Some(room) if self.ceil_mode => room.div_ceil(stride) + 1,
            Some(room) => room / stride + 1,
            // Less is missing than a step: the one window hangs over.
            None if self.ceil_mode && reach - padded < stride => 1,
            None => return None,
        };
        // A window that would begin in the padding on the right, or beyond it, is none.
        let beyond = self.ceil_mode && (n - 1).saturating_mul(stride) >= size + padding;
        Some(if beyond { n - 1 } else { n }).filter(|&n| n > 0)
    }
}

/// Refuses images without channels or pixels; an empty batch is fine.
pub(crate) fn check_images(op: &'static str, x: &Tensor) -> Result<()> {
    if x.sizes()[1..].contains(&0) {
        bail!(
            Shape,
            op,
            "expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: {:?}",
            x.sizes()
        );
    }
    Ok(())
}

/// The layout of a fresh result of these sizes, in the format of `x`.
pub(crate) fn image_layout(x: &Tensor, sizes: &[usize]) -> Result<Layout> {
    Layout::contiguous(sizes)?.in_format(x.suggested_format())
}

/// Runs `f` on a batch of images; one image (rank 3) is a batch of one for the time being.
pub(crate) fn batched(
    op: &'static str,
    x: &Tensor,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match x.dim() {
        3 => f(&x.try_unsqueeze(0)?)?.try_squeeze_dims(0),
        4 => f(x),
        _ => {
            bail!(Shape, op, "expected 3D or 4D (batch mode) tensor for input, but got sizes {:?}", x.sizes())
        }
    }
}

/// Kernel, stride, padding, dilation, ceil mode.
#[cfg(feature = "testkit")]
pub(crate) type RefWindow = ([usize; 2], [usize; 2], [usize; 2], [usize; 2], bool);

/// A naive pooling: `f` gets the real values of a window, and how many elements the window has with its padding.
#[cfg(feature = "testkit")]
pub(crate) fn reference(
    x: &crate::spec::Ref,
    (kernel, stride, padding, dilation, ceil): RefWindow,
    f: impl Fn(&[f64], usize) -> f64,
) -> crate::spec::Ref {
    use crate::spec::Ref;
    let lead = x.sizes.len() - 2;
    let windows = |i: usize| {
        let size = x.sizes[lead + i] as isize;
        let (k, s, p, d) =
            (kernel[i] as isize, stride[i] as isize, padding[i] as isize, dilation[i] as isize);
        // Count by trying: a window belongs if it lies inside, or (ceil mode) begins before the right padding.
        let inside = |o: isize| o * s - p + d * (k - 1) < size + p;
        let begins = |o: isize| o * s - p < size;
        let last_inside = (0..).take_while(|&o| inside(o)).count();
        let extra = ceil && begins(last_inside as isize);
        // One window beyond the last full one covers what is left, if anything is.
        let covered = last_inside > 0 && (last_inside as isize - 1) * s - p + d * (k - 1) >= size + p - 1;
        last_inside + usize::from(extra && !covered)
    };
    let sizes = [&x.sizes[..lead], &[windows(0), windows(1)]].concat();
    Ref::from_fn(&sizes, |index| {
        let (mut values, mut count) = (Vec::new(), 0);
        for a in 0..kernel[0] {
            for b in 0..kernel[1] {
                let at = [0, 1].map(|i| {
                    let tap = [a, b][i] * dilation[i] + index[lead + i] * stride[i];
                    tap as isize - padding[i] as isize
                });
                let size = |i: usize| x.sizes[lead + i] as isize;
                count += usize::from((0..2).all(|i| at[i] < size(i) + padding[i] as isize));
                if (0..2).all(|i| at[i] >= 0 && at[i] < size(i)) {
                    let mut full = index[..lead].to_vec();
                    full.extend(at.map(|v| v as usize));
                    values.push(x.at(&full));
                }
            }
        }
        f(&values, count)
    })
}
