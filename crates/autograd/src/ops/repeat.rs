//! Copies side by side.

use stridegrad_core::{Error, ErrorKind, IntoDims, Layout, MAX_RANK};

use super::contiguous::copy_in;
use crate::Tensor;
use crate::create::sizes_arg;
use crate::faces::faces;

faces! {
    /// The tensor repeated `repeats[i]` times along each dim, in new row-major storage; further repeats lead. NumPy calls
    /// this `tile`. [`Tensor::expand`] repeats dims of size 1 without a copy.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::arange(2.0).repeat([2, 2]).to_vec::<f32>(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    /// ```
    pub fn repeat | try_repeat(&self, repeats: impl IntoDims) -> Tensor {
        let op = "repeat";
        let repeats = sizes_arg(op, repeats)?;
        let Some(extra) = repeats.len().checked_sub(self.dim()) else {
            return Err(Error::new(ErrorKind::Argument, op,
                format!("{} repeats given for a tensor of {} dims", repeats.len(), self.dim())));
        };
        // A new dim of stride 0 before each dim that is repeated; one copy makes of them what is asked.
        let (mut split, mut expanded, mut joined) = (Vec::new(), Vec::new(), Vec::new());
        for (i, &r) in repeats.iter().enumerate() {
            let n = if i < extra { 1 } else { self.sizes()[i - extra] };
            if r != 1 && n != 1 {
                split.push(1);
                expanded.push(r as i64);
            }
            split.push(n as i64);
            expanded.push(if n == 1 { r } else { n } as i64);
            let Some(total) = n.checked_mul(r) else {
                return Err(Error::new(ErrorKind::Overflow, op, format!("{r} times the size {n} does not fit")));
            };
            joined.push(total as i64);
        }
        if expanded.len() > MAX_RANK {
            return Err(Error::new(ErrorKind::Unsupported, op,
                format!("repeating {:?} by {repeats:?} would take more than {MAX_RANK} dims", self.sizes()))
                .hint("repeat fewer dims at a time"));
        }
        let view = self.try_view(split)?.try_expand(expanded)?;
        copy_in(op, &view, Layout::contiguous(view.sizes())?)?.try_view(joined)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let cases: [(&[usize], &[usize]); 9] = [
        (&[2, 3, 4, 5], &[1, 2, 1, 3]),
        (&[2, 3, 4, 5], &[2, 2, 2, 2]),
        (&[3, 4], &[2, 1]),
        (&[3, 4], &[2, 3, 1]),
        (&[3, 1], &[1, 4]),
        (&[7], &[0]),
        (&[], &[3]),
        (&[2, 0, 3], &[2, 2, 2]),
        (&[70, 30], &[3, 20]),
    ];
    OpSpec::new("repeat", || {
        let sample = |(sizes, repeats): (&'static [usize], &'static [usize])| {
            let extra = repeats.len() - sizes.len();
            let result: Vec<usize> = (0..repeats.len())
                .map(|i| repeats[i] * if i < extra { 1 } else { sizes[i - extra] })
                .collect();
            let s = Sample::new(
                format!("{sizes:?} by {repeats:?}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| t[0].try_repeat(repeats),
                move |r| {
                    Ref::from_fn(&result, |i| {
                        let at: Vec<usize> = i[extra..].iter().zip(sizes).map(|(i, n)| i % n).collect();
                        r[0].at(&at)
                    })
                },
            );
            if sizes == [70, 30] { s.no_grad().numbers() } else { s.numbers() }
        };
        cases.into_iter().map(sample).collect()
    })
    .refusal("too few repeats", ErrorKind::Argument, || Tensor::try_ones([2, 3])?.try_repeat([2]))
    .refusal("a negative repeat", ErrorKind::Shape, || Tensor::try_ones([2])?.try_repeat([-1]))
}
