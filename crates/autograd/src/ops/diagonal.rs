//! Diagonals as a view.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// The diagonal of dims `dim1` and `dim2`, `offset` above (or below) the main one, as the last dim: a view.
    /// (NumPy's is read-only; this one can be written.)
    pub fn diagonal | try_diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        self.make_view("diagonal", &move |l| l.diagonal(offset, dim1, dim2))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let sample = |sizes: &[usize], offset: i64, dims: [usize; 2], length: usize| {
        Sample::new(
            format!("{sizes:?} offset {offset} dims {dims:?}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_diagonal(offset, dims[0] as i64, dims[1] as i64),
            move |r| {
                let rest: Vec<usize> = (0..r[0].sizes.len()).filter(|d| !dims.contains(d)).collect();
                let mut to: Vec<usize> = rest.iter().map(|&d| r[0].sizes[d]).collect();
                to.push(length);
                r[0].rearranged(&to, |i| {
                    let mut from = vec![0; i.len() + 1];
                    rest.iter().zip(i).for_each(|(&d, &at)| from[d] = at);
                    from[dims[0]] = i[rest.len()] + (-offset).max(0) as usize;
                    from[dims[1]] = i[rest.len()] + offset.max(0) as usize;
                    from
                })
            },
        )
        .numbers()
        .view()
    };
    OpSpec::new("diagonal", || {
        vec![
            sample(&[3, 4], 0, [0, 1], 3),
            sample(&[3, 4], 1, [0, 1], 3),
            sample(&[3, 4], -1, [1, 0], 3),
            sample(&[2, 3, 3], -2, [1, 2], 1),
            sample(&[3, 2, 4, 3], 0, [3, 0], 3),
            sample(&[2, 2], 5, [0, 1], 0),
        ]
    })
    .refusal("one dim twice", ErrorKind::Dim, || Tensor::try_ones([2, 3])?.try_diagonal(0, 0, -2))
}
