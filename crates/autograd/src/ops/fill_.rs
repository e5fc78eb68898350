//! Writing one value everywhere.

use stridegrad_core::{Scalar, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::inplace::in_place;

faces! {
    /// Writes `value` into every element, converted to the dtype. Returns the tensor itself.
    pub fn fill_ | try_fill_(&self, value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        in_place("fill_", self, &[], |_| Ok(()), |out| exec::fill(out, value), |_, _| Ok(vec![None]))?;
        Ok(self.clone())
    }

    /// Writes zeros. Returns the tensor itself.
    pub fn zero_ | try_zero_(&self) -> Tensor {
        self.try_fill_(0.0)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let shapes: [&[usize]; 5] = [&[2, 3, 4, 5], &[7], &[], &[2, 0, 3], &[131, 1031]];
    let sample = |sizes: &'static [usize], value: f64| {
        let s = Sample::new(
            format!("{sizes:?} with {value}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_copy()?.try_fill_(value),
            move |_| Ref::from_fn(sizes, |_| value),
        )
        .in_place(
            move |x, _| if value == 0.0 { x.try_zero_().map(drop) } else { x.try_fill_(value).map(drop) },
        )
        .layout_like(0)
        .numbers();
        if sizes == [131, 1031] { s.no_grad() } else { s }
    };
    OpSpec::new("fill_", || {
        shapes.into_iter().flat_map(|sizes| [sample(sizes, 2.0), sample(sizes, 0.0)]).collect()
    })
    .refusal("a leaf that requires grad", stridegrad_core::ErrorKind::InPlace, || {
        Tensor::try_ones([2])?.try_requires_grad_(true)?.try_fill_(1.0)
    })
}
