//! Dims in another order: `permute`, `transpose`, `t`, `movedim`.

use stridegrad_core::IntoDims;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The dims in the order given: a view. Refuses a repeated dim or a wrong number of them.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3, 4, 4]).permute([0, 2, 3, 1]).strides(), [48, 4, 1, 16]);
    /// ```
    pub fn permute | try_permute(&self, dims: impl IntoDims) -> Tensor {
        let dims = dims.into_dims();
        self.make_view("permute", &move |l| l.permute(&dims))
    }

    /// Two dims exchanged: a view.
    pub fn transpose | try_transpose(&self, a: i64, b: i64) -> Tensor {
        self.make_view("transpose", &move |l| l.transpose(a, b))
    }

    /// The transposed matrix, a view; 0- and 1-dim tensors are returned as they are, higher ranks refused.
    pub fn t | try_t(&self) -> Tensor {
        self.make_view("t", &|l| l.t())
    }

    /// The dims `source` moved to the places `destination`, the others in their order: a view.
    pub fn movedim | try_movedim(&self, source: impl IntoDims, destination: impl IntoDims) -> Tensor {
        let (source, destination) = (source.into_dims(), destination.into_dims());
        self.make_view("movedim", &move |l| l.movedim(&source, &destination))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::{ErrorKind, Result};

    use crate::spec::*;
    let sample =
        |name: &str, sizes: &[usize], order: &'static [usize], run: fn(&Tensor) -> Result<Tensor>| {
            Sample::new(
                format!("{name} of {sizes:?}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| run(&t[0]),
                move |r| {
                    let to: Vec<usize> = order.iter().map(|&d| r[0].sizes[d]).collect();
                    r[0].rearranged(&to, |i| {
                        let mut from = vec![0; i.len()];
                        order.iter().zip(i).for_each(|(&d, &at)| from[d] = at);
                        from
                    })
                },
            )
            .numbers()
            .view()
        };
    OpSpec::new("permute", || {
        vec![
            sample("permute", &[2, 3, 4], &[2, 0, 1], |x| x.try_permute([2, 0, -2])),
            sample("permute", &[2, 3, 4, 5], &[0, 2, 3, 1], |x| x.try_permute([0, 2, 3, 1])),
            sample("permute", &[], &[], |x| x.try_permute(())),
            sample("permute", &[2, 0, 3], &[1, 2, 0], |x| x.try_permute([1, 2, 0])),
            sample("transpose", &[2, 3, 4], &[2, 1, 0], |x| x.try_transpose(0, -1)),
            sample("t", &[3, 4], &[1, 0], Tensor::try_t),
            sample("t", &[4], &[0], Tensor::try_t),
            sample("movedim", &[2, 3, 4, 5], &[1, 2, 0, 3], |x| x.try_movedim(0, 2)),
        ]
    })
    .refusal("a dim twice", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_permute([0, 0]))
    .refusal("too few dims", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_permute([0]))
    .refusal("a dim out of range", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_transpose(0, 2))
    .refusal("t of rank 3", ErrorKind::Dim, || Tensor::try_ones([2, 3, 4])?.try_t())
}
