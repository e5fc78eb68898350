//! Copies and casts between any strides, and fills.

use stridegrad_core::{DType, Int, LoopPlan, Result, Scalar, self_overlaps};

use super::elem::{Compute, Elem, Rect, Tile, with_elem};
use super::nest::{Chunk, Nest, TRANSPOSED_ROWS};
use super::transpose::transpose;
use super::{Raw, View};
use crate::team;

/// Copies `src`, broadcast, into `dst`, converting the dtype.
pub(crate) fn copy(dst: View<'_>, src: View<'_>) -> Result<()> {
    if dst.layout.is_empty() {
        return Ok(());
    }
    let (to, from) = (dst.raw, src.raw);
    let nest = Nest::new(&LoopPlan::new(dst.sizes(), &[dst.layout, src.layout])?);
    if to.dtype == from.dtype {
        match to.dtype.size() {
            1 => move_as::<u8>(&nest, to, from),
            2 => move_as::<u16>(&nest, to, from),
            4 => move_as::<u32>(&nest, to, from),
            _ => move_as::<u64>(&nest, to, from),
        }
        return Ok(());
    }
    // By way of the type that holds every value of the source.
    match from.dtype {
        DType::F64 => cast_by::<f64>(&nest, to, from),
        d if d.is_floating() => cast_by::<f32>(&nest, to, from),
        _ => cast_by::<Int>(&nest, to, from),
    }
    Ok(())
}

fn cost(nest: &Nest, bytes: usize) -> u64 {
    let strided = if nest.transposed { 3 } else { 1 };
    ((nest.rows() * nest.len()) as u64).saturating_mul((bytes * strided) as u64) / 16
}

fn move_as<T: Copy + Send + Sync + 'static>(nest: &Nest, to: Raw, from: Raw) {
    let chunks = nest.chunks(if nest.transposed { TRANSPOSED_ROWS } else { 1 });
    team::par_if(cost(nest, 2 * size_of::<T>()), chunks.count(), &|i| {
        nest.for_runs(chunks.get(i), |run| {
            let rect = |k: usize| nest.rect(&run, run.whole(), k);
            // SAFETY: both rectangles lie in their buffers (the plan reaches layout elements only); chunks write
            // disjoint elements, and the source is read under its guard. Where both are the same elements, each is
            // read before it is written.
            unsafe { move_rect::<T>(to.ptr().cast(), rect(0), from.ptr().cast(), rect(1)) }
        });
    });
}

/// Copies a rectangle.
///
/// # Safety
/// Both rectangles have the same shape and lie in memory that may be written and read; they are the same elements or do
/// not overlap.
pub(crate) unsafe fn move_rect<T: Copy + 'static>(dst: *mut T, to: Rect, src: *const T, from: Rect) {
    if to.stride == 1 && from.row_stride == 1 && from.stride != 1 && to.rows > 1 {
        // SAFETY: passed on. The rectangles are not the same elements, since their strides differ.
        unsafe {
            transpose(dst.offset(to.at), to.row_stride, src.offset(from.at), from.stride, to.rows, to.len)
        };
        return;
    }
    for r in 0..to.rows as isize {
        // SAFETY: by the caller's promise.
        unsafe {
            let d = dst.offset(to.at + r * to.row_stride);
            let s = src.offset(from.at + r * from.row_stride);
            match (to.stride, from.stride) {
                (1, 1) => s.copy_to(d, to.len),
                (1, 0) => {
                    let v = *s;
                    (0..to.len).for_each(|i| *d.add(i) = v);
                }
                (a, b) => (0..to.len as isize).for_each(|i| *d.offset(i * a) = *s.offset(i * b)),
            }
        }
    }
}

fn cast_by<C: Compute>(nest: &Nest, to: Raw, from: Raw) {
    let bytes = to.dtype.size() + from.dtype.size();
    let chunks = nest.chunks(if nest.transposed { TRANSPOSED_ROWS } else { 1 });
    team::par_if(cost(nest, 3 * bytes), chunks.count(), &|i| cast_chunk::<C>(nest, chunks.get(i), to, from));
}

fn cast_chunk<C: Compute>(nest: &Nest, chunk: Chunk, to: Raw, from: Raw) {
    let mut tile = Tile::new();
    let (rows, len) = match nest.len() {
        n if nest.transposed => (nest.second().min(8), n.min(64)),
        n if n >= C::TILE => (1, C::TILE),
        n => (nest.second().min(C::TILE / n), n),
    };
    nest.for_runs(chunk, |run| {
        nest.for_parts(&run, rows, len, |part| {
            // SAFETY: rectangles lie in their buffers and are no larger than a tile; this chunk alone writes its part of the
            // output. Same elements in one buffer are read into the tile before they are written.
            unsafe {
                C::gather(from.dtype, from.ptr(), nest.rect(&run, part, 1), tile.ptr::<C>());
                C::scatter(to.dtype, to.ptr(), nest.rect(&run, part, 0), tile.ptr::<C>());
            }
        });
    });
}

/// Writes `value`, converted to the dtype, into every element. The layout may overlap itself.
pub(crate) fn fill(dst: View<'_>, value: Scalar) -> Result<()> {
    if dst.layout.is_empty() {
        return Ok(());
    }
    let to = dst.raw;
    let nest = Nest::new(&LoopPlan::new(dst.sizes(), &[dst.layout])?);
    // Elements written twice must not be written by two threads.
    let shared = !dst.layout.is_non_overlapping_and_dense() && self_overlaps(dst.layout);
    with_elem!(to.dtype, T => fill_as::<T>(&nest, to, convert::<T>(value), shared));
    Ok(())
}

fn convert<T: Elem<Int> + Elem<f64>>(value: Scalar) -> T {
    match value {
        Scalar::Float(v) => <T as Elem<f64>>::store(v),
        other => <T as Elem<Int>>::store(Int(other.to_i64())),
    }
}

fn fill_as<T: Copy + Send + Sync + 'static>(nest: &Nest, to: Raw, value: T, shared: bool) {
    let chunks = nest.chunks(1);
    let cost = if shared { 0 } else { cost(nest, size_of::<T>()) };
    team::par_if(cost, chunks.count(), &|i| {
        nest.for_runs(chunks.get(i), |run| {
            let (row_stride, stride) = (nest.row_stride(0), nest.stride(0));
            for r in 0..run.rows as isize {
                // SAFETY: the row lies in the buffer, under the storage's write guard; no other chunk writes it, or
                // (cost 0) all chunks run on this thread.
                unsafe {
                    let p = to.at::<T>(run.at[0] + r * row_stride);
                    if stride == 1 {
                        (0..run.len).for_each(|i| *p.add(i) = value);
                    } else {
                        (0..run.len as isize).for_each(|i| *p.offset(i * stride) = value);
                    }
                }
            }
        });
    });
}
