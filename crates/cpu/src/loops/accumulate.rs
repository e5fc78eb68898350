//! Adding one array to another, which may overlap itself.

use stridegrad_core::kernel::RowsFn;
use stridegrad_core::{DType, Int, Layout, LoopPlan, Result, self_overlaps};

use super::elem::{Compute, Rect, Tile};
use super::nest::{Chunk, Nest, TRANSPOSED_ROWS};
use super::{Raw, View};
use crate::team;

crate::reduce_kernel! {
    /// `a + b`.
    static SUM("accumulate", identity: 0.0, int: 0) = |a, b| a + b;
}

/// `dst += src`, of equal sizes and dtype. If `dst` overlaps itself, every contribution counts, in row-major order.
pub(crate) fn accumulate(dst: View<'_>, src: View<'_>) -> Result<()> {
    match dst.dtype() {
        DType::F64 => accumulate_as::<f64>(dst, src),
        d if d.is_floating() => accumulate_as::<f32>(dst, src),
        _ => accumulate_as::<Int>(dst, src),
    }
}

/// Adds rectangles of one operand to another.
pub(crate) struct Add<C> {
    to: Raw,
    from: Raw,
    rows: RowsFn<C>,
    /// Both are of the compute dtype, in different buffers.
    plain: bool,
}

fn accumulate_as<C: Compute>(dst: View<'_>, src: View<'_>) -> Result<()> {
    if dst.layout.is_empty() {
        return Ok(());
    }
    let add = Add::<C>::new(dst.raw, src.raw);
    if !dst.layout.is_non_overlapping_and_dense() && self_overlaps(dst.layout) {
        add.in_order(dst.layout, src.layout);
        return Ok(());
    }
    let nest = Nest::new(&LoopPlan::new(dst.sizes(), &[dst.layout, src.layout])?);
    let chunks = nest.chunks(if nest.transposed { TRANSPOSED_ROWS } else { 1 });
    let cost = (nest.rows() * nest.len() * dst.dtype().size()) as u64 / 5;
    // SAFETY: the nest reaches elements of the layouts only; the output does not overlap itself, so that chunks write
    // disjoint elements.
    team::par_if(cost, chunks.count(), &|i| unsafe { add.chunk(&nest, chunks.get(i), [0, 0]) });
    Ok(())
}

impl<C: Compute> Add<C> {
    pub(crate) fn new(to: Raw, from: Raw) -> Add<C> {
        let plain = to.dtype == C::DTYPE && from.dtype == C::DTYPE && to.ptr() != from.ptr();
        Add { to, from, rows: C::rows_fn(&SUM), plain }
    }

    /// Adds a chunk of a nest of two operands (output, input), both shifted by some elements.
    ///
    /// # Safety
    /// The shifted elements lie in their buffers; those of the output are distinct and written by this thread alone.
    pub(crate) unsafe fn chunk(&self, nest: &Nest, chunk: Chunk, shift: [isize; 2]) {
        let direct = |k: usize| self.plain && nest.stride(k) == 1;
        let (rows, len) = match nest.len() {
            n if nest.transposed => (nest.second().min(C::TILE / 64), n.min(64)),
            n if direct(0) && direct(1) => (1, n),
            n if n >= C::TILE => (1, C::TILE),
            n => (nest.second().min(C::TILE / n), n),
        };
        nest.for_runs(chunk, |run| {
            nest.for_parts(&run, rows, len, |part| {
                let rect = |k: usize| {
                    let rect = nest.rect(&run, part, k);
                    Rect { at: rect.at + shift[k], ..rect }
                };
                // SAFETY: by the caller's promise.
                unsafe { self.rect(rect(0), rect(1)) }
            });
        });
    }

    /// Adds a rectangle, no larger than a tile unless both are single contiguous rows.
    ///
    /// # Safety
    /// Both lie in their buffers, the output's is written by this thread alone, and its elements are distinct.
    unsafe fn rect(&self, to: Rect, from: Rect) {
        let n = to.rows * to.len;
        let (mut sum, mut term) = (Tile::new(), Tile::new());
        let direct = |r: Rect| self.plain && r.stride == 1 && (r.rows == 1 || r.row_stride == r.len as isize);
        // SAFETY: by the caller's promise; a tile takes n elements where it is used. The two slices do not overlap: each
        // is a tile of its own or lies in a buffer of its own. `rows` was picked for this processor.
        unsafe {
            let x = if direct(from) {
                self.from.at::<C>(from.at)
            } else {
                C::gather(self.from.dtype, self.from.ptr(), from, term.ptr::<C>());
                term.ptr::<C>()
            };
            let x = std::slice::from_raw_parts(x, n);
            if direct(to) {
                (self.rows)(std::slice::from_raw_parts_mut(self.to.at::<C>(to.at), n), x);
            } else {
                C::gather(self.to.dtype, self.to.ptr(), to, sum.ptr::<C>());
                (self.rows)(std::slice::from_raw_parts_mut(sum.ptr::<C>(), n), x);
                C::scatter(self.to.dtype, self.to.ptr(), to, sum.ptr::<C>());
            }
        }
    }

    /// Row-major, on this thread. The elements of a row are distinct unless its stride is 0.
    fn in_order(&self, dst: &Layout, src: &Layout) {
        let last = dst.rank().saturating_sub(1); // only a layout with dims overlaps itself
        let (n, strides) = (dst.sizes()[last], [dst.strides()[last], src.strides()[last]]);
        let step = if strides[0] == 0 { 1 } else { C::TILE.min(n) };
        let (mut to, mut from) = (dst.offsets(), src.offsets());
        for _ in 0..dst.numel() / n {
            let (Some(a), Some(b)) = (to.next(), from.next()) else { return };
            for c in (0..n).step_by(step) {
                let len = step.min(n - c);
                let rect =
                    |at: usize, stride: isize| Rect::row(at as isize + c as isize * stride, len, stride);
                // SAFETY: the rows lie in their buffers; only this thread writes, and a row's elements are distinct.
                unsafe { self.rect(rect(a, strides[0]), rect(b, strides[1])) }
            }
            // On to the next row.
            to.by_ref().take(n - 1).for_each(drop);
            from.by_ref().take(n - 1).for_each(drop);
        }
    }
}
