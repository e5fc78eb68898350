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
