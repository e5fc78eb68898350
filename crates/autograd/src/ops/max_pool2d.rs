//! Max pooling of images.

use stridegrad_core::kernel::{IndexPass, PoolPass};
use stridegrad_core::{Array, DType, Layout, Result, bail, exec};

use super::contiguous::materialize;
use super::pair::IntoPair;
use super::pooling::{Window, batched, image_layout};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::{BackwardFn, Recorder};

const OP: &str = "max_pool2d";

/// Window, stride, padding, dilation and rounding of a max pooling.
///
/// ```
/// use stridegrad_autograd::MaxPool2dOptions;
/// let overlapping = MaxPool2dOptions::new(3).stride(2).padding(1);
/// assert_eq!((overlapping.kernel, overlapping.stride), ([3, 3], [2, 2]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaxPool2dOptions {
    /// The window, as (height, width).
    pub kernel: [usize; 2],
    /// Step of the window.
    pub stride: [usize; 2],
    /// Minus infinity around the input, on both sides.
    pub padding: [usize; 2],
    /// Step between the window's elements.
    pub dilation: [usize; 2],
    /// Whether a last window that is not full counts.
    pub ceil_mode: bool,
}

impl MaxPool2dOptions {
    /// Windows side by side: the stride is the window's size; no padding, dilation 1.
    pub fn new(kernel: impl IntoPair) -> MaxPool2dOptions {
        let kernel = kernel.into_pair();
        MaxPool2dOptions { kernel, stride: kernel, padding: [0; 2], dilation: [1; 2], ceil_mode: false }
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl IntoPair) -> Self {
        self.stride = stride.into_pair();
        self
    }

    /// With a padding, at most half of the (dilated) window.
    #[must_use]
    pub fn padding(mut self, padding: impl IntoPair) -> Self {
        self.padding = padding.into_pair();
        self
    }

    /// With another dilation.
    #[must_use]
    pub fn dilation(mut self, dilation: impl IntoPair) -> Self {
        self.dilation = dilation.into_pair();
        self
    }

    /// With the output's size rounded up.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }
}

impl<T: IntoPair> From<T> for MaxPool2dOptions {
    fn from(kernel: T) -> MaxPool2dOptions {
        MaxPool2dOptions::new(kernel)
    }
}

/// Values and positions, of images of rank 4.
pub(crate) fn pool(x: &Tensor, options: &MaxPool2dOptions) -> Result<(Tensor, Tensor)> {
    if x.dtype() == DType::Bool {
        bail!(DType, OP, "max pooling of bool tensors is not supported");
    }
    let window = Window {
        kernel: options.kernel,
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        ceil_mode: options.ceil_mode,
    };
    let sizes = window.output(OP, x)?;
    let layout = image_layout(x, &sizes)?;
    let rec = Recorder::new(OP, &[x]);
    let mut results = exec::pool2d(
        PoolPass::Max,
        &window.params(true, None),
        &[(layout, x.dtype()), (layout, DType::I64)],
        &[x.array()],
    )?;
    let (Some(positions), Some(values)) = (results.pop(), results.pop()) else {
        bail!(Unsupported, OP, "the backend gave no positions");
    };
    let from = image_layout(x, x.sizes())?;
    let saved = positions.clone();
    let backward: BackwardFn = Box::new(move |_, g| match &g[0] {
        Some(g) => Ok(vec![Some(spread(g, &saved, window, from)?)]),
        None => Ok(vec![None]),
    });
    let mut out = rec.finish_many(vec![values, positions], backward)?;
    let positions = out.remove(1);
    Ok((out.remove(0), positions))
}

/// The gradient of `x`: each output's at the position it came from.
fn spread(g: &Tensor, positions: &Array, window: Window, layout: Layout) -> Result<Tensor> {
    let rec = Recorder::new("max_pool2d_backward", &[g]);
    let outs = [(layout, g.dtype())];
    let out = exec::pool2d(PoolPass::MaxGrad, &window.params(true, None), &outs, &[g.array(), positions])?
        .remove(0);
    let positions = positions.clone();
    rec.finish(out, move |_, gx| Ok(vec![Some(collect(gx, &positions, window, layout)?)]))
}

/// The adjoint of [`spread`]: the values at the positions.
fn collect(x: &Tensor, positions: &Array, window: Window, layout: Layout) -> Result<Tensor> {
    let flat = |sizes: &[usize]| [sizes[0], sizes[1], sizes[2] * sizes[3]];
    let reason = "the values of a plane are gathered by their position in it";
    let planes = match x.layout().try_view(&flat(x.sizes())) {
        Some(_) => x.try_view(flat(x.sizes()))?,
        None => materialize(x, Layout::contiguous(x.sizes())?, OP, reason)?.try_view(flat(x.sizes()))?,
    };
    let sizes = positions.sizes().to_vec();
    let index = exec::copy_to(positions, Layout::contiguous(&sizes)?, DType::I64)?;
    let index = index.with_layout(Layout::contiguous(&flat(&sizes))?)?;
    let rec = Recorder::new("max_pool2d_collect", &[&planes]);
    let out = exec::index(OP, IndexPass::Gather, 2, &flat(&sizes), planes.array(), &index)?;
    let (positions, whole, pooled) = (positions.clone(), flat(x.sizes()), sizes.clone());
    let out = rec.finish(out, move |_, g| {
        let g = g.try_reshape(&pooled)?;
        Ok(vec![Some(spread(&g, &positions, window, layout)?.try_reshape(whole)?)])
    })?;
    out.try_view(sizes)
}

faces! {
    /// The largest value of each window of images (N, C, H, W), or of one image (C, H, W).
    ///
    /// Of equal values the first counts; a NaN is the largest of all. The gradient goes to that element alone. The result is
    /// channels-last if the input is. `2` stands for windows of 2 x 2 side by side.
    ///
    /// ```
    /// use stridegrad_autograd::{MaxPool2dOptions, Tensor};
    /// let x = Tensor::arange(1.0).add(Tensor::arange(5.0)).view([1, 1, 1, 5]);
    /// let ceil = MaxPool2dOptions::new([1, 2]).ceil_mode(true);
    /// assert_eq!(x.max_pool2d([1, 2]).to_vec::<f32>(), [1.0, 3.0]);
    /// assert_eq!(x.max_pool2d(ceil).to_vec::<f32>(), [1.0, 3.0, 4.0]);
    /// ```
    pub fn max_pool2d | try_max_pool2d(&self, options: impl Into<MaxPool2dOptions>) -> Tensor {
        let options = options.into();
        batched(OP, self, |x| Ok(pool(x, &options)?.0))
    }

    /// As [`Tensor::max_pool2d`], with the position of each value in its H x W plane, `i64`.
    pub fn max_pool2d_with_indices | try_max_pool2d_with_indices(&self, options: impl Into<MaxPool2dOptions>) -> (Tensor, Tensor) {
        let options = options.into();
        let mut positions = None;
        let values = batched(OP, self, |x| {
            let (values, at) = pool(x, &options)?;
            positions = Some(if self.dim() == 3 { at.try_squeeze_dims(0)? } else { at });
            Ok(values)
        })?;
        match positions {
            Some(positions) => Ok((values, positions)),
            None => bail!(Unsupported, OP, "the backend gave no positions"),
        }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let case = |x: &[usize], options: MaxPool2dOptions| {
        Sample::new(
            format!("{x:?} {options:?}"),
            vec![Input::new(x, Domain::Distinct)],
            move |t| t[0].try_max_pool2d(options),
            move |r| {
                let o = options;
                let window = (o.kernel, o.stride, o.padding, o.dilation, o.ceil_mode);
                super::pooling::reference(&r[0], window, |values, _| {
                    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                })
            },
        )
        .channels_last_if(&[0])
    };
    let o = MaxPool2dOptions::new;
    OpSpec::new(OP, || {
        vec![
            case(&[2, 3, 4, 4], o(2)),
            case(&[2, 3, 5, 6], MaxPool2dOptions::new([2, 3]).stride([1, 2])),
            case(&[1, 2, 5, 5], o(2).ceil_mode(true)),
            case(&[1, 2, 5, 5], o(2).padding(1).ceil_mode(true)),
            case(&[2, 2, 7, 7], o(3).stride(2).padding(1)),
            case(&[1, 3, 7, 7], o(3).dilation(2).stride(1)),
            case(&[2, 1, 4, 4], o(2)),
            case(&[2, 2, 3, 3], o(3)),
            case(&[0, 2, 4, 4], o(2)),
            case(&[2, 3, 4, 4], o(1)),
            case(&[3, 4, 4], o(2)),
            case(&[3, 70, 19, 23], o(3).stride(2).padding(1)).no_grad(),
            Sample::many(
                "with indices [2, 3, 5, 6]",
                vec![Input::new(&[2, 3, 5, 6], Domain::Distinct)],
                |t| t[0].try_max_pool2d_with_indices(2).map(|(y, i)| vec![y, i]),
                |r| {
                    let best = |i: &[usize]| {
                        let window = (0..4).map(|k| [2 * i[2] + k / 2, 2 * i[3] + k % 2]);
                        let value = |at: [usize; 2]| r[0].at(&[i[0], i[1], at[0], at[1]]);
                        window.fold(([0, 0], f64::NEG_INFINITY), |best, at| {
                            if value(at) > best.1 { (at, value(at)) } else { best }
                        })
                    };
                    let values = Ref::from_fn(&[2, 3, 2, 3], |i| best(i).1);
                    let places = Ref::from_fn(&[2, 3, 2, 3], |i| (best(i).0[0] * 6 + best(i).0[1]) as f64);
                    vec![values, places]
                },
            )
            .channels_last_if(&[0])
            .result_dtype(|k, dtype| if k == 1 { DType::I64 } else { dtype }),
        ]
    })
    .refusal("rank 2", ErrorKind::Shape, || Tensor::try_ones([4, 4])?.try_max_pool2d(2))
    .refusal("kernel 0", ErrorKind::Argument, || Tensor::try_ones([1, 1, 4, 4])?.try_max_pool2d(0))
    .refusal("stride 0", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 4, 4])?.try_max_pool2d(MaxPool2dOptions::new(2).stride(0))
    })
    .refusal("dilation 0", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 4, 4])?.try_max_pool2d(MaxPool2dOptions::new(2).dilation(0))
    })
    .refusal("too much padding", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 4, 4])?.try_max_pool2d(MaxPool2dOptions::new(2).padding(2))
    })
    .refusal("a window larger than the image", ErrorKind::Shape, || {
        Tensor::try_ones([1, 1, 1, 1])?.try_max_pool2d([1, 2])
    })
    .refusal("no channels", ErrorKind::Shape, || Tensor::try_ones([2, 0, 4, 4])?.try_max_pool2d(2))
    .refusal("no pixels", ErrorKind::Shape, || Tensor::try_ones([2, 3, 0, 4])?.try_max_pool2d(1))
    .refusal("a bool", ErrorKind::DType, || Tensor::try_full([1, 1, 4, 4], true)?.try_max_pool2d(2))
}
