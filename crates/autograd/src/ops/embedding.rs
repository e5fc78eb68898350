//! Rows of a table.

use super::gather::index_arg;
use super::index_select::index_select;
use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The rows of this table (n, d) that `indices` (any sizes, `i64` or `i32`) name: sizes of `indices`, then d. The
    /// result is row-major; the gradient adds up where a row was picked repeatedly.
    ///
    /// Panics if an index lies outside `0..n` or this is no matrix.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let table = Tensor::arange(6.0).view([3, 2]);
    /// let indices = Tensor::from_slice(&[2i64, 0], [2]);
    /// assert_eq!(table.embedding(&indices).to_vec::<f32>(), [4.0, 5.0, 0.0, 1.0]);
    /// ```
    pub fn embedding | try_embedding(&self, indices: &Tensor) -> Tensor {
        let &[_, d] = self.sizes() else {
            stridegrad_core::bail!(Shape, "embedding", "'weight' must be 2-D, got sizes {:?}", self.sizes());
        };
        let indices = index_arg("embedding", indices)?;
        let mut sizes = indices.sizes().to_vec();
        sizes.push(d);
        index_select(self, 0, &indices.try_reshape([indices.numel()])?)?.try_view(sizes)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    OpSpec::new("embedding", || {
        let cases: [([usize; 2], &[usize]); 5] =
            [([5, 3], &[2, 4]), ([5, 3], &[]), ([1, 4], &[3]), ([4, 2], &[2, 0]), ([70, 30], &[2, 3, 4])];
        let samples = cases.into_iter().map(|(table, indices)| {
            let result = [indices, &table[1..]].concat();
            let picks = Domain::Index(0, table[0] as i64);
            Sample::new(
                format!("{table:?} {indices:?}"),
                vec![Input::new(&table, Domain::Any), Input::new(indices, picks)],
                |t| t[0].try_embedding(&t[1]),
                move |r| {
                    Ref::from_fn(&result, |i| {
                        let row = r[1].at(&i[..i.len() - 1]) as usize;
                        r[0].at(&[row, i[i.len() - 1]])
                    })
                },
            )
            .row_major()
        });
        samples.collect()
    })
    .refusal("an index out of range", ErrorKind::Index, || {
        Tensor::try_ones([2, 2])?.try_embedding(&Tensor::try_full([1], 2)?)
    })
    .refusal("a table that is no matrix", ErrorKind::Shape, || {
        Tensor::try_ones([2])?.try_embedding(&Tensor::try_full([1], 0)?)
    })
    .refusal("an index of floats", ErrorKind::DType, || {
        Tensor::try_ones([2, 2])?.try_embedding(&Tensor::try_ones([1])?)
    })
}
