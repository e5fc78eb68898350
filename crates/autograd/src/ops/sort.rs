//! Order: `sort`, `argsort` and `topk`.

use std::cmp::Ordering;

use stridegrad_core::{DType, Result, bail, wrap_dim};

use super::gather::gather;
use crate::Tensor;
use crate::faces::faces;

/// NaN is larger than anything.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The order of each row's elements; equal ones keep theirs.
fn order<T: Copy>(values: &[T], n: usize, descending: bool, by: impl Fn(T, T) -> Ordering) -> Vec<i64> {
    let mut all = Vec::with_capacity(values.len());
    for row in values.chunks(n.max(1)) {
        let start = all.len();
        all.extend(0..row.len() as i64);
        let at = |i: &i64| row[*i as usize];
        match descending {
            false => all[start..].sort_by(|i, j| by(at(i), at(j))),
            true => all[start..].sort_by(|i, j| by(at(j), at(i))),
        }
    }
    all
}

/// The positions along `dim` in sorted order, of a tensor that has dims.
fn positions(x: &Tensor, dim: usize, descending: bool) -> Result<Tensor> {
    let d = dim as i64;
    // Sorted on the host, row by row.
    let rows = x.detach().try_movedim(d, -1)?;
    let n = x.sizes()[dim];
    let order = match x.dtype().is_floating() {
        true => order(&rows.try_to_vec_f64()?, n, descending, compare),
        false => order(&rows.try_to_dtype(DType::I64)?.try_to_vec::<i64>()?, n, descending, |a, b| a.cmp(&b)),
    };
    Tensor::try_from_slice(&order, rows.sizes())?.try_to_device(x.device())?.try_movedim(-1, d)
}

/// The `k` first positions of the order along `dim`, and the values there.
fn first(
    op: &'static str,
    x: &Tensor,
    dim: i64,
    descending: bool,
    k: Option<i64>,
) -> Result<(Tensor, Tensor)> {
    let d = wrap_dim(op, dim, x.dim())?;
    let n = if x.dim() == 0 { 1 } else { x.sizes()[d] as i64 };
    let k = k.unwrap_or(n);
    if !(0..=n).contains(&k) {
        bail!(Argument, op, "selected index k = {k} out of range for dimension {d} of size {n}");
    }
    if x.dim() == 0 {
        // A number is a row of one.
        let (values, indices) = first(op, &x.try_unsqueeze(0)?, 0, descending, Some(k))?;
        return match k {
            0 => Ok((values, indices)),
            _ => Ok((values.try_view(())?, indices.try_view(())?)),
        };
    }
    let indices = positions(x, d, descending)?.try_narrow(d as i64, 0, k)?.try_contiguous()?;
    Ok((gather(x, d, &indices)?, indices))
}

faces! {
    /// The values along `dim` in order, and their positions (`i64`); equal values keep theirs. NaN is the largest. The
    /// results are row-major; the gradient goes back to where each value came from.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], [3]);
    /// let (values, indices) = x.sort(0, false);
    /// assert_eq!((values.to_vec::<f32>(), indices.to_vec::<i64>()), (vec![1.0, 2.0, 3.0], vec![1, 2, 0]));
    /// ```
    pub fn sort | try_sort(&self, dim: i64, descending: bool) -> (Tensor, Tensor) {
        first("sort", self, dim, descending, None)
    }

    /// The positions along `dim` in the order of the values: the second result of [`Tensor::sort`].
    pub fn argsort | try_argsort(&self, dim: i64, descending: bool) -> Tensor {
        Ok(first("argsort", &self.detach(), dim, descending, None)?.1)
    }

    /// The `k` largest (or smallest) values along `dim`, in that order, and their positions (`i64`). Of equal values those
    /// that come first are taken; a NaN is the largest.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], [3]);
    /// assert_eq!(x.topk(2, 0, true).1.to_vec::<i64>(), [0, 2]);
    /// ```
    pub fn topk | try_topk(&self, k: i64, dim: i64, largest: bool) -> (Tensor, Tensor) {
        first("topk", self, dim, largest, Some(k))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    /// The `k` best of each row, found one after another.
    fn reference(x: &Ref, dim: usize, k: usize, descending: bool) -> Vec<Ref> {
        let mut sizes = x.sizes.clone();
        sizes[dim] = k;
        let place = |i: &[usize]| {
            let at = |p: usize| {
                let mut at = i.to_vec();
                at[dim] = p;
                x.at(&at)
            };
            let before = |p: usize, q: usize| match descending {
                true => at(p) > at(q) || (at(p) == at(q) && p < q),
                false => at(p) < at(q) || (at(p) == at(q) && p < q),
            };
            let n = x.sizes[dim];
            (0..n)
                .find(|&p| (0..n).filter(|&q| before(q, p)).count() == i[dim])
                .expect("a place for each rank")
        };
        let value = |i: &[usize]| {
            let mut at = i.to_vec();
            at[dim] = place(i);
            x.at(&at)
        };
        vec![Ref::from_fn(&sizes, value), Ref::from_fn(&sizes, |i| place(i) as f64)]
    }
    OpSpec::new("sort", || {
        let mut all = Vec::new();
        let cases: [(&[usize], usize, usize); 6] = [
            (&[2, 3, 4, 5], 1, 2),
            (&[3, 4], 1, 3),
            (&[7], 0, 0),
            (&[2, 0, 3], 2, 1),
            (&[2, 0], 1, 0),
            (&[5, 17], 0, 5),
        ];
        for (sizes, dim, k) in cases {
            for (descending, domain) in
                [(false, Domain::Distinct), (true, Domain::Distinct), (true, Domain::Index(0, 3))]
            {
                let (d, input) = (dim as i64, || vec![Input::new(sizes, domain)]);
                let samples = [
                    Sample::many(
                        format!("sort {sizes:?} dim {dim} descending {descending} {domain:?}"),
                        input(),
                        move |t| t[0].try_sort(d, descending).map(|(v, i)| vec![v, i]),
                        move |r| reference(&r[0], dim, sizes[dim], descending),
                    ),
                    Sample::many(
                        format!("topk {sizes:?} k {k} dim {dim} largest {descending} {domain:?}"),
                        input(),
                        move |t| t[0].try_topk(k as i64, d, descending).map(|(v, i)| vec![v, i]),
                        move |r| reference(&r[0], dim, k, descending),
                    ),
                    Sample::many(
                        format!("argsort {sizes:?} dim {dim} descending {descending} {domain:?}"),
                        input(),
                        move |t| Ok(vec![t[0].try_argsort(d, descending)?]),
                        move |r| reference(&r[0], dim, sizes[dim], descending).split_off(1),
                    )
                    .no_grad()
                    .result(DType::I64),
                ];
                all.extend(samples);
            }
        }
        let positions = |k, dtype| if k == 1 { DType::I64 } else { dtype };
        let typed = |s: Sample| if s.result_dtype.is_some() { s } else { s.result_dtype(positions) };
        all.into_iter().map(|s| typed(s).row_major()).collect()
    })
    .refusal("more than there are", ErrorKind::Argument, || {
        Ok(Tensor::try_ones([2])?.try_topk(3, 0, true)?.0)
    })
    .refusal("a dim out of range", ErrorKind::Dim, || Ok(Tensor::try_ones([2])?.try_sort(1, true)?.0))
}
