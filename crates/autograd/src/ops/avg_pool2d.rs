//! Average pooling of images.

use stridegrad_core::kernel::{Pool2dParams, PoolPass};
use stridegrad_core::{Layout, Result, bail, exec};

use super::pair::IntoPair;
use super::pooling::{Window, batched, image_layout};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

const OP: &str = "avg_pool2d";

/// Window, stride, padding, rounding and divisor of an average pooling.
///
/// ```
/// use stridegrad_autograd::AvgPool2dOptions;
/// let blur = AvgPool2dOptions::new(3).stride(1).padding(1).count_include_pad(false);
/// assert_eq!((blur.kernel, blur.stride), ([3, 3], [1, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AvgPool2dOptions {
    /// The window, as (height, width).
    pub kernel: [usize; 2],
    /// Step of the window.
    pub stride: [usize; 2],
    /// Zeros around the input, on both sides.
    pub padding: [usize; 2],
    /// Whether a last window that is not full counts.
    pub ceil_mode: bool,
    /// Whether padding counts in the divisor. What a window has beyond the padding never does.
    pub count_include_pad: bool,
    /// A divisor to use instead of the number of elements.
    pub divisor_override: Option<i64>,
}

impl AvgPool2dOptions {
    /// Windows side by side: the stride is the window's size; no padding.
    pub fn new(kernel: impl IntoPair) -> AvgPool2dOptions {
        let kernel = kernel.into_pair();
        AvgPool2dOptions {
            kernel,
            stride: kernel,
            padding: [0; 2],
            ceil_mode: false,
            count_include_pad: true,
            divisor_override: None,
        }
    }

    /// With another stride.
    #[must_use]
    pub fn stride(mut self, stride: impl IntoPair) -> Self {
        self.stride = stride.into_pair();
        self
    }

    /// With a padding, at most half of the window.
    #[must_use]
    pub fn padding(mut self, padding: impl IntoPair) -> Self {
        self.padding = padding.into_pair();
        self
    }

    /// With the output's size rounded up.
    #[must_use]
    pub fn ceil_mode(mut self, ceil_mode: bool) -> Self {
        self.ceil_mode = ceil_mode;
        self
    }

    /// Whether padding counts in the divisor (it does unless told otherwise).
    #[must_use]
    pub fn count_include_pad(mut self, count: bool) -> Self {
        self.count_include_pad = count;
        self
    }

    /// With a divisor instead of the number of elements; not 0.
    #[must_use]
    pub fn divisor_override(mut self, divisor: i64) -> Self {
        self.divisor_override = Some(divisor);
        self
    }
}

impl<T: IntoPair> From<T> for AvgPool2dOptions {
    fn from(kernel: T) -> AvgPool2dOptions {
        AvgPool2dOptions::new(kernel)
    }
}

/// A pooling that is linear in `x`: its gradient is its adjoint, whose gradient is the pooling again.
pub(crate) fn linear(
    name: &'static str,
    passes: [PoolPass; 2],
    params: Pool2dParams,
    x: &Tensor,
    to: Layout,
    from: Layout,
) -> Result<Tensor> {
    let rec = Recorder::new(name, &[x]);
    let out = exec::pool2d(passes[0], &params, &[(to, x.dtype())], &[x.array()])?.remove(0);
    let [there, back] = passes;
    rec.finish(out, move |_, g| Ok(vec![Some(linear(name, [back, there], params, g, from, to)?)]))
}

faces! {
    /// The average of each window of images (N, C, H, W), or of one image (C, H, W).
    ///
    /// The result is channels-last if the input is. `2` stands for windows of 2 x 2 side by side. Floating dtypes only.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(16.0).view([1, 1, 4, 4]);
    /// assert_eq!(x.avg_pool2d(2).to_vec::<f32>(), [2.5, 4.5, 10.5, 12.5]);
    /// ```
    pub fn avg_pool2d | try_avg_pool2d(&self, options: impl Into<AvgPool2dOptions>) -> Tensor {
        let o = options.into();
        if !self.dtype().is_floating() {
            bail!(DType, OP, "expected a floating-point tensor, got {}", self.dtype());
        }
        if o.divisor_override == Some(0) {
            bail!(Argument, OP, "divisor must be not zero");
        }
        let window = Window { kernel: o.kernel, stride: o.stride, padding: o.padding, dilation: [1; 2], ceil_mode: o.ceil_mode };
        let params = window.params(o.count_include_pad, o.divisor_override);
        batched(OP, self, |x| {
            let to = image_layout(x, &window.output(OP, x)?)?;
            linear(OP, [PoolPass::Avg, PoolPass::AvgGrad], params, x, to, image_layout(x, x.sizes())?)
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let case = |x: &[usize], o: AvgPool2dOptions| {
        Sample::new(
            format!("{x:?} {o:?}"),
            vec![Input::new(x, Domain::Any)],
            move |t| t[0].try_avg_pool2d(o),
            move |r| {
                let window = (o.kernel, o.stride, o.padding, [1; 2], o.ceil_mode);
                super::pooling::reference(&r[0], window, |values, padded| {
                    let count = if o.count_include_pad { padded } else { values.len() };
                    values.iter().sum::<f64>() / o.divisor_override.map_or(count as f64, |d| d as f64)
                })
            },
        )
        .channels_last_if(&[0])
    };
    let o = AvgPool2dOptions::new;
    OpSpec::new(OP, || {
        vec![
            case(&[2, 3, 4, 4], o(2)),
            case(&[2, 3, 5, 6], AvgPool2dOptions::new([2, 3]).stride([1, 2])),
            case(&[1, 2, 5, 5], o(2).ceil_mode(true)),
            case(&[1, 2, 5, 5], o(3).stride(2).padding(1).ceil_mode(true)),
            case(&[1, 2, 5, 5], o(3).stride(2).padding(1).ceil_mode(true).count_include_pad(false)),
            case(&[1, 2, 4, 4], o(3).stride(1).padding(1).divisor_override(-3)),
            case(&[2, 1, 4, 4], o(2)),
            case(&[0, 2, 4, 4], o(2)),
            case(&[3, 4, 4], o(2)),
            case(&[3, 70, 19, 23], o(3).stride(2).padding(1)).no_grad(),
        ]
    })
    .refusal("rank 5", ErrorKind::Shape, || Tensor::try_ones([1, 1, 1, 4, 4])?.try_avg_pool2d(2))
    .refusal("divisor 0", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 4, 4])?.try_avg_pool2d(AvgPool2dOptions::new(2).divisor_override(0))
    })
    .refusal("too much padding", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 4, 4])?.try_avg_pool2d(AvgPool2dOptions::new(2).padding(2))
    })
    .refusal("integers", ErrorKind::DType, || Tensor::try_full([1, 1, 4, 4], 1)?.try_avg_pool2d(2))
}
