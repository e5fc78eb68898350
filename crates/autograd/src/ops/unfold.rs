//! Sliding windows as a view.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Windows of `size` along `dim`, every `step`: the window becomes the last dim. A view whose elements may
    /// overlap; the gradient adds up over the windows an element is in.
    pub fn unfold | try_unfold(&self, dim: i64, size: i64, step: i64) -> Tensor {
        self.make_view("unfold", &move |l| l.unfold(dim, size, step))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let sample = |sizes: &[usize], dim: usize, size: usize, step: usize| {
        Sample::new(
            format!("{sizes:?} dim {dim} size {size} step {step}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_unfold(dim as i64, size as i64, step as i64),
            move |r| {
                let mut to = r[0].sizes.clone();
                to[dim] = (to[dim] - size) / step + 1;
                to.push(size);
                r[0].rearranged(&to, |i| {
                    let mut from = i[..i.len() - 1].to_vec();
                    from[dim] = from[dim] * step + i[i.len() - 1];
                    from
                })
            },
        )
        .numbers()
        .view()
    };
    OpSpec::new("unfold", || {
        vec![
            sample(&[10], 0, 3, 2),
            sample(&[5], 0, 3, 1),
            sample(&[2, 5, 3], 1, 2, 1),
            sample(&[2, 2, 4, 5], 3, 3, 1),
            sample(&[4], 0, 0, 2),
        ]
    })
    .refusal("windows larger than the dim", ErrorKind::Argument, || {
        Tensor::try_ones([3])?.try_unfold(0, 4, 1)
    })
    .refusal("step 0", ErrorKind::Argument, || Tensor::try_ones([3])?.try_unfold(0, 2, 0))
}
