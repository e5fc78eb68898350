//! Indexing with tensors of positions: `index`, and `index_put`, which writes there.

use stridegrad_core::{DType, Error, ErrorKind, Result, bail, broadcast_sizes};

use super::gather::index_arg;
use super::index_select::index_select;
use super::scatter::scatter;
use crate::Tensor;
use crate::faces::faces;

/// Where indexing reads or writes: rows of a matrix-like view of the tensor.
struct Places {
    /// The rows, 1-dim.
    rows: Tensor,
    /// The tensor's sizes with the indexed dims joined.
    joined: Vec<usize>,
    /// The sizes of what is read or written.
    result: Vec<usize>,
}

fn places(op: &'static str, x: &Tensor, indices: &[&Tensor]) -> Result<Places> {
    let k = indices.len();
    if k == 0 || k > x.dim() {
        bail!(Index, op, "too many indices, or none, for a tensor of dimension {}: got {k}", x.dim());
    }
    let indices = indices.iter().map(|i| index_arg(op, i)).collect::<Result<Vec<_>>>()?;
    let shapes: Vec<&[usize]> = indices.iter().map(Tensor::sizes).collect();
    let common = broadcast_sizes(op, &shapes)?;
    let mut rows = Tensor::try_full_on(common, 0, DType::I64, x.device())?;
    for (i, (&n, index)) in x.sizes().iter().zip(&indices).enumerate() {
        let n = n as i64;
        let outside = index.try_ge(n)?.try_logical_or(index.try_lt(n.saturating_neg())?)?;
        if index.numel() > 0 && outside.try_any()?.try_item::<bool>()? {
            return Err(Error::new(
                ErrorKind::Index,
                op,
                format!("an index is out of bounds for dimension {i} with size {n}"),
            ));
        }
        let wrapped = index.try_lt(0)?.try_where_(index.try_add(n)?, index)?;
        rows = rows.try_mul(n)?.try_add(wrapped)?;
    }
    let rest = &x.sizes()[k..];
    let joined = [&[x.sizes()[..k].iter().product()], rest].concat();
    let result = [&common[..], rest].concat();
    Ok(Places { rows: rows.try_reshape([rows.numel()])?, joined, result })
}

faces! {
    /// `self[i0, i1, ..]` with tensors of positions (`i64` or `i32`, negative ones from the end) for the first dims: they
    /// broadcast together, and their sizes replace those dims. The result is row-major; the gradient adds up where an
    /// element was picked repeatedly. Panics if a position is out of bounds.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(6.0).view([3, 2]);
    /// let (i, j) = (Tensor::from_slice(&[0i64, -1], [2]), Tensor::from_slice(&[1i64], [1]));
    /// assert_eq!(x.index(&[&i, &j]).to_vec::<f32>(), [1.0, 5.0]);
    /// ```
    pub fn index | try_index(&self, indices: &[&Tensor]) -> Tensor {
        let at = places("index", self, indices)?;
        index_select(&self.try_reshape(&at.joined)?, 0, &at.rows)?.try_view(&at.result)
    }

    /// This tensor with `values` (broadcast) written to `self[i0, i1, ..]`, or added there if `accumulate`; positions as in
    /// [`Tensor::index`]. Without `accumulate` the last of repeated positions wins. The result is row-major.
    pub fn index_put | try_index_put(&self, indices: &[&Tensor], values: &Tensor, accumulate: bool) -> Tensor {
        let op = "index_put";
        let at = places(op, self, indices)?;
        if values.dtype() != self.dtype() {
            bail!(DType, op, "source and destination dtypes should match, got {} for the destination and {} for the source",
                self.dtype(), values.dtype());
        }
        let n = at.rows.numel();
        let flat = [&[n], &at.joined[1..]].concat();
        let values = values.try_expand(&at.result)?.try_reshape(&flat)?;
        let x = self.try_reshape(&at.joined)?;
        let y = match accumulate {
            true => x.try_index_add(0, &at.rows, &values)?,
            false => {
                let mut column = vec![1; flat.len()];
                column[0] = n;
                scatter(op, &x, 0, &at.rows.try_view(column)?.try_expand(&flat)?, &values)?
            }
        };
        y.try_view(self.sizes())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    /// The place in `x` of each element of the result.
    fn from(x: &Ref, indices: &[Ref], i: &[usize], common: usize) -> Vec<usize> {
        let wrap = |(k, index): (usize, &Ref)| {
            let at = index.broadcast_at(&i[..common]);
            (if at < 0.0 { at + x.sizes[k] as f64 } else { at }) as usize
        };
        indices.iter().enumerate().map(wrap).chain(i[common..].iter().copied()).collect()
    }
    OpSpec::new("index_put", || {
        let mut all = Vec::new();
        // Sizes, those of the indices, their common sizes.
        type Case = (&'static [usize], &'static [&'static [usize]], &'static [usize]);
        let cases: [Case; 4] = [
            (&[3, 4, 2], &[&[5]], &[5]),
            (&[3, 4, 2], &[&[2, 1], &[3]], &[2, 3]),
            (&[2, 2, 3], &[&[4], &[4], &[1]], &[4]),
            (&[4], &[&[0]], &[0]),
        ];
        for (sizes, indices, common) in cases {
            let k = indices.len();
            let result = [common, &sizes[k..]].concat();
            let picks = || {
                indices.iter().enumerate().map(|(d, s)| {
                    let n = sizes[d] as i64;
                    Input::new(s, Domain::Index(-n, n))
                })
            };
            let mut inputs = vec![Input::new(sizes, Domain::Any)];
            inputs.extend(picks());
            let to = result.clone();
            all.push(Sample::new(
                format!("index {sizes:?} by {indices:?}"),
                inputs,
                move |t| t[0].try_index(&t[1..].iter().collect::<Vec<_>>()),
                move |r| Ref::from_fn(&to, |i| r[0].at(&from(&r[0], &r[1..], i, common.len()))),
            ));
            for accumulate in [false, true] {
                let mut inputs = vec![Input::new(sizes, Domain::Any), Input::new(&result, Domain::Any)];
                inputs.extend(picks());
                let to = result.clone();
                all.push(
                    Sample::new(
                        format!("index_put {sizes:?} by {indices:?} accumulate {accumulate}"),
                        inputs,
                        move |t| t[0].try_index_put(&t[2..].iter().collect::<Vec<_>>(), &t[1], accumulate),
                        move |r| {
                            let mut out = r[0].clone();
                            Ref::from_fn(&to, |i| {
                                let place = out.flat(&from(&r[0], &r[2..], i, common.len()));
                                out.data[place] = r[1].at(i) + if accumulate { out.data[place] } else { 0.0 };
                                0.0
                            });
                            out
                        },
                    )
                    .tolerance(2.0),
                );
            }
        }
        all.into_iter().map(Sample::row_major).collect()
    })
    .refusal("a position out of bounds", ErrorKind::Index, || {
        Tensor::try_ones([2])?.try_index(&[&Tensor::try_full([1], 2)?])
    })
    .refusal("more indices than dims", ErrorKind::Index, || {
        let i = Tensor::try_full([1], 0)?;
        Tensor::try_ones([2])?.try_index(&[&i, &i])
    })
    .refusal("values of another dtype", ErrorKind::DType, || {
        let i = Tensor::try_full([1], 0)?;
        Tensor::try_ones([2])?.try_index_put(&[&i], &i, false)
    })
}
