//! Channels as pixels, and back.

use stridegrad_core::{Result, bail};

use crate::Tensor;
use crate::faces::faces;

/// The factor, at least 1, and images of rank 3 or more.
fn check(op: &'static str, x: &Tensor, factor: i64) -> Result<i64> {
    if factor < 1 || factor.checked_mul(factor).is_none() {
        bail!(Argument, op, "expected a positive factor, but got {factor}");
    }
    if x.dim() < 3 {
        bail!(Shape, op, "expected at least 3 dims (.., channels, height, width), got sizes {:?}", x.sizes());
    }
    Ok(factor)
}

/// The leading sizes, then channels, height and width.
fn split(x: &Tensor) -> (Vec<i64>, [i64; 3]) {
    let sizes: Vec<i64> = x.sizes().iter().map(|&n| n as i64).collect();
    let at = sizes.len() - 3;
    (sizes[..at].to_vec(), [sizes[at], sizes[at + 1], sizes[at + 2]])
}

/// The last `order.len()` dims in another order.
fn reorder(x: &Tensor, order: &[i64]) -> Result<Tensor> {
    let lead = (x.dim() - order.len()) as i64;
    let dims: Vec<i64> = (0..lead).chain(order.iter().map(|d| lead + d)).collect();
    x.try_permute(dims)
}

faces! {
    /// (.., C r r, H, W) as (.., C, H r, W r): each r x r block of pixels comes from r r channels.
    ///
    /// Source: Shi et al., "Real-Time Single Image and Video Super-Resolution", 2016.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let y = Tensor::arange(4.0).view([4, 1, 1]).pixel_shuffle(2);
    /// assert_eq!((y.sizes(), y.to_vec::<f32>()), (&[1, 2, 2][..], vec![0.0, 1.0, 2.0, 3.0]));
    /// ```
    pub fn pixel_shuffle | try_pixel_shuffle(&self, factor: i64) -> Tensor {
        let op = "pixel_shuffle";
        let r = check(op, self, factor)?;
        let (lead, [c, h, w]) = split(self);
        if c % (r * r) != 0 {
            bail!(Shape, op, "expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)={c} is not divisible by {}", r * r);
        }
        let blocks = self.try_reshape([&lead[..], &[c / (r * r), r, r, h, w]].concat())?;
        let whole = [&lead[..], &[c / (r * r), h * r, w * r]].concat();
        reorder(&blocks, &[0, 3, 1, 4, 2])?.try_contiguous()?.try_view(whole)
    }

    /// (.., C, H r, W r) as (.., C r r, H, W): the reverse of [`Tensor::pixel_shuffle`].
    pub fn pixel_unshuffle | try_pixel_unshuffle(&self, factor: i64) -> Tensor {
        let op = "pixel_unshuffle";
        let r = check(op, self, factor)?;
        let (lead, [c, h, w]) = split(self);
        if h % r != 0 || w % r != 0 {
            bail!(Shape, op, "expects height and width to be divisible by downscale_factor, but {h} x {w} is not divisible by {r}");
        }
        let blocks = self.try_reshape([&lead[..], &[c, h / r, r, w / r, r]].concat())?;
        let Some(channels) = c.checked_mul(r * r) else {
            bail!(Overflow, op, "{c} channels times {} do not fit", r * r);
        };
        let whole = [&lead[..], &[channels, h / r, w / r]].concat();
        reorder(&blocks, &[0, 2, 4, 1, 3])?.try_contiguous()?.try_view(whole)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    OpSpec::new("pixel_shuffle", || {
        let mut all = Vec::new();
        let cases: [(&[usize], usize); 4] =
            [(&[2, 8, 3, 2], 2), (&[9, 2, 2], 3), (&[0, 4, 2, 3], 2), (&[2, 1, 4, 2, 3], 2)];
        for (small, r) in cases {
            let at = small.len() - 3;
            let mut large = small.to_vec();
            (large[at], large[at + 1], large[at + 2]) =
                (small[at] / (r * r), small[at + 1] * r, small[at + 2] * r);
            // Where an element of the small image lies in the large one, and the other way round.
            let to_small = move |i: &[usize]| {
                let mut from = i.to_vec();
                from[at] = i[at] * r * r + i[at + 1] % r * r + i[at + 2] % r;
                (from[at + 1], from[at + 2]) = (i[at + 1] / r, i[at + 2] / r);
                from
            };
            let to_large = move |i: &[usize]| {
                let mut from = i.to_vec();
                from[at] = i[at] / (r * r);
                from[at + 1] = i[at + 1] * r + i[at] % (r * r) / r;
                from[at + 2] = i[at + 2] * r + i[at] % r;
                from
            };
            let (s, l) = (small.to_vec(), large.clone());
            let shuffle = Sample::new(
                format!("shuffle {small:?} by {r}"),
                vec![Input::new(small, Domain::Any)],
                move |t| t[0].try_pixel_shuffle(r as i64),
                move |x| x[0].rearranged(&l, to_small),
            );
            let unshuffle = Sample::new(
                format!("unshuffle {large:?} by {r}"),
                vec![Input::new(&large, Domain::Any)],
                move |t| t[0].try_pixel_unshuffle(r as i64),
                move |x| x[0].rearranged(&s, to_large),
            );
            all.extend([shuffle, unshuffle].map(|s| s.numbers().row_major().may_alias()));
        }
        all
    })
    .refusal("channels that do not divide", ErrorKind::Shape, || {
        Tensor::try_ones([3, 2, 2])?.try_pixel_shuffle(2)
    })
    .refusal("a height that does not divide", ErrorKind::Shape, || {
        Tensor::try_ones([3, 3, 2])?.try_pixel_unshuffle(2)
    })
    .refusal("factor 0", ErrorKind::Argument, || Tensor::try_ones([4, 2, 2])?.try_pixel_shuffle(0))
}
