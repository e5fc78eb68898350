//! The weight gradient of few input channels: taps x output channels, summed over pixels.
//!
//! The rows of a tile are taps (r, s, c), its columns output channels. x is copied plane by plane with its padding, columns
//! sorted by their remainder modulo the step; there the pixels that one tap meets along an output row are neighbours, so
//! a tap is a row pointer. dY is packed as `[k / nr][pixel][nr]` (one vector wide if that holds k). The sum is `[r][s][c][k]`.

use super::planes::copy_plane_row;
use super::wgrad::Segment;
use super::{ConvGeometry, View4, View4Mut};
use crate::gemm::cost;
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Panels, ROW_SLOTS, Ukr};

/// Whether this scheme does the sum in clearly fewer vector operations than the other.
pub(super) fn suits<T: Float>(g: &ConvGeometry, u: &Ukr<T>) -> bool {
    let vectors = |n: usize| n.div_ceil(u.lanes);
    let here = g.c * g.r * g.s * vectors(g.k);
    let merged = g.c < u.lanes && g.dilation[1] == 1;
    let there = g.k * g.r * if merged { vectors(g.s * g.c) } else { g.s * vectors(g.c) };
    g.c < u.lanes && 3 * here < 2 * there
}

pub(super) struct Run<'a, T: 'static> {
    g: &'a ConvGeometry,
    u: &'static Ukr<T>,
    x: View4<T>,
    dy: View4<T>,
    /// Panels of taps.
    panels: Panels,
    /// Padded columns of an input row that are read, and elements that it takes.
    width: usize,
    row_len: usize,
}

// SAFETY: a description of addresses, used under the convolution's contract.
unsafe impl<T> Sync for Run<'_, T> {}

impl<'a, T: Float> Run<'a, T> {
    pub(super) fn new(g: &'a ConvGeometry, u: &'static Ukr<T>, x: View4<T>, dy: View4<T>) -> Self {
        let width = (g.q - 1) * g.stride[1] + (g.s - 1) * g.dilation[1] + 1;
        let row_len = width.div_ceil(g.stride[1]) * g.stride[1];
        Run { g, u, x, dy, panels: Panels::new(g.c * g.r * g.s, u.rows), width, row_len }
    }

    /// Sums the pixels of output rows `rows` into `out`, `[r][s][c][k]`.
    ///
    /// # Safety
    /// As [`super::wgrad::run`]; `out` has room for the gradient.
    pub(super) unsafe fn block(&self, rows: std::ops::Range<usize>, out: *mut T, accumulate: bool) {
        let (g, u) = (self.g, self.u);
        let out = Ptr::new(out);
        let (segments, input_rows) = Segment::all(g, &rows);
        let segments = &segments;
        let (plane, pixels) = (input_rows * self.row_len, rows.len() * g.q);
        let nr = if g.k <= u.lanes { u.lanes } else { u.nr };
        let k_panels = g.k.div_ceil(nr);
        with_scratch::<T, _>(g.c * plane + k_panels * nr * pixels, |packed| {
            let packed_dy = Ptr::new(packed.wrapping_add(g.c * plane));
            let packed = Ptr::new(packed);
            let tasks = segments.len() * (g.c + k_panels);
            let elements = g.c * plane + k_panels * nr * pixels;
            team::par_if(elements as u64 / 2, tasks, &|t| {
                let (segment, panel) = (&segments[t % segments.len()], t / segments.len());
                // SAFETY: this segment's part of this plane or panel is this task's.
                unsafe {
                    if panel < g.c {
                        self.copy_plane(segment, panel, packed.get().add(panel * plane));
                    } else {
                        let k0 = (panel - g.c) * nr;
                        let dst = packed_dy.get().add(k0 * pixels);
                        segment.pack_dy(g, u, &self.dy, (k0, nr.min(g.k - k0), nr), dst);
                    }
                }
            });
            let macs = g.k * g.c * g.r * g.s * pixels;
            team::par_if(cost::<T>(macs), self.panels.len(), &|t| {
                let (t0, t1) = (self.panels.start(t), self.panels.start(t + 1));
                let table = self.pointers(segments, (t0, t1), packed.get(), plane);
                for kp in 0..k_panels {
                    let w = nr.min(g.k - kp * nr);
                    let mut c_rows = [std::ptr::null_mut(); ROW_SLOTS];
                    for (i, row) in c_rows[..t1 - t0].iter_mut().enumerate() {
                        *row = out.get().wrapping_add((t0 + i) * g.k + kp * nr);
                    }
                    // SAFETY: taps t0..t1 of the gradient are this task's; the packed operands hold what the table names.
                    unsafe {
                        let b = packed_dy.get().add(kp * nr * pixels);
                        let (ldb, null) = (nr as isize, std::ptr::null());
                        let kernel = u.by_rows(t1 - t0, w);
                        kernel(rows.len(), g.q, table.as_ptr(), b, ldb, null, c_rows.as_ptr(), w, accumulate);
                    }
                }
            });
        });
    }

    /// For each output row of the block, where each of taps `t0..t1` begins.
    fn pointers(
        &self,
        segments: &[Segment],
        (t0, t1): (usize, usize),
        packed: *const T,
        plane: usize,
    ) -> Vec<*const T> {
        let g = self.g;
        let phase_len = self.row_len / g.stride[1];
        let starts: Vec<usize> = (t0..t1)
            .map(|t| {
                let (r, s, c) = (t / (g.s * g.c), t / g.c % g.s, t % g.c);
                let column = s * g.dilation[1];
                let row = r * g.dilation[0] * self.row_len;
                c * plane + row + column % g.stride[1] * phase_len + column / g.stride[1]
            })
            .collect();
        let mut table = vec![];
        for segment in segments {
            for p in 0..segment.count {
                let row = (segment.input_row + p * g.stride[0]) * self.row_len;
                table.extend(starts.iter().map(|&start| packed.wrapping_add(row + start)));
                table.resize(table.len() + ROW_SLOTS - starts.len(), std::ptr::null());
            }
        }
        table
    }

    /// The segment's input rows of channel `c`.
    unsafe fn copy_plane(&self, segment: &Segment, c: usize, dst: *mut T) {
        let g = self.g;
        for i in 0..segment.input_rows(g) {
            let h = (segment.p0 * g.stride[0] + i) as isize - g.pad_before[0] as isize;
            let pad = g.pad_before[1] as isize;
            // SAFETY: the caller's scratch row; x is readable inside its sizes.
            unsafe {
                let to = dst.add((segment.input_row + i) * self.row_len);
                let phases = (g.stride[1], self.row_len / g.stride[1]);
                let (at, zero) = ((segment.n, c, h), T::default());
                copy_plane_row(&self.x, (g.h, g.w), at, pad, phases, self.width, zero, to);
            }
        }
    }
}

/// Adds the parts `[r][s][c][k]` in order and writes the sum to dw.
///
/// # Safety
/// The parts are readable and writable; dw is writable.
pub(super) unsafe fn store<T: Float>(g: &ConvGeometry, partial: *mut T, parts: usize, dw: View4Mut<T>) {
    let size = g.c * g.r * g.s * g.k;
    // SAFETY: the caller's contract. The gradient is small: this scheme is for few channels.
    unsafe {
        let sum = std::slice::from_raw_parts_mut(partial, size);
        for part in 1..parts {
            let more = std::slice::from_raw_parts(partial.add(part * size), size);
            sum.iter_mut().zip(more).for_each(|(a, &b)| *a += b);
        }
        for (t, row) in sum.chunks_exact(g.k).enumerate() {
            let (r, s, c) = (t / (g.s * g.c), t / g.c % g.s, t % g.c);
            let to = dw.at([0, c as isize, r as isize, s as isize]);
            for (k, &value) in row.iter().enumerate() {
                *to.offset(k as isize * dw.strides[0]) = value;
            }
        }
    }
}
