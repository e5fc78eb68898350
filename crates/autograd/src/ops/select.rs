//! One index of a dim.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The sub-tensor at `index` of `dim`, without that dim: a view. Negative indices count from the end; one out of
    /// range is refused.
    pub fn select | try_select(&self, dim: i64, index: i64) -> Tensor {
        self.make_view("select", &move |l| l.select(dim, index))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let sample = |sizes: &[usize], dim: usize, index: i64| {
        let n = sizes[dim] as i64;
        Sample::new(
            format!("{sizes:?} dim {dim} index {index}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_select(dim as i64 - t[0].dim() as i64, index),
            move |r| {
                let at = (if index < 0 { index + n } else { index }) as usize;
                let mut to = r[0].sizes.clone();
                to.remove(dim);
                r[0].rearranged(&to, |i| {
                    let mut from = i.to_vec();
                    from.insert(dim, at);
                    from
                })
            },
        )
        .numbers()
        .view()
    };
    OpSpec::new("select", || {
        vec![
            sample(&[2, 3, 4], 1, 2),
            sample(&[2, 3, 4, 5], 0, -1),
            sample(&[3, 4], 1, 0),
            sample(&[5], 0, -5),
        ]
    })
    .refusal("an index out of range", ErrorKind::Index, || Tensor::try_ones([2, 3])?.try_select(1, 3))
    .refusal("a 0-dim tensor", ErrorKind::Dim, || Tensor::try_ones(())?.try_select(0, 0))
}
