//! Selecting, gathering and scattering by index along a dim. Every index is checked before the first write.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{DType, Dims, Error, ErrorKind, Int, Layout, LoopPlan, Result};

use super::accumulate::Add;
use super::copy::move_rect;
use super::elem::{Compute, Elem, Rect, Tile, with_elem};
use super::nest::{Chunk, Chunks, Nest};
use super::{CHUNK, View, without_dim};
use crate::team;

/// One indexing pass along `dim`; operands as [`IndexPass`] says.
pub(crate) fn index(pass: IndexPass, dim: usize, dst: View<'_>, x: View<'_>, index: View<'_>) -> Result<()> {
    let (op, indexed) = match pass {
        IndexPass::Select => ("index_select", x),
        IndexPass::Gather => ("gather", x),
        IndexPass::Add => ("index_add", dst),
        IndexPass::ScatterAdd => ("scatter_add", dst),
        IndexPass::Scatter => ("scatter", dst),
        other => {
            let text = format!("the CPU backend has no {other:?}");
            return Err(Error::new(ErrorKind::Unsupported, "index", text));
        }
    };
    check(op, index, dim, indexed.sizes()[dim])?;
    if index.layout.is_empty() || x.layout.is_empty() || dst.layout.is_empty() {
        return Ok(());
    }
    match pass {
        IndexPass::Select => match x.dtype().size() {
            1 => select::<u8>(dim, dst, x, index),
            2 => select::<u16>(dim, dst, x, index),
            4 => select::<u32>(dim, dst, x, index),
            _ => select::<u64>(dim, dst, x, index),
        },
        IndexPass::Gather => match x.dtype().size() {
            1 => gather::<u8>(dim, dst, x, index),
            2 => gather::<u16>(dim, dst, x, index),
            4 => gather::<u32>(dim, dst, x, index),
            _ => gather::<u64>(dim, dst, x, index),
        },
        IndexPass::Add => match x.dtype() {
            DType::F64 => add::<f64>(dim, dst, x, index),
            d if d.is_floating() => add::<f32>(dim, dst, x, index),
            _ => add::<Int>(dim, dst, x, index),
        },
        IndexPass::Scatter => match x.dtype().size() {
            1 => scatter::<u8>(dim, dst, x, index, |_, v| v),
            2 => scatter::<u16>(dim, dst, x, index, |_, v| v),
            4 => scatter::<u32>(dim, dst, x, index, |_, v| v),
            _ => scatter::<u64>(dim, dst, x, index, |_, v| v),
        },
        _ => with_elem!(x.dtype(), T => {
            if x.dtype().is_floating() {
                scatter::<T>(dim, dst, x, index, sum::<f64, T>)
            } else {
                scatter::<T>(dim, dst, x, index, sum::<Int, T>)
            }
        }),
    }
}

// For floats narrower than f64 the sum is exact or correctly rounded to twice the bits first, and rounding again to
// the element type gives what one rounding gives.
#[inline(always)]
fn sum<C: Compute, T: Elem<C>>(a: T, b: T) -> T {
    T::store(a.load() + b.load())
}

/// Refuses an index outside `0..size`.
pub(crate) fn check(op: &'static str, index: View<'_>, dim: usize, size: usize) -> Result<()> {
    if index.layout.is_empty() {
        return Ok(());
    }
    let nest = Nest::plain(&LoopPlan::new(index.sizes(), &[index.layout])?);
    let bad = AtomicBool::new(false);
    let chunks = nest.chunks(1);
    team::par_if(index.layout.numel() as u64 / 2, chunks.count(), &|i| {
        let mut tile = Tile::new();
        nest.for_runs(chunks.get(i), |run| {
            for r in 0..run.rows as isize {
                for c in (0..run.len).step_by(Int::TILE) {
                    let at = run.at[0] + r * nest.row_stride(0) + c as isize * nest.stride(0);
                    let rect = Rect::row(at, Int::TILE.min(run.len - c), nest.stride(0));
                    // SAFETY: the row lies in the index's buffer; a tile takes it.
                    let row = unsafe {
                        Int::gather(index.raw.dtype, index.raw.ptr(), rect, tile.ptr::<Int>());
                        std::slice::from_raw_parts(tile.ptr::<Int>(), rect.len)
                    };
                    if row.iter().fold(false, |bad, i| bad | (i.0 as u64 >= size as u64)) {
                        bad.store(true, Relaxed);
                    }
                }
            }
        });
    });
    if bad.load(Relaxed) { Err(out_of_range(op, index, dim, size)) } else { Ok(()) }
}

/// Names the first bad index, in row-major order.
#[cold]
fn out_of_range(op: &'static str, index: View<'_>, dim: usize, size: usize) -> Error {
    // SAFETY: the layout's elements lie in the buffer.
    let mut all = index.layout.offsets().map(|o| unsafe { *index.raw.at::<i64>(o as isize) });
    let first = all.find(|&i| i as u64 >= size as u64).unwrap_or(-1);
    Error::new(
        ErrorKind::Index,
        op,
        format!("index {first} is out of bounds for dimension {dim} with size {size}"),
    )
    .hint("indices count from 0; negative ones do not wrap here")
}

/// Index `i` of a 1-D index.
///
/// # Safety
/// `i` is within it.
#[inline(always)]
unsafe fn index_at(index: &View<'_>, i: usize) -> isize {
    let at = index.layout.offset() as isize + i as isize * index.layout.strides()[0];
    // SAFETY: by the caller's promise the element lies in the buffer.
    unsafe { *index.raw.at::<i64>(at) as isize }
}

fn others(dim: usize, operands: &[&Layout]) -> Result<Nest> {
    let mut layouts = [Layout::scalar(); 3];
    for (to, l) in layouts.iter_mut().zip(operands) {
        *to = without_dim(l, dim)?;
    }
    let sizes = layouts[0];
    let list = [&layouts[0], &layouts[1], &layouts[2]];
    Ok(Nest::plain(&LoopPlan::new(sizes.sizes(), &list[..operands.len()])?))
}

fn select<T: Copy + Send + Sync + 'static>(
    dim: usize,
    dst: View<'_>,
    x: View<'_>,
    index: View<'_>,
) -> Result<()> {
    let nest = others(dim, &[dst.layout, x.layout])?;
    let n = index.sizes()[0];
    let (to_step, from_step) = (dst.layout.strides()[dim], x.layout.strides()[dim]);
    let (to, from) = (dst.raw, x.raw);
    let slab = nest.rows() * nest.len();
    let cost = (slab * n * size_of::<T>()) as u64 / 6;
    // Along the dim where the result lies densest along it, else slab by slab.
    if nest.stride(0).unsigned_abs() > to_step.unsigned_abs() && slab > 1 {
        let chunks = Chunks::of(nest.rows(), nest.len(), 1, (CHUNK / n).max(1));
        team::par_if(cost, chunks.count(), &|chunk| {
            nest.for_runs(chunks.get(chunk), |run| {
                for (r, c) in (0..run.rows as isize).flat_map(|r| (0..run.len as isize).map(move |c| (r, c)))
                {
                    let at = |k: usize| run.at[k] + r * nest.row_stride(k) + c * nest.stride(k);
                    for i in 0..n {
                        // SAFETY: indices are checked, so that both elements lie in their buffers; chunks write
                        // disjoint elements.
                        unsafe {
                            *to.at::<T>(at(0) + i as isize * to_step) =
                                *from.at::<T>(at(1) + index_at(&index, i) * from_step);
                        }
                    }
                }
            });
        });
        return Ok(());
    }
    let (parts, per) = (nest.chunks(1), (CHUNK / slab).max(1));
    let groups = n.div_ceil(per);
    team::par_if(cost, parts.count() * groups, &|task| {
        let (part, group) = (parts.get(task / groups), task % groups);
        for i in group * per..n.min((group + 1) * per) {
            // SAFETY: `i` is within the index.
            let j = unsafe { index_at(&index, i) };
            nest.for_runs(part.clone(), |run| {
                let rect = |k: usize, shift: isize| {
                    let rect = nest.rect(&run, run.whole(), k);
                    Rect { at: rect.at + shift, ..rect }
                };
                let (a, b) = (rect(0, i as isize * to_step), rect(1, j * from_step));
                // SAFETY: indices are checked, so that both rectangles lie in their buffers, which differ (the result
                // is fresh); tasks write disjoint elements.
                unsafe { move_rect::<T>(to.ptr().cast(), a, from.ptr().cast(), b) }
            });
        }
    });
    Ok(())
}

fn gather<T: Copy + Send + Sync + 'static>(
    dim: usize,
    dst: View<'_>,
    x: View<'_>,
    index: View<'_>,
) -> Result<()> {
    // The input without the dim, over the result's other sizes.
    let mut strides = Dims::from_slice(x.layout.strides()).unwrap_or_default();
    let step = std::mem::take(&mut strides[dim]);
    let still = Layout::new(dst.sizes(), &strides, x.layout.offset())?;
    let nest = Nest::plain(&LoopPlan::new(dst.sizes(), &[dst.layout, &still, index.layout])?);
    let chunks = nest.chunks(1);
    let cost = (nest.rows() * nest.len()) as u64;
    team::par_if(cost, chunks.count(), &|i| {
        nest.for_runs(chunks.get(i), |run| {
            for r in 0..run.rows as isize {
                let at = |k: usize| run.at[k] + r * nest.row_stride(k);
                for c in 0..run.len as isize {
                    // SAFETY: indices are checked, so that all three elements lie in their buffers; chunks write
                    // disjoint elements.
                    unsafe {
                        let j = *index.raw.at::<i64>(at(2) + c * nest.stride(2)) as isize;
                        *dst.raw.at::<T>(at(0) + c * nest.stride(0)) =
                            *x.raw.at::<T>(at(1) + c * nest.stride(1) + j * step);
                    }
                }
            }
        });
    });
    Ok(())
}

/// `dst[.., index, ..] = put(dst[.., index, ..], x)` in the order of the dim.
fn scatter<T: Copy + Send + Sync + 'static>(
    dim: usize,
    dst: View<'_>,
    x: View<'_>,
    index: View<'_>,
    put: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    let n = x.sizes()[dim];
    let (x0, i0) = (without_dim(x.layout, dim)?, without_dim(index.layout, dim)?);
    // The destination may be larger along the other dims.
    let d0 = without_dim(dst.layout, dim)?;
    let d0 = Layout::new(x0.sizes(), d0.strides(), d0.offset())?;
    let nest = Nest::plain(&LoopPlan::new(x0.sizes(), &[&d0, &x0, &i0])?);
    let steps = [dst.layout, x.layout, index.layout].map(|l| l.strides()[dim]);
    // Lines along the dim are independent; one is done in order, by one thread.
    let chunks = Chunks::of(nest.rows(), nest.len(), 1, (CHUNK / n).max(1));
    let cost = ((nest.rows() * nest.len() * n) as u64).saturating_mul(2);
    team::par_if(cost, chunks.count(), &|i| {
        nest.for_runs(chunks.get(i), |run| {
            for (r, c0) in (0..run.rows as isize).flat_map(|r| (0..run.len).step_by(64).map(move |c| (r, c)))
            {
                let at = |k: usize| run.at[k] + r * nest.row_stride(k) + c0 as isize * nest.stride(k);
                let (to, from, by) = (at(0), at(1), at(2));
                for i in 0..n as isize {
                    for c in 0..64.min(run.len - c0) as isize {
                        // SAFETY: indices are checked, so that all three elements lie in their buffers; lines of
                        // different chunks are disjoint, since the destination does not overlap itself.
                        unsafe {
                            let j = *index.raw.at::<i64>(by + i * steps[2] + c * nest.stride(2)) as isize;
                            let p = dst.raw.at::<T>(to + j * steps[0] + c * nest.stride(0));
                            *p = put(*p, *x.raw.at::<T>(from + i * steps[1] + c * nest.stride(1)));
                        }
                    }
                }
            }
        });
    });
    Ok(())
}

/// `dst[.., index[i], ..] += x[.., i, ..]`, in the order of `i` for each place.
fn add<C: Compute>(dim: usize, dst: View<'_>, x: View<'_>, index: View<'_>) -> Result<()> {
    let nest = others(dim, &[dst.layout, x.layout])?;
    let (n, places) = (index.sizes()[0], dst.sizes()[dim]);
    let steps = [dst.layout, x.layout].map(|l| l.strides()[dim]);
    let adder = Add::<C>::new(dst.raw, x.raw);
    // Tasks own ranges of places and parts of the other dims, so that nobody adds to another's elements.
    let parts = nest.chunks(1);
    let slab = nest.rows() * nest.len();
    let ranges = if slab * n >= 4 * CHUNK && parts.count() < 8 { places.min(8) } else { 1 };
    let cost = (slab as u64 * n as u64).saturating_mul(2).saturating_add(10 * n as u64);
    team::par_if(cost, parts.count() * ranges, &|task| {
        let (part, range) = (parts.get(task / ranges), task % ranges);
        let (low, high) = (places * range / ranges, places * (range + 1) / ranges);
        for i in 0..n {
            // SAFETY: `i` is within the index.
            let j = unsafe { index_at(&index, i) };
            if (low as isize..high as isize).contains(&j) {
                add_slab(&adder, &nest, part.clone(), [j * steps[0], i as isize * steps[1]]);
            }
        }
    });
    Ok(())
}

fn add_slab<C: Compute>(adder: &Add<C>, nest: &Nest, part: Chunk, shift: [isize; 2]) {
    // SAFETY: indices are checked, so that the shifted rectangles lie in their buffers; the caller's task alone writes
    // these elements, which are distinct since the destination does not overlap itself.
    unsafe { adder.chunk(nest, part, shift) }
}
