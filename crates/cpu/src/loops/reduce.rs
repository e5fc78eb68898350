//! Reductions over any set of dims of any layout.
//!
//! The kept and the reduced dims are two loop nests. Where the input lies denser along the reduced dims, each result is
//! *folded* from rows of them; where it lies denser along the kept ones, rows of results are accumulated *column*
//! by column. Few results over much input are computed as partial results of chunks. All of this, and so every bit of
//! the result, is decided by shape, strides and dtype; the number of threads has no part in it.

use stridegrad_core::kernel::{FoldFn, ReduceKernel, RowsFn};
use stridegrad_core::{Category, DType, Dims, Int, Layout, LoopPlan, Result, Scalar};

use super::copy::fill;
use super::elem::{Compute, Rect, Tile};
use super::nest::{Chunk, Chunks, Nest};
use super::{CHUNK, Raw, View};
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};

pub(crate) fn reduce(
    kernel: &ReduceKernel,
    compute: DType,
    dims: &[bool],
    dst: View<'_>,
    src: View<'_>,
) -> Result<()> {
    if dst.layout.is_empty() {
        return Ok(());
    }
    if src.layout.is_empty() {
        let float = compute.category() == Category::Floating;
        let identity = if float { Scalar::Float(kernel.identity) } else { Scalar::Int(kernel.identity_int) };
        return fill(dst, identity);
    }
    match compute {
        DType::F32 => reduce_as::<f32>(kernel, dims, dst, src),
        DType::F64 => reduce_as::<f64>(kernel, dims, dst, src),
        _ => reduce_as::<Int>(kernel, dims, dst, src),
    }
}

/// Fewer tasks than this are not enough: the reduced dims are then split, if there is enough of them.
const FEW_TASKS: usize = 16;
/// The most parts, about, that one result is folded from, so that the partial results of an expanded tensor of any size
/// stay few.
const MAX_FOLD_PARTS: usize = 1 << 20;

/// The most parts that a column reduction is split into.
const MAX_PARTS: usize = 64;
/// Column reductions of more results than this are not split: there is enough to do anyway.
const MAX_SPLIT_COLUMNS: usize = 16 << 10;
/// Rows of few elements are accumulated several at once, into about this many accumulators.
const WIDE: usize = 256;
/// Lines up to this length are reduced many at once.
const SHORT: usize = 32;
/// Accumulators are emptied into the next level after this many rows.
const LEVEL: usize = 64;

struct Job<C> {
    to: Raw,
    from: Raw,
    /// The kept dims; operands: input, output.
    kept: Nest,
    /// The reduced dims of the input, counted from index 0.
    reduced: Nest,
    identity: C,
    fold: FoldFn<C>,
    rows: RowsFn<C>,
}

fn reduce_as<C: Compute>(kernel: &ReduceKernel, dims: &[bool], dst: View<'_>, src: View<'_>) -> Result<()> {
    let (x, y) = (src.layout, dst.layout);
    let part = |l: &Layout, reduced: bool| {
        let mut sizes = Dims::<usize>::new();
        let mut strides = Dims::<isize>::new();
        for d in (0..x.rank()).filter(|&d| dims.get(d).copied().unwrap_or(false) == reduced) {
            sizes.push(x.sizes()[d]);
            strides.push(l.strides()[d]);
        }
        Layout::new(&sizes, &strides, l.offset())
    };
    let (kept, kept_dst, reduced) = (part(x, false)?, part(y, false)?, part(x, true)?);
    let mut job = Job {
        to: dst.raw,
        from: src.raw,
        kept: Nest::plain(&LoopPlan::new(kept.sizes(), &[&kept, &kept_dst])?),
        reduced: Nest::plain(&LoopPlan::new(reduced.sizes(), &[&reduced])?),
        identity: C::identity(kernel),
        fold: C::fold_fn(kernel),
        rows: C::rows_fn(kernel),
    };
    // Both nests start at the input's offset; it is to count once.
    job.reduced.shift(0, -(x.offset() as isize));
    if job.columns() {
        job.by_columns();
    } else {
        job.by_folds();
    }
    Ok(())
}

/// How the elements of one result are cut into parts.
fn fold_parts(rows: usize, len: usize) -> Chunks {
    Chunks::of(rows, len, 1, CHUNK.max((rows * len).div_ceil(MAX_FOLD_PARTS)))
}

impl<C: Compute> Job<C> {
    fn results(&self) -> usize {
        self.kept.rows() * self.kept.len()
    }

    fn reduced_len(&self) -> usize {
        self.reduced.rows() * self.reduced.len()
    }

    /// Whether a kept row and the next reduced row are neighbours in memory.
    fn adjacent(&self) -> bool {
        let width = self.kept.len() as isize;
        self.kept.stride(0) == 1 && self.reduced.stride(0) == width && self.reduced.len() > 1 && width > 1
    }

    /// Whether to accumulate rows of results.
    fn columns(&self) -> bool {
        let (kept, reduced) = (self.kept.stride(0).unsigned_abs(), self.reduced.stride(0).unsigned_abs());
        let denser = kept != 0 && (reduced == 0 || kept < reduced || self.reduced_len() == 1);
        denser && (self.kept.len() >= 8 || self.adjacent())
    }

    fn cost(&self) -> u64 {
        ((self.results() * self.reduced_len()) as u64).saturating_mul(self.from.dtype.size() as u64) / 12
    }

    // ---- Folds ----

    fn by_folds(&self) {
        let (results, n) = (self.results(), self.reduced_len());
        if n <= SHORT && n > 1 && self.reduced.rows() == 1 && self.kept.len() >= 16 {
            return self.by_transposing();
        }
        if results < FEW_TASKS && n >= 4 * CHUNK {
            return self.by_split_folds();
        }
        let chunks = Chunks::of(self.kept.rows(), self.kept.len(), 1, (CHUNK / n).max(1));
        let whole = Chunks::whole(self.reduced.rows(), self.reduced.len());
        team::par_if(self.cost(), chunks.count(), &|i| {
            let mut tile = Tile::new();
            self.for_rows_of_results(chunks.get(i), &mut tile, |at, _| self.fold_part(at, whole.clone()));
        });
    }

    /// Short lines side by side: blocks of them are transposed in a tile, and its rows accumulated.
    fn by_transposing(&self) {
        let n = self.reduced_len();
        let width = self.kept.len().min(C::TILE / n);
        let chunks = Chunks::of(self.kept.rows(), self.kept.len(), 1, CHUNK / n);
        team::par_if(self.cost(), chunks.count(), &|i| {
            let mut tile = Tile::new();
            let values = tile.ptr::<C>();
            self.kept.for_runs(chunks.get(i), |run| {
                for r in 0..run.rows as isize {
                    for c in (0..run.len).step_by(width) {
                        let len = width.min(run.len - c);
                        let at = |k: usize| {
                            run.at[k] + r * self.kept.row_stride(k) + c as isize * self.kept.stride(k)
                        };
                        let mut lines = at(0);
                        self.reduced.for_runs(Chunks::whole(1, n), |run| lines += run.at[0]);
                        let rect = Rect {
                            at: lines,
                            rows: n,
                            row_stride: self.reduced.stride(0),
                            len,
                            stride: self.kept.stride(0),
                        };
                        // SAFETY: the rectangle lies in the input's buffer and is initialised, a tile takes it (n * width <=
                        // TILE); its rows do not overlap. The results' row lies in the output's buffer and belongs to this
                        // chunk alone. `rows` was picked for this processor.
                        unsafe {
                            C::gather(self.from.dtype, self.from.ptr(), rect, values);
                            let (total, rest) =
                                std::slice::from_raw_parts_mut(values, n * len).split_at_mut(len);
                            rest.chunks_exact(len).for_each(|row| (self.rows)(total, row));
                            let out = Rect::row(at(1), len, self.kept.stride(1));
                            C::scatter(self.to.dtype, self.to.ptr(), out, values);
                        }
                    }
                }
            });
        });
    }

    /// Partial results of chunks, then folds of those.
    fn by_split_folds(&self) {
        let (results, parts) = (self.results(), fold_parts(self.reduced.rows(), self.reduced.len()));
        let count = parts.count();
        with_scratch(results * count, |partial: *mut C| {
            let partial = Ptr::new(partial);
            // The input index of each result, in the order of the kept nest's walk.
            let mut starts = Vec::with_capacity(results);
            self.kept.for_runs(Chunks::whole(self.kept.rows(), self.kept.len()), |run| {
                for r in 0..run.rows as isize {
                    for c in 0..run.len as isize {
                        starts.push(run.at[0] + r * self.kept.row_stride(0) + c * self.kept.stride(0));
                    }
                }
            });
            team::par_if(self.cost(), results * count, &|i| {
                let v = self.fold_part(starts[i / count], parts.get(i % count));
                // SAFETY: the scratch has results * count elements; each task writes its own.
                unsafe { *partial.get().add(i) = v }
            });
            let mut tile = Tile::new();
            let whole = Chunks::whole(self.kept.rows(), self.kept.len());
            self.for_rows_of_results(whole, &mut tile, |_, k| {
                // SAFETY: all partial results were written above.
                let parts = unsafe { std::slice::from_raw_parts(partial.get().add(k * count), count) };
                self.fold_slice(self.identity, parts)
            });
        });
    }

    /// Computes results of a chunk (by input index and number within the chunk) into a tile and stores them.
    fn for_rows_of_results(&self, chunk: Chunk, tile: &mut Tile, result: impl Fn(isize, usize) -> C) {
        let values = tile.ptr::<C>();
        let mut k = 0;
        self.kept.for_runs(chunk, |run| {
            for r in 0..run.rows as isize {
                let at = |k: usize| run.at[k] + r * self.kept.row_stride(k);
                for c in (0..run.len).step_by(C::TILE) {
                    let len = C::TILE.min(run.len - c);
                    for i in 0..len {
                        let v = result(at(0) + (c + i) as isize * self.kept.stride(0), k);
                        // SAFETY: a tile has TILE elements.
                        unsafe { *values.add(i) = v };
                        k += 1;
                    }
                    let rect = Rect::row(at(1) + c as isize * self.kept.stride(1), len, self.kept.stride(1));
                    // SAFETY: the row lies in the output's buffer and belongs to this chunk alone.
                    unsafe { C::scatter(self.to.dtype, self.to.ptr(), rect, values) }
                }
            }
        });
    }

    #[inline(always)]
    fn fold_slice(&self, start: C, x: &[C]) -> C {
        // SAFETY: the function was picked for this processor.
        unsafe { (self.fold)(start, x) }
    }

    /// Folds part of the reduced dims, counted from input index `at`.
    fn fold_part(&self, at: isize, part: Chunk) -> C {
        let nest = &self.reduced;
        let (stride, row_stride) = (nest.stride(0), nest.row_stride(0));
        let direct = stride == 1 && self.from.dtype == C::DTYPE;
        let len = part.to - part.from;
        if direct && part.rows.len() == 1 {
            let mut value = self.identity;
            nest.for_runs(part, |run| {
                value = self.fold_slice(self.identity, self.slice(at + run.at[0], run.len))
            });
            return value;
        }
        // Partial results: folded whenever there are LEVEL of them, so that errors do not add up along the way.
        let mut partial = [self.identity; LEVEL];
        let mut n = 0;
        let mut push = |v: C| {
            if n == LEVEL {
                partial[0] = self.fold_slice(self.identity, &partial);
                n = 1;
            }
            partial[n] = v;
            n += 1;
        };
        let mut tile = Tile::new();
        let (rows, tile_len) =
            if len >= C::TILE { (1, C::TILE) } else { (nest.second().min(C::TILE / len), len) };
        nest.for_runs(part, |run| {
            let at = at + run.at[0];
            if direct && run.len >= 128 {
                for r in 0..run.rows as isize {
                    push(self.fold_slice(self.identity, self.slice(at + r * row_stride, run.len)));
                }
                return;
            }
            for r in (0..run.rows).step_by(rows) {
                for c in (0..run.len).step_by(tile_len) {
                    let rect = Rect {
                        at: at + r as isize * row_stride + c as isize * stride,
                        rows: rows.min(run.rows - r),
                        row_stride,
                        len: tile_len.min(run.len - c),
                        stride,
                    };
                    // SAFETY: the rectangle lies in the input's buffer and is initialised; it is no larger than a tile.
                    let values = unsafe {
                        C::gather(self.from.dtype, self.from.ptr(), rect, tile.ptr::<C>());
                        std::slice::from_raw_parts(tile.ptr::<C>(), rect.rows * rect.len)
                    };
                    push(self.fold_slice(self.identity, values));
                }
            }
        });
        self.fold_slice(self.identity, &partial[..n])
    }

    /// Elements of the input as they lie in memory; its dtype is the compute dtype.
    #[inline(always)]
    fn slice(&self, at: isize, len: usize) -> &[C] {
        // SAFETY: the callers pass rows of the input's layout, which lie in its buffer, initialised and not written
        // under the storage's guard; the output is another buffer (a reduction's result is fresh).
        unsafe { std::slice::from_raw_parts(self.from.at::<C>(at), len) }
    }

    // ---- Columns ----

    fn by_columns(&self) {
        let (results, n) = (self.results(), self.reduced_len());
        let tasks = Chunks::of(self.kept.rows(), self.kept.len(), 1, (CHUNK / n).max(WIDE));
        if tasks.count() < FEW_TASKS && results <= MAX_SPLIT_COLUMNS && n >= 16 && results * n >= 4 * CHUNK {
            return self.by_split_columns();
        }
        let whole = Chunks::whole(self.reduced.rows(), self.reduced.len());
        team::par_if(self.cost(), tasks.count(), &|task| {
            let mut tile = Tile::new();
            let values = tile.ptr::<C>();
            self.for_column_blocks(tasks.get(task), |at, out, len| {
                self.column_part(at, len, whole.clone(), values);
                // SAFETY: the row lies in the output's buffer and belongs to this task alone.
                unsafe { self.store_columns(out, len, values) }
            });
        });
    }

    /// Partial results of parts of the reduced dims, combined in their order.
    fn by_split_columns(&self) {
        let (results, n) = (self.results(), self.reduced_len());
        let target = (CHUNK / results).max(n.div_ceil(MAX_PARTS)).max(1);
        let parts = Chunks::of(self.reduced.rows(), self.reduced.len(), 1, target);
        let whole = || Chunks::whole(self.kept.rows(), self.kept.len());
        with_scratch(results * parts.count(), |partial: *mut C| {
            let partial = Ptr::new(partial);
            team::par_if(self.cost(), parts.count(), &|p| {
                let mut k = p * results;
                self.for_column_blocks(whole(), |at, _, len| {
                    // SAFETY: the scratch has `results` elements for each part, which this chunk alone writes.
                    let acc = unsafe { partial.get().add(k) };
                    self.column_part(at, len, parts.get(p), acc);
                    k += len;
                });
            });
            // SAFETY: every part was written above; they do not overlap.
            unsafe {
                let total = std::slice::from_raw_parts_mut(partial.get(), results);
                for p in 1..parts.count() {
                    (self.rows)(total, std::slice::from_raw_parts(partial.get().add(p * results), results));
                }
            }
            let mut k = 0;
            self.for_column_blocks(whole(), |_, out, len| {
                // SAFETY: the scratch holds the totals; the row lies in the output's buffer, which only this thread
                // writes.
                unsafe { self.store_columns(out, len, partial.get().add(k)) }
                k += len;
            });
        });
    }

    /// Walks the results of a chunk in rows of at most a tile: input index, output index, length.
    fn for_column_blocks(&self, chunk: Chunk, mut f: impl FnMut(isize, isize, usize)) {
        self.kept.for_runs(chunk, |run| {
            for r in 0..run.rows as isize {
                for c in (0..run.len).step_by(C::TILE) {
                    let at =
                        |k: usize| run.at[k] + r * self.kept.row_stride(k) + c as isize * self.kept.stride(k);
                    f(at(0), at(1), C::TILE.min(run.len - c));
                }
            }
        });
    }

    /// # Safety
    /// `values` are `len` results of the kept inner loop from output index `at` on, which nobody else writes.
    unsafe fn store_columns(&self, at: isize, len: usize, values: *const C) {
        let rect = Rect::row(at, len, self.kept.stride(1));
        // SAFETY: by the caller's promise.
        unsafe { C::scatter(self.to.dtype, self.to.ptr(), rect, values) }
    }

    /// Accumulates `width` columns, the first at input index `at`, over part of the reduced dims into `out`.
    fn column_part(&self, at: isize, width: usize, part: Chunk, out: *mut C) {
        let nest = &self.reduced;
        // How many reduced rows are accumulated at once: neighbours in memory make one long row.
        let group = if self.adjacent() && width == self.kept.len() { (WIDE / width).max(1) } else { 1 };
        let stride = self.kept.stride(0);
        let direct = stride == 1 && self.from.dtype == C::DTYPE;
        let n = group * width;
        let mut tiles = [const { Tile::new() }; 4];
        let [t0, t1, t2, x] = &mut tiles;
        // SAFETY: width <= TILE, and group > 1 only if n <= WIDE <= TILE; the four tiles are distinct.
        let (acc0, acc1, acc2) = unsafe {
            let acc = |t: &mut Tile| {
                let p = t.ptr::<C>();
                (0..n).for_each(|i| *p.add(i) = self.identity);
                std::slice::from_raw_parts_mut(p, n)
            };
            (acc(t0), acc(t1), acc(t2))
        };
        let (mut n0, mut n1) = (0, 0);
        let mut add = |at: isize, len: usize| {
            let row = if direct {
                self.slice(at, len)
            } else {
                // SAFETY: the row lies in the input's buffer and is initialised; len <= n <= TILE.
                unsafe {
                    let rect = Rect::row(at, len, stride);
                    C::gather(self.from.dtype, self.from.ptr(), rect, x.ptr::<C>());
                    std::slice::from_raw_parts(x.ptr::<C>(), len)
                }
            };
            // SAFETY: the functions were picked for this processor.
            unsafe { (self.rows)(&mut acc0[..len], row) };
            n0 += 1;
            if n0 == LEVEL {
                n0 = 0;
                // SAFETY: as above.
                unsafe { (self.rows)(acc1, acc0) };
                acc0.fill(self.identity);
                n1 += 1;
                if n1 == LEVEL {
                    n1 = 0;
                    // SAFETY: as above.
                    unsafe { (self.rows)(acc2, acc1) };
                    acc1.fill(self.identity);
                }
            }
        };
        nest.for_runs(part, |run| {
            for r in 0..run.rows as isize {
                let at = at + run.at[0] + r * nest.row_stride(0);
                for c in (0..run.len).step_by(group) {
                    add(at + c as isize * nest.stride(0), group.min(run.len - c) * width);
                }
            }
        });
        // SAFETY: as above; `out` takes `width` elements and is no tile of this call.
        unsafe {
            (self.rows)(acc1, acc0);
            (self.rows)(acc2, acc1);
            for g in 1..group {
                let (total, rest) = acc2.split_at_mut(width);
                (self.rows)(total, &rest[(g - 1) * width..g * width]);
            }
            acc2.as_ptr().copy_to_nonoverlapping(out, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_fold_stay_few() {
        for (rows, len) in [(1, 1 << 60), (1 << 60, 1), (1 << 30, 1 << 30), (3, (1 << 50) + 1)] {
            assert!(fold_parts(rows, len).count() <= 2 * MAX_FOLD_PARTS, "{rows} x {len}");
        }
        assert_eq!(fold_parts(100, 5000).count(), Chunks::new(100, 5000, 1).count());
    }
}
