//! Running reductions along a dim.

use stridegrad_core::kernel::{RowsFn, Scan};
use stridegrad_core::{DType, Error, ErrorKind, Int, LoopPlan, Result};

use super::elem::{Compute, Rect, Tile};
use super::nest::{Chunk, Chunks, Nest};
use super::{CHUNK, Raw, View, without_dim};
use crate::team;

crate::reduce_kernel! {
    /// `a + b`.
    static SUM("cumsum", identity: 0.0, int: 0) = |a, b| a + b;
    /// `a * b`.
    static PROD("cumprod", identity: 1.0, int: 1) = |a, b| a * b;
}

/// Running sums or products of `src` along `dim`, in order.
pub(crate) fn scan(scan: Scan, dim: usize, dst: View<'_>, src: View<'_>) -> Result<()> {
    if dst.layout.is_empty() {
        return Ok(());
    }
    match src.dtype() {
        DType::F64 => scan_as::<f64>(scan, dim, dst, src),
        d if d.is_floating() => scan_as::<f32>(scan, dim, dst, src),
        _ => scan_as::<Int>(scan, dim, dst, src),
    }
}

struct Job<C> {
    to: Raw,
    from: Raw,
    rows: RowsFn<C>,
    combine: fn(C, C) -> C,
    identity: C,
    /// The other dims; operands: input, output.
    kept: Nest,
    n: usize,
    /// Strides along the dim: input, output.
    strides: [isize; 2],
}

fn scan_as<C: Compute>(scan: Scan, dim: usize, dst: View<'_>, src: View<'_>) -> Result<()> {
    let (kernel, combine): (_, fn(C, C) -> C) = match scan {
        Scan::Sum => (&SUM, |a, b| a + b),
        Scan::Prod => (&PROD, |a, b| a * b),
        other => {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "scan",
                format!("the CPU backend has no {other:?}"),
            ));
        }
    };
    let (x, y) = (without_dim(src.layout, dim)?, without_dim(dst.layout, dim)?);
    let job = Job::<C> {
        to: dst.raw,
        from: src.raw,
        rows: C::rows_fn(kernel),
        combine,
        identity: C::identity(kernel),
        kept: Nest::plain(&LoopPlan::new(x.sizes(), &[&x, &y])?),
        n: src.sizes()[dim],
        strides: [src.layout.strides()[dim], dst.layout.strides()[dim]],
    };
    let across = job.kept.stride(0).unsigned_abs();
    let columns = across != 0 && across < job.strides[0].unsigned_abs() && job.kept.len() >= 8;
    let chunks =
        Chunks::of(job.kept.rows(), job.kept.len(), 1, (CHUNK / job.n).max(if columns { 256 } else { 1 }));
    let cost = (job.kept.rows() * job.kept.len() * job.n) as u64;
    team::par_if(cost, chunks.count(), &|i| job.chunk(chunks.get(i), columns));
    Ok(())
}

impl<C: Compute> Job<C> {
    fn chunk(&self, chunk: Chunk, columns: bool) {
        self.kept.for_runs(chunk, |run| {
            for r in 0..run.rows as isize {
                let width = if columns { C::TILE.min(run.len) } else { 1 };
                for c in (0..run.len).step_by(width) {
                    let row = |k: usize| {
                        let at = run.at[k] + r * self.kept.row_stride(k) + c as isize * self.kept.stride(k);
                        Rect::row(at, width.min(run.len - c), self.kept.stride(k))
                    };
                    if columns { self.columns(row(0), row(1)) } else { self.line(row(0).at, row(1).at) }
                }
            }
        });
    }

    fn line(&self, from: isize, to: isize) {
        let mut tile = Tile::new();
        let mut running = self.identity;
        for i in (0..self.n).step_by(C::TILE) {
            let len = C::TILE.min(self.n - i);
            let row = |start: isize, stride: isize| Rect::row(start + i as isize * stride, len, stride);
            // SAFETY: the rows lie in their buffers; a tile takes `len` values; this chunk alone writes the line.
            unsafe {
                C::gather(self.from.dtype, self.from.ptr(), row(from, self.strides[0]), tile.ptr::<C>());
                for v in std::slice::from_raw_parts_mut(tile.ptr::<C>(), len) {
                    running = (self.combine)(running, *v);
                    *v = running;
                }
                C::scatter(self.to.dtype, self.to.ptr(), row(to, self.strides[1]), tile.ptr::<C>());
            }
        }
    }

    /// Neighbouring lines at once.
    fn columns(&self, from: Rect, to: Rect) {
        let (mut running, mut tile) = (Tile::new(), Tile::new());
        for i in 0..self.n as isize {
            let (from, to) = (
                Rect { at: from.at + i * self.strides[0], ..from },
                Rect { at: to.at + i * self.strides[1], ..to },
            );
            // SAFETY: the rows lie in their buffers and are no longer than a tile; this chunk alone writes them. `rows` was
            // picked for this processor.
            unsafe {
                let p = running.ptr::<C>();
                if i == 0 {
                    (0..from.len).for_each(|k| *p.add(k) = self.identity);
                }
                C::gather(self.from.dtype, self.from.ptr(), from, tile.ptr::<C>());
                let running = std::slice::from_raw_parts_mut(p, from.len);
                (self.rows)(running, std::slice::from_raw_parts(tile.ptr::<C>(), from.len));
                C::scatter(self.to.dtype, self.to.ptr(), to, p);
            }
        }
    }
}
