//! Dims walked backwards, as a view.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The given dims walked backwards: a view with negative strides, as NumPy's `flip` (PyTorch's copies).
    pub fn reversed | try_reversed(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("reversed", &move |l| l.reversed(&dims))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let sample = |sizes: &[usize], dims: &'static [i64]| {
        Sample::new(
            format!("{sizes:?} dims {dims:?}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_reversed(dims),
            move |r| {
                let n = r[0].sizes.len() as i64;
                r[0].rearranged(&r[0].sizes, |i| {
                    let mut from = i.to_vec();
                    for d in dims.iter().map(|&d| (if d < 0 { d + n } else { d }) as usize) {
                        from[d] = r[0].sizes[d] - 1 - from[d];
                    }
                    from
                })
            },
        )
        .numbers()
        .view()
    };
    OpSpec::new("reversed", || {
        vec![
            sample(&[2, 3, 4], &[0, 2]),
            sample(&[2, 3, 4, 5], &[-1]),
            sample(&[5], &[0]),
            sample(&[2, 3], &[]),
            sample(&[2, 0], &[1]),
        ]
    })
    .refusal("a dim twice", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_reversed([0, -2]))
}
