//! Values around a tensor.

use stridegrad_core::{Error, ErrorKind, IntoDims, Result, Scalar, bail};

use super::cat::cat_in;
use crate::Tensor;
use crate::faces::faces;

/// What [`Tensor::pad`] puts around a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PadMode {
    /// One value, converted to the tensor's dtype.
    Constant(Scalar),
    /// The tensor mirrored, without its outermost values: `2 1 | 0 1 2 | 1 0`.
    Reflect,
    /// Its outermost values: `0 0 | 0 1 2 | 2 2`.
    Replicate,
    /// The tensor again: `1 2 | 0 1 2 | 0 1`.
    Circular,
}

impl PadMode {
    /// Zeros.
    pub const ZEROS: PadMode = PadMode::Constant(Scalar::Int(0));
}

/// What stands before and after a tensor along `dim`, of `before` and `after` positions: views where it can be.
fn around(x: &Tensor, dim: usize, before: i64, after: i64, mode: PadMode) -> Result<[Tensor; 2]> {
    let (size, d) = (x.sizes()[dim] as i64, dim as i64);
    let most = before.max(after);
    let sized = |n: i64| {
        let mut sizes: Vec<i64> = x.sizes().iter().map(|&s| s as i64).collect();
        sizes[dim] = n;
        sizes
    };
    let fits = match mode {
        PadMode::Constant(_) => true,
        PadMode::Reflect => most < size || most == 0,
        PadMode::Replicate => size > 0 || most == 0,
        PadMode::Circular => most <= size,
    };
    if !fits {
        return Err(Error::new(
            ErrorKind::Argument,
            "pad",
            format!(
                "padding of {before} and {after} is too large for dimension {dim} of size {size} in mode {mode:?} (sizes {:?})",
                x.sizes()
            ),
        )
        .hint("Reflect takes less than the size, Circular at most the size, Replicate any but of nothing"));
    }
    Ok(match mode {
        PadMode::Constant(value) => {
            let value = Tensor::try_full_on((), value, x.dtype(), x.device())?;
            [value.try_expand(sized(before))?, value.try_expand(sized(after))?]
        }
        PadMode::Reflect => [
            x.try_narrow(d, 1.min(size), before)?.try_reversed(d)?,
            x.try_narrow(d, (size - 1 - after).max(0), after)?.try_reversed(d)?,
        ],
        PadMode::Replicate => [
            x.try_narrow(d, 0, 1.min(size))?.try_expand(sized(before))?,
            x.try_narrow(d, (size - 1).max(0), 1.min(size))?.try_expand(sized(after))?,
        ],
        PadMode::Circular => [x.try_narrow(d, size - before, before)?, x.try_narrow(d, 0, after)?],
    })
}

faces! {
    /// The tensor with more positions before and after its dims: `padding` is `[before, after]` of the last dim, then
    /// of the one before it, and so on, as in PyTorch. A negative number takes positions away.
    ///
    /// The result is channels-last if this tensor is, else row-major.
    ///
    /// ```
    /// use stridegrad_autograd::{PadMode, Tensor};
    /// let x = Tensor::arange(3.0);
    /// assert_eq!(x.pad([1, 2], PadMode::ZEROS).to_vec::<f32>(), [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]);
    /// assert_eq!(x.pad([2, 1], PadMode::Reflect).to_vec::<f32>(), [2.0, 1.0, 0.0, 1.0, 2.0, 1.0]);
    /// ```
    pub fn pad | try_pad(&self, padding: impl IntoDims, mode: PadMode) -> Tensor {
        let padding = padding.into_dims();
        if !padding.len().is_multiple_of(2) || padding.len() / 2 > self.dim() {
            bail!(Argument, "pad", "{} numbers for a tensor of sizes {:?}: a pair for each dim, the last one first",
                padding.len(), self.sizes());
        }
        let mut x = self.clone();
        // What is taken away goes first: it is no part of what is mirrored.
        for (k, p) in padding.chunks(2).enumerate() {
            let dim = self.dim() - 1 - k;
            let size = x.sizes()[dim] as i64;
            let (front, back) = (p[0].min(0).saturating_neg(), p[1].min(0).saturating_neg());
            if front.saturating_add(back) > size {
                bail!(Argument, "pad", "padding of {} and {} takes more than the size {size} of dimension {dim}", p[0], p[1]);
            }
            if front + back > 0 {
                x = x.try_narrow(dim as i64, front, size - front - back)?;
            }
        }
        for (k, p) in padding.chunks(2).enumerate() {
            let dim = self.dim() - 1 - k;
            let (before, after) = (p[0].max(0), p[1].max(0));
            if (before, after) != (0, 0) {
                let [front, back] = around(&x, dim, before, after, mode)?;
                x = cat_in("pad", &[&front, &x, &back], dim as i64, self.suggested_format())?;
            }
        }
        if x.shares_storage(self) { x.try_copy_in_format(self.suggested_format()) } else { Ok(x) }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    /// Where position `i` of a padded dim comes from; `None` is the constant.
    fn source(i: usize, before: i64, size: usize, mode: PadMode) -> Option<usize> {
        let (i, last) = (i as i64 - before, size as i64 - 1);
        let at = match mode {
            PadMode::Constant(_) => return (0..=last).contains(&i).then_some(i as usize),
            PadMode::Reflect => last - (last - i.abs()).abs(),
            PadMode::Replicate => i.clamp(0, last),
            PadMode::Circular => i.rem_euclid(last + 1),
        };
        Some(at as usize)
    }
    let value = PadMode::Constant(Scalar::Int(7));
    let cases: [(&[usize], &[i64], PadMode); 12] = [
        (&[2, 3, 4, 5], &[1, 2], PadMode::ZEROS),
        (&[2, 3, 4, 5], &[1, 2, 0, 3, 1, 1, 0, 2], value),
        (&[3, 4], &[-1, 2, 1, -2], value),
        (&[7], &[-2, -3], PadMode::ZEROS),
        (&[], &[], PadMode::ZEROS),
        (&[2, 0, 3], &[0, 0, 1, 1], value),
        (&[2, 3, 4, 5], &[2, 1, 3, 0], PadMode::Reflect),
        (&[7], &[6, 6], PadMode::Reflect),
        (&[2, 3, 4, 5], &[2, 1, 0, 6], PadMode::Replicate),
        (&[3, 4], &[5, 0], PadMode::Replicate),
        (&[2, 3, 4, 5], &[5, 1, 0, 4], PadMode::Circular),
        (&[3, 4], &[0, 0], PadMode::Circular),
    ];
    OpSpec::new("pad", || {
        let sample = |(sizes, padding, mode): (&'static [usize], &'static [i64], PadMode)| {
            let rank = sizes.len();
            let pair = move |dim: usize| match padding.get(2 * (rank - 1 - dim)..) {
                Some([before, after, ..]) => (*before, *after),
                _ => (0, 0),
            };
            let padded: Vec<usize> =
                (0..rank).map(|d| (sizes[d] as i64 + pair(d).0 + pair(d).1) as usize).collect();
            let s = Sample::new(
                format!("{sizes:?} by {padding:?} {mode:?}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| t[0].try_pad(padding, mode),
                move |r| {
                    Ref::from_fn(&padded, |i| {
                        let at: Option<Vec<usize>> =
                            (0..rank).map(|d| source(i[d], pair(d).0, sizes[d], mode)).collect();
                        match (at, mode) {
                            (Some(at), _) => r[0].at(&at),
                            (None, PadMode::Constant(v)) => v.to_f64(),
                            (None, _) => unreachable!("every position has a source"),
                        }
                    })
                },
            );
            s.numbers().channels_last_if(&[0])
        };
        cases.into_iter().map(sample).collect()
    })
    .refusal("reflecting by the size", ErrorKind::Argument, || {
        Tensor::try_ones([2, 3])?.try_pad([3, 0], PadMode::Reflect)
    })
    .refusal("going round twice", ErrorKind::Argument, || {
        Tensor::try_ones([2, 3])?.try_pad([0, 4], PadMode::Circular)
    })
    .refusal("repeating nothing", ErrorKind::Argument, || {
        Tensor::try_ones([2, 0])?.try_pad([0, 1], PadMode::Replicate)
    })
    .refusal("taking too much", ErrorKind::Argument, || {
        Tensor::try_ones([2, 3])?.try_pad([-2, -2], PadMode::ZEROS)
    })
    .refusal("half a pair", ErrorKind::Argument, || Tensor::try_ones([2, 3])?.try_pad([1], PadMode::ZEROS))
    .refusal("a dim too many", ErrorKind::Argument, || {
        Tensor::try_ones([2])?.try_pad([1, 1, 1, 1], PadMode::ZEROS)
    })
}
