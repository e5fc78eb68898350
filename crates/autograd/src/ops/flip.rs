//! Dims walked backwards, as a copy.

use stridegrad_core::IntoDims;

use super::contiguous::copy_in;
use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The given dims walked backwards, in new storage, in this tensor's stride order. [`Tensor::reversed`] is the view.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::arange(3.0).flip(0).to_vec::<f32>(), [2.0, 1.0, 0.0]);
    /// ```
    pub fn flip | try_flip(&self, dims: impl IntoDims) -> Tensor {
        let layout = self.layout().dense_like();
        copy_in("flip", &self.try_reversed(dims)?, layout)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let cases: [(&[usize], &[i64]); 6] = [
        (&[2, 3, 4, 5], &[1]),
        (&[2, 3, 4, 5], &[0, -1]),
        (&[3, 4], &[0, 1]),
        (&[7], &[0]),
        (&[2, 0, 3], &[0]),
        (&[3, 4], &[]),
    ];
    OpSpec::new("flip", || {
        let sample = |(sizes, dims): (&'static [usize], &'static [i64])| {
            Sample::new(
                format!("{sizes:?} dims {dims:?}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| t[0].try_flip(dims),
                move |r| {
                    Ref::from_fn(sizes, |i| {
                        let mut at = i.to_vec();
                        for &d in dims {
                            let d = if d < 0 { sizes.len() - 1 } else { d as usize };
                            at[d] = sizes[d] - 1 - i[d];
                        }
                        r[0].at(&at)
                    })
                },
            )
            .numbers()
            .layout_like(0)
        };
        cases.into_iter().map(sample).collect()
    })
    .refusal("a dim twice", stridegrad_core::ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_flip([0, 0]))
}
