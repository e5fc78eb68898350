//! Dims of size 1 taken away or put in.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Without its dims of size 1: a view.
    pub fn squeeze | try_squeeze(&self) -> Tensor {
        self.make_view("squeeze", &|l| l.squeeze(None))
    }

    /// Without those of `dims` that have size 1: a view.
    pub fn squeeze_dims | try_squeeze_dims(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("squeeze", &move |l| l.squeeze(Some(&dims)))
    }

    /// With a new dim of size 1 before place `dim` (negative: counted from the end of the result): a view.
    pub fn unsqueeze | try_unsqueeze(&self, dim: i64) -> Tensor {
        self.make_view("unsqueeze", &move |l| l.unsqueeze(dim))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::{ErrorKind, Result};

    use crate::spec::*;
    let sample = |name: &str, from: &[usize], to: &'static [usize], run: fn(&Tensor) -> Result<Tensor>| {
        Sample::new(
            format!("{name} of {from:?}"),
            vec![Input::new(from, Domain::Any)],
            move |t| run(&t[0]),
            move |r| Ref::new(to, r[0].data.clone()),
        )
        .numbers()
        .view()
    };
    OpSpec::new("squeeze", || {
        vec![
            sample("squeeze", &[1, 3, 1, 4], &[3, 4], Tensor::try_squeeze),
            sample("squeeze", &[1, 1], &[], Tensor::try_squeeze),
            sample("squeeze", &[2, 3], &[2, 3], Tensor::try_squeeze),
            sample("squeeze [1, -1]", &[1, 1, 3, 2], &[1, 3, 2], |x| x.try_squeeze_dims([1, -1])),
            sample("unsqueeze 0", &[2, 3, 4], &[1, 2, 3, 4], |x| x.try_unsqueeze(0)),
            sample("unsqueeze -1", &[2, 3], &[2, 3, 1], |x| x.try_unsqueeze(-1)),
            sample("unsqueeze 1", &[2, 0], &[2, 1, 0], |x| x.try_unsqueeze(1)),
            sample("unsqueeze 0", &[], &[1], |x| x.try_unsqueeze(0)),
        ]
    })
    .refusal("a dim out of range", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_unsqueeze(3))
    .refusal("a dim twice", ErrorKind::Dim, || Tensor::try_ones([1, 3])?.try_squeeze_dims([0, -2]))
    .refusal("too many dims", ErrorKind::Shape, || Tensor::try_ones([1; 8])?.try_unsqueeze(0))
}
