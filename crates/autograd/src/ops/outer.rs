//! The outer product.

use stridegrad_core::bail;

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The outer product of two vectors: row `i` is `self[i] * other`. Promotes as multiplication does.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let y = Tensor::arange(3.0).outer(&Tensor::from_slice(&[1.0f32, 10.0], [2]));
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 0.0, 1.0, 10.0, 2.0, 20.0]);
    /// ```
    pub fn outer | try_outer(&self, other: &Tensor) -> Tensor {
        if self.dim() != 1 || other.dim() != 1 {
            bail!(Shape, "outer", "expected two vectors, got sizes {:?} and {:?}", self.sizes(), other.sizes());
        }
        self.try_unsqueeze(1)?.try_mul(other)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("outer", || {
        [(3, 4), (1, 1), (0, 2), (130, 70)]
            .into_iter()
            .map(|(m, n)| {
                Sample::new(
                    format!("{m} {n}"),
                    vec![Input::new(&[m], Domain::Any), Input::new(&[n], Domain::Any)],
                    |t| t[0].try_outer(&t[1]),
                    move |r| Ref::from_fn(&[m, n], |i| r[0].data[i[0]] * r[1].data[i[1]]),
                )
                .numbers()
            })
            .collect()
    })
    .refusal("a matrix", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_outer(&Tensor::try_ones([3])?)
    })
}
