//! Several views at once: `split`, `split_sizes`, `chunk`, `unbind`.
//!
//! Autograd does not follow in-place writes into these, as in PyTorch.

use stridegrad_core::{IntoDims, Layout, Result, wrap_dim};

use crate::Tensor;
use crate::faces::faces;

fn views(op: &'static str, x: &Tensor, dim: i64, pieces: &[Layout]) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let mut all = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let length = piece.size(wrap_dim(op, dim, piece.rank())?) as i64;
        all.push(x.make_view_flagged(op, true, &|l| l.narrow(dim, start, length))?);
        start += length;
    }
    Ok(all)
}

faces! {
    /// Pieces of `size` along `dim`, the last one smaller if need be.
    pub fn split | try_split(&self, size: i64, dim: i64) -> Vec<Tensor> {
        views("split", self, dim, &self.layout().split_size(size, dim)?)
    }

    /// Pieces of the given sizes along `dim`; they must add up to its size.
    pub fn split_sizes | try_split_sizes(&self, sizes: impl IntoDims, dim: i64) -> Vec<Tensor> {
        views("split", self, dim, &self.layout().split(&sizes.into_dims(), dim)?)
    }

    /// At most `n` pieces of equal size (the last smaller) along `dim`.
    pub fn chunk | try_chunk(&self, n: i64, dim: i64) -> Vec<Tensor> {
        views("chunk", self, dim, &self.layout().chunk(n, dim)?)
    }

    /// Every index of `dim`, without that dim.
    pub fn unbind | try_unbind(&self, dim: i64) -> Vec<Tensor> {
        let n = self.layout().unbind(dim)?.len();
        (0..n as i64).map(|k| self.make_view_flagged("unbind", true, &move |l| l.select(dim, k))).collect()
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    /// The pieces that start at `starts` and have these lengths along `dim`.
    fn pieces(x: &Ref, dim: usize, lengths: &[usize]) -> Vec<Ref> {
        let mut start = 0;
        let piece = |&length: &usize| {
            let mut to = x.sizes.clone();
            to[dim] = length;
            let first = start;
            start += length;
            x.rearranged(&to, |i| {
                let mut from = i.to_vec();
                from[dim] += first;
                from
            })
        };
        lengths.iter().map(piece).collect()
    }
    type Run = fn(&Tensor) -> Result<Vec<Tensor>>;
    let sample = |name: &str, sizes: &[usize], dim: usize, lengths: &'static [usize], run: Run| {
        Sample::many(
            format!("{name} of {sizes:?}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| run(&t[0]),
            move |r| pieces(&r[0], dim, lengths),
        )
        .numbers()
        .view()
    };
    OpSpec::new("split", || {
        vec![
            sample("split 2", &[2, 5], 1, &[2, 2, 1], |x| x.try_split(2, 1)),
            sample("split sizes [1, 0, 2]", &[3, 4], 0, &[1, 0, 2], |x| x.try_split_sizes([1, 0, 2], 0)),
            sample("chunk 2", &[2, 3, 4, 5], 1, &[2, 1], |x| x.try_chunk(2, 1)),
            Sample::many(
                "unbind of [3, 2, 2]",
                vec![Input::new(&[3, 2, 2], Domain::Any)],
                |t| t[0].try_unbind(-2),
                |r| {
                    let row = |k: usize| r[0].rearranged(&[3, 2], |i| vec![i[0], k, i[1]]);
                    vec![row(0), row(1)]
                },
            )
            .numbers()
            .view(),
        ]
    })
    .refusal("sizes that do not add up", ErrorKind::Argument, || {
        Ok(Tensor::try_ones([2, 3])?.try_split_sizes([1, 1], 1)?.remove(0))
    })
    .refusal("a negative size", ErrorKind::Argument, || {
        Ok(Tensor::try_ones([2, 3])?.try_split(-1, 0)?.remove(0))
    })
    .refusal("no chunks", ErrorKind::Argument, || Ok(Tensor::try_ones([2, 3])?.try_chunk(0, 0)?.remove(0)))
}
