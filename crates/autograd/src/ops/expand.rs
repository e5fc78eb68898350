//! Broadcasting as a view.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Dims of size 1 repeated to `sizes` without a copy (stride 0); -1 keeps a dim; new dims may lead.
    pub fn expand | try_expand(&self, sizes: impl IntoDims) -> Tensor {
        let sizes = sizes.into_dims();
        self.make_view("expand", &move |l| l.expand(&sizes))
    }

    /// As [`Tensor::expand`], to the sizes of another tensor.
    pub fn expand_as | try_expand_as(&self, other: &Tensor) -> Tensor {
        self.try_expand(other.sizes())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let sample = |from: &[usize], to: &'static [usize], sizes: &'static [i64]| {
        Sample::new(
            format!("{from:?} to {sizes:?}"),
            vec![Input::new(from, Domain::Any)],
            move |t| t[0].try_expand(sizes),
            move |r| Ref::from_fn(to, |i| r[0].broadcast_at(i)),
        )
        .numbers()
        .view()
    };
    OpSpec::new("expand", || {
        vec![
            sample(&[3, 1], &[2, 3, 4], &[2, 3, 4]),
            sample(&[1, 4], &[3, 4], &[3, -1]),
            sample(&[], &[2, 2], &[2, 2]),
            sample(&[2, 3], &[1, 2, 3], &[1, -1, -1]),
            sample(&[3, 1, 2, 1], &[3, 4, 2, 2], &[-1, 4, -1, 2]),
            sample(&[3, 1], &[3, 0], &[3, 0]),
            Sample::new(
                "[3, 1] as [2, 3, 4]",
                vec![Input::new(&[3, 1], Domain::Any)],
                |t| t[0].try_expand_as(&Tensor::try_zeros([2, 3, 4])?),
                |r| Ref::from_fn(&[2, 3, 4], |i| r[0].broadcast_at(i)),
            )
            .view(),
        ]
    })
    .refusal("a dim that is not 1", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_expand([4, 3]))
    .refusal("fewer dims", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_expand([3]))
    .refusal("-1 in a new dim", ErrorKind::Shape, || Tensor::try_ones([3])?.try_expand([-1, 3]))
    .refusal("-2", ErrorKind::Shape, || Tensor::try_ones([3])?.try_expand([-2]))
    .refusal("more elements than can be counted", ErrorKind::Overflow, || {
        Tensor::try_ones(1)?.try_expand([1i64 << 40, 1 << 40])
    })
}
