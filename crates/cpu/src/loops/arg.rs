//! Positions of extremes along a dim.

use stridegrad_core::kernel::{Extreme, FoldFn};
use stridegrad_core::{DType, Int, LoopPlan, Result};

use super::elem::{Compute, Rect, Tile};
use super::nest::{Chunk, Chunks, Nest};
use super::{CHUNK, Raw, View, without_dim};
use crate::isa::multiversion;
use crate::team;

crate::reduce_kernel! {
    /// The largest; NaN if there is one.
    static LARGEST("argmax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
    /// The smallest; NaN if there is one.
    static SMALLEST("argmin", identity: f64::INFINITY, int: i64::MAX) = |a, b| a.min(b);
}

/// Columns that are searched at once.
const COLUMNS: usize = 256;

/// The position of the first extreme along `dim`, and its value.
pub(crate) fn arg_reduce(
    which: Extreme,
    dim: usize,
    index: View<'_>,
    value: Option<View<'_>>,
    src: View<'_>,
) -> Result<()> {
    if index.layout.is_empty() || src.layout.is_empty() {
        return Ok(());
    }
    match src.dtype() {
        DType::F64 => search::<f64>(which, dim, index, value, src),
        d if d.is_floating() => search::<f32>(which, dim, index, value, src),
        _ => search::<Int>(which, dim, index, value, src),
    }
}

struct Search<C> {
    which: Extreme,
    extreme: FoldFn<C>,
    src: Raw,
    index: Raw,
    value: Option<Raw>,
    /// The other dims; operands: input, positions, values.
    kept: Nest,
    n: usize,
    stride: isize,
}

fn search<C: Compute>(
    which: Extreme,
    dim: usize,
    index: View<'_>,
    value: Option<View<'_>>,
    src: View<'_>,
) -> Result<()> {
    let kept = [
        without_dim(src.layout, dim)?,
        without_dim(index.layout, dim)?,
        without_dim(value.unwrap_or(index).layout, dim)?,
    ];
    let job = Search::<C> {
        which,
        extreme: C::fold_fn(if which == Extreme::Max { &LARGEST } else { &SMALLEST }),
        src: src.raw,
        index: index.raw,
        value: value.map(|v| v.raw),
        kept: Nest::plain(&LoopPlan::new(kept[0].sizes(), &[&kept[0], &kept[1], &kept[2]])?),
        n: src.sizes()[dim],
        stride: src.layout.strides()[dim],
    };
    let across = job.kept.stride(0).unsigned_abs();
    let columns = across != 0 && across < job.stride.unsigned_abs() && job.kept.len() >= 8;
    let per = (CHUNK / job.n).max(if columns { COLUMNS } else { 1 });
    let chunks = Chunks::of(job.kept.rows(), job.kept.len(), 1, per);
    let cost = (job.kept.rows() * job.kept.len() * job.n) as u64 / 4;
    team::par_if(cost, chunks.count(), &|i| job.chunk(chunks.get(i), columns));
    Ok(())
}

impl<C: Compute> Search<C> {
    fn chunk(&self, chunk: Chunk, columns: bool) {
        let (mut best, mut at, mut tile) = ([C::lit(0.0); COLUMNS], [Int(0); COLUMNS], Tile::new());
        self.kept.for_runs(chunk, |run| {
            for r in 0..run.rows as isize {
                for c in (0..run.len).step_by(COLUMNS) {
                    let len = COLUMNS.min(run.len - c);
                    let row = |k: usize| {
                        let at = run.at[k] + r * self.kept.row_stride(k) + c as isize * self.kept.stride(k);
                        Rect::row(at, len, self.kept.stride(k))
                    };
                    if columns {
                        self.columns(row(0), &mut best, &mut at, &mut tile);
                    } else {
                        for i in 0..len {
                            let start = row(0).at + i as isize * row(0).stride;
                            (best[i], at[i]) = self.line(start, &mut tile);
                        }
                    }
                    // SAFETY: the rows lie in the results' buffers, and this chunk alone writes them.
                    unsafe {
                        Int::scatter(self.index.dtype, self.index.ptr(), row(1), at.as_ptr());
                        if let Some(value) = self.value {
                            C::scatter(value.dtype, value.ptr(), row(2), best.as_ptr());
                        }
                    }
                }
            }
        });
    }

    /// Loads a row of the input.
    fn load<'t>(&self, rect: Rect, tile: &'t mut Tile) -> &'t [C] {
        // SAFETY: the callers pass rows of the input's layout, no longer than a tile.
        unsafe {
            C::gather(self.src.dtype, self.src.ptr(), rect, tile.ptr::<C>());
            std::slice::from_raw_parts(tile.ptr::<C>(), rect.len)
        }
    }

    /// The extreme of the line that starts at an input index.
    fn line(&self, start: isize, tile: &mut Tile) -> (C, Int) {
        let mut best: Option<(C, usize)> = None;
        for from in (0..self.n).step_by(C::TILE) {
            let rect =
                Rect::row(start + from as isize * self.stride, C::TILE.min(self.n - from), self.stride);
            let x = self.load(rect, tile);
            // SAFETY: the function was picked for this processor.
            let extreme = unsafe { (self.extreme)(x[0], x) };
            let wins = best.is_none_or(|(b, _)| match self.which {
                Extreme::Max => beats::<C, true>(extreme, b),
                Extreme::Min => beats::<C, false>(extreme, b),
            });
            if wins {
                let same = |v: &C| v.eq(extreme) || v.is_nan() && extreme.is_nan();
                let at = x.iter().position(same).unwrap_or(0);
                best = Some((x[at], from + at));
            }
        }
        best.map_or((C::lit(0.0), Int(0)), |(v, i)| (v, Int(i as i64)))
    }

    /// The extremes of neighbouring lines.
    fn columns(&self, first: Rect, best: &mut [C; COLUMNS], at: &mut [Int; COLUMNS], tile: &mut Tile) {
        best[..first.len].copy_from_slice(self.load(first, tile));
        at.fill(Int(0));
        for i in 1..self.n {
            let x = self.load(Rect { at: first.at + i as isize * self.stride, ..first }, tile);
            // SAFETY: safe slices; the function picks what the processor has.
            unsafe {
                match self.which {
                    Extreme::Max => larger(&mut best[..x.len()], &mut at[..x.len()], x, i as i64),
                    Extreme::Min => smaller(&mut best[..x.len()], &mut at[..x.len()], x, i as i64),
                }
            }
        }
    }
}

/// Whether `x` is the new extreme: NaN beats every number, equals do not.
#[inline(always)]
fn beats<C: Compute, const MAX: bool>(x: C, best: C) -> bool {
    let ahead = if MAX { x.gt(best) } else { x.lt(best) };
    ahead | (x.is_nan() & !best.is_nan())
}

#[inline(always)]
unsafe fn update<C: Compute, const MAX: bool>(best: &mut [C], at: &mut [Int], x: &[C], i: i64) {
    for ((best, at), &x) in best.iter_mut().zip(at).zip(x) {
        let wins = beats::<C, MAX>(x, *best);
        *best = if wins { x } else { *best };
        *at = Int(if wins { i } else { at.0 });
    }
}
#[inline(always)]
unsafe fn larger_body<C: Compute>(best: &mut [C], at: &mut [Int], x: &[C], i: i64) {
    // SAFETY: `update` only works on slices.
    unsafe { update::<C, true>(best, at, x, i) }
}
#[inline(always)]
unsafe fn smaller_body<C: Compute>(best: &mut [C], at: &mut [Int], x: &[C], i: i64) {
    // SAFETY: as above.
    unsafe { update::<C, false>(best, at, x, i) }
}
multiversion!(fn larger<C: Compute>(best: &mut [C], at: &mut [Int], x: &[C], i: i64) = larger_body::<C>);
multiversion!(fn smaller<C: Compute>(best: &mut [C], at: &mut [Int], x: &[C], i: i64) = smaller_body::<C>);
