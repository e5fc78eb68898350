//! Images enlarged (or reduced) by repeating pixels.

use stridegrad_core::{Result, bail};

use super::index_select::index_select;
use super::pair::IntoPair;
use super::pooling::check_images;
use crate::Tensor;
use crate::faces::faces;

/// Which pixel each new one repeats; computed in `f32` as PyTorch does.
fn sources(from: usize, to: usize) -> Result<Tensor> {
    let scale = from as f32 / to as f32;
    let at = |i: usize| ((i as f32 * scale) as usize).min(from - 1) as i64;
    Tensor::try_from_slice(&(0..to).map(at).collect::<Vec<i64>>(), [to])
}

faces! {
    /// Images (N, C, H, W) at another size: pixel i of the result repeats pixel `floor(i H / H')`. The gradient adds up over
    /// the repetitions. Channels-last images give a channels-last result.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(2.0).view([1, 1, 1, 2]);
    /// assert_eq!(x.upsample_nearest2d([1, 4]).to_vec::<f32>(), [0.0, 0.0, 1.0, 1.0]);
    /// ```
    pub fn upsample_nearest2d | try_upsample_nearest2d(&self, output_size: impl IntoPair) -> Tensor {
        let op = "upsample_nearest2d";
        let &[_, _, h, w] = self.sizes() else {
            bail!(Shape, op, "expected images of rank 4, got sizes {:?}", self.sizes());
        };
        check_images(op, self)?;
        let [p, q] = output_size.into_pair();
        if p == 0 || q == 0 || p.checked_mul(q).is_none() {
            bail!(Argument, op, "input and output sizes should be greater than 0, but got output ({p}, {q})");
        }
        let rows = index_select(self, 2, &sources(h, p)?.try_to_device(self.device())?)?;
        let y = index_select(&rows, 3, &sources(w, q)?.try_to_device(self.device())?)?;
        y.try_to_format(self.suggested_format())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    OpSpec::new("upsample_nearest2d", || {
        let cases: [([usize; 4], [usize; 2]); 4] =
            [([2, 3, 2, 3], [4, 6]), ([1, 2, 3, 4], [5, 3]), ([2, 1, 4, 4], [2, 7]), ([0, 2, 2, 2], [4, 4])];
        let samples = cases.into_iter().map(|(sizes, out)| {
            Sample::new(
                format!("{sizes:?} to {out:?}"),
                vec![Input::new(&sizes, Domain::Any)],
                move |t| t[0].try_upsample_nearest2d(out),
                move |r| {
                    let to = [sizes[0], sizes[1], out[0], out[1]];
                    r[0].rearranged(&to, |i| {
                        vec![i[0], i[1], i[2] * sizes[2] / out[0], i[3] * sizes[3] / out[1]]
                    })
                },
            )
            .channels_last_if(&[0])
        });
        samples.collect()
    })
    .refusal("no pixels asked for", ErrorKind::Argument, || {
        Tensor::try_ones([1, 1, 2, 2])?.try_upsample_nearest2d(0)
    })
    .refusal("no images", ErrorKind::Shape, || Tensor::try_ones([2, 2])?.try_upsample_nearest2d(2))
}
