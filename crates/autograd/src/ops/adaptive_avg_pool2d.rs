//! Average pooling to given sizes.

use stridegrad_core::bail;
use stridegrad_core::kernel::{Pool2dParams, PoolPass};

use super::avg_pool2d::linear;
use super::pair::IntoPair;
use super::pooling::{batched, check_images, image_layout};
use crate::Tensor;
use crate::faces::faces;

const OP: &str = "adaptive_avg_pool2d";

/// The pass looks at sizes alone.
const PARAMS: Pool2dParams = Pool2dParams {
    kernel: [1; 2],
    stride: [1; 2],
    padding: [0; 2],
    dilation: [1; 2],
    count_include_pad: true,
    divisor: None,
};

faces! {
    /// Images (N, C, H, W), or one image (C, H, W), averaged down (or spread) to the given height and width: output `i` of
    /// `o` is the average of `floor(i L / o) .. ceil((i + 1) L / o)`. `1` is global average pooling.
    ///
    /// The result is channels-last if the input is. Floating dtypes only.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(16.0).view([1, 1, 4, 4]);
    /// assert_eq!(x.adaptive_avg_pool2d(1).to_vec::<f32>(), [7.5]);
    /// ```
    pub fn adaptive_avg_pool2d | try_adaptive_avg_pool2d(&self, output_size: impl IntoPair) -> Tensor {
        let [p, q] = output_size.into_pair();
        if !self.dtype().is_floating() {
            bail!(DType, OP, "expected a floating-point tensor, got {}", self.dtype());
        }
        batched(OP, self, |x| {
            check_images(OP, x)?;
            let to = image_layout(x, &[x.sizes()[0], x.sizes()[1], p, q])?;
            let passes = [PoolPass::AdaptiveAvg, PoolPass::AdaptiveAvgGrad];
            linear(OP, passes, PARAMS, x, to, image_layout(x, x.sizes())?)
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    OpSpec::new(OP, || {
        let cases: [(&[usize], [usize; 2]); 8] = [
            (&[2, 3, 4, 4], [2, 2]),
            (&[2, 3, 5, 7], [3, 2]),
            (&[2, 3, 4, 4], [1, 1]),
            (&[1, 2, 2, 3], [3, 5]),
            (&[1, 2, 3, 3], [0, 2]),
            (&[0, 2, 3, 3], [2, 2]),
            (&[3, 4, 4], [3, 3]),
            (&[3, 70, 19, 23], [7, 7]),
        ];
        cases
            .into_iter()
            .map(|(x, out)| {
                let s = Sample::new(
                    format!("{x:?} {out:?}"),
                    vec![Input::new(x, Domain::Any)],
                    move |t| t[0].try_adaptive_avg_pool2d(out),
                    move |r| {
                        let x = &r[0];
                        let lead = x.sizes.len() - 2;
                        let sizes = [&x.sizes[..lead], &out].concat();
                        Ref::from_fn(&sizes, |index| {
                            let range = |i: usize| {
                                let (l, o, k) = (x.sizes[lead + i], out[i], index[lead + i]);
                                k * l / o..((k + 1) * l).div_ceil(o)
                            };
                            let (mut sum, mut n) = (0.0, 0.0);
                            for a in range(0) {
                                for b in range(1) {
                                    let mut at = index[..lead].to_vec();
                                    at.extend([a, b]);
                                    sum += x.at(&at);
                                    n += 1.0;
                                }
                            }
                            sum / n
                        })
                    },
                )
                .channels_last_if(&[0]);
                if x.len() == 4 && x[1] == 70 { s.no_grad() } else { s }
            })
            .collect()
    })
    .refusal("rank 2", ErrorKind::Shape, || Tensor::try_ones([4, 4])?.try_adaptive_avg_pool2d(2))
    .refusal("no pixels", ErrorKind::Shape, || Tensor::try_ones([1, 2, 0, 4])?.try_adaptive_avg_pool2d(2))
    .refusal("integers", ErrorKind::DType, || Tensor::try_full([1, 1, 4, 4], 1)?.try_adaptive_avg_pool2d(2))
}
