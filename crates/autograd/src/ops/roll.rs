//! Dims rotated.

use stridegrad_core::{Error, ErrorKind, IntoDims, wrap_dim};

use super::cat::cat_in;
use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Each of `dims` rotated by its shift, in new storage: what leaves at the end comes in at the beginning. Negative
    /// shifts go the other way. The result is channels-last if this tensor is, else row-major.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::arange(4.0).roll(1, 0).to_vec::<f32>(), [3.0, 0.0, 1.0, 2.0]);
    /// ```
    pub fn roll | try_roll(&self, shifts: impl IntoDims, dims: impl IntoDims) -> Tensor {
        let (op, shifts, dims) = ("roll", shifts.into_dims(), dims.into_dims());
        if shifts.len() != dims.len() {
            return Err(Error::new(ErrorKind::Argument, op,
                format!("{} shifts for {} dims", shifts.len(), dims.len())));
        }
        let dims = dims.iter().map(|&d| wrap_dim(op, d, self.dim())).collect::<Result<Vec<_>, _>>()?;
        let mut x = self.clone();
        for (&shift, &d) in shifts.iter().zip(&dims) {
            let (size, d) = (self.sizes().get(d).copied().unwrap_or(1) as i64, d as i64);
            let shift = if size == 0 { 0 } else { shift.rem_euclid(size) };
            if shift != 0 {
                let (back, front) = (x.try_narrow(d, 0, size - shift)?, x.try_narrow(d, size - shift, shift)?);
                x = cat_in(op, &[&front, &back], d, self.suggested_format())?;
            }
        }
        if x.is_same(self) { x.try_copy_in_format(self.suggested_format()) } else { Ok(x) }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let cases: [(&[usize], &[i64], &[i64]); 7] = [
        (&[2, 3, 4, 5], &[2], &[1]),
        (&[2, 3, 4, 5], &[-1, 7], &[2, -1]),
        (&[3, 4], &[1, 1], &[0, 0]),
        (&[7], &[-3], &[0]),
        (&[3, 4], &[4], &[1]),
        (&[2, 0, 3], &[1], &[0]),
        (&[], &[], &[]),
    ];
    OpSpec::new("roll", || {
        let sample = |(sizes, shifts, dims): (&'static [usize], &'static [i64], &'static [i64])| {
            Sample::new(
                format!("{sizes:?} by {shifts:?} along {dims:?}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| t[0].try_roll(shifts, dims),
                move |r| {
                    Ref::from_fn(sizes, |i| {
                        let mut at = i.to_vec();
                        for (&shift, &d) in shifts.iter().zip(dims) {
                            let d = if d < 0 { sizes.len() - 1 } else { d as usize };
                            at[d] = (at[d] as i64 - shift).rem_euclid(sizes[d] as i64) as usize;
                        }
                        r[0].at(&at)
                    })
                },
            )
            .numbers()
            .channels_last_if(&[0])
        };
        cases.into_iter().map(sample).collect()
    })
    .refusal("a shift too many", ErrorKind::Argument, || Tensor::try_ones([2, 3])?.try_roll([1, 2], 0))
    .refusal("no such dim", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_roll(1, 2))
}
