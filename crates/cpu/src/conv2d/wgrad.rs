//! The weight gradient: output channels x input channels, summed over pixels.
//!
//! A block of output rows is packed once: dY as `[k / mr][pixel][mr]`, x with its padding as `[c / nr][row][pixel][nr]`. Then
//! every tap (r, s) is a sum of products of the same two packed blocks, x read from a place shifted by the tap: the
//! kernel runs over the block's output rows as pairs. With fewer channels than a vector, x is packed as
//! `[row][pixel][c]` instead and a tile's columns are the `s * c` neighbours of a kernel row.
//!
//! With very few channels and many output channels, [`super::wgrad_taps`] wastes fewer lanes.
//!
//! If the weight is small, pixels are cut into parts by shape and type; each part packs what it reads, sums into a
//! private gradient `[k][r][s][c]`, and the parts are added in order. If it is large, there is one part and output
//! channels are shared out instead.

use super::wgrad_taps as taps;
use super::{ConvGeometry, View4, View4Mut, copy_input_row};
use crate::gemm::cost;
use crate::pack::pack_panel;
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Panels, Ukr};

/// Bytes of all private gradients, most and least parts.
const PART_BYTES: usize = 4 << 20;
const MAX_PARTS: usize = 16;
const MIN_PARTS: usize = 4;
/// Multiply-adds of a part.
const PART_MACS: usize = 1 << 21;
/// Pixels of a block, and bytes of its packed operands.
const BLOCK_PIXELS: usize = 400;
const BLOCK_BYTES: usize = 768 << 10;

struct Run<'a, T: 'static> {
    g: &'a ConvGeometry,
    u: &'static Ukr<T>,
    x: View4<T>,
    dy: View4<T>,
    panels: Panels,
    /// Columns of a tile are (s, c) instead of c.
    merged: bool,
    /// Padded pixels of an input row, and elements of it in one panel.
    width: usize,
    row_len: usize,
    /// Panels of input channels.
    x_panels: usize,
}

// SAFETY: a description of addresses, used under the convolution's contract.
unsafe impl<T> Sync for Run<'_, T> {}

/// Runs the scheme for one group (`g.groups` is 1).
///
/// # Safety
/// As [`super::weight_grad`].
pub(super) unsafe fn run<T: Float>(g: &ConvGeometry, x: View4<T>, dy: View4<T>, dw: View4Mut<T>) {
    let size = g.k * g.c * g.r * g.s;
    let rows = g.n * g.p;
    // SAFETY: the caller's contract.
    unsafe {
        if size == 0 {
            return;
        }
        if rows * g.q == 0 {
            return store(g, T::ukr(), std::ptr::null(), 0, dw);
        }
        let u = T::ukr();
        let by_taps = taps::suits(g, u);
        let run = Run::new(g, u, x, dy);
        let taps = taps::Run::new(g, u, x, dy);
        let part = |rows: std::ops::Range<usize>, out: *mut T| {
            for (block, first) in blocks::<T>(g, rows) {
                // `out` is the part's own gradient.
                if by_taps { taps.block(block, out, !first) } else { run.block(block, out, !first) }
            }
        };
        let macs = size.saturating_mul(rows * g.q);
        let parts = MAX_PARTS.min(PART_BYTES / (size * size_of::<T>())).min(macs / PART_MACS).min(rows);
        let parts = if parts < MIN_PARTS { 1 } else { parts };
        with_scratch::<T, _>(parts * size, |partial| {
            let partial = Ptr::new(partial);
            if parts == 1 {
                part(0..rows, partial.get());
            } else {
                team::par_if(cost::<T>(macs), parts, &|t| {
                    let rows = rows * t / parts..rows * (t + 1) / parts;
                    part(rows, partial.get().wrapping_add(t * size));
                });
            }
            if by_taps {
                taps::store(g, partial.get(), parts, dw);
            } else {
                store(g, u, partial.get(), parts, dw);
            }
        });
    }
}

/// Cuts a part's output rows into blocks; the flag marks the first.
fn blocks<T>(
    g: &ConvGeometry,
    rows: std::ops::Range<usize>,
) -> impl Iterator<Item = (std::ops::Range<usize>, bool)> {
    let row_bytes = (g.c * g.w * g.stride[0].min(g.r) + g.q * g.k) * size_of::<T>();
    let per = BLOCK_PIXELS.div_ceil(g.q).min((BLOCK_BYTES / row_bytes.max(1)).max(1)).min(rows.len());
    let count = rows.len().div_ceil(per);
    let at = move |i: usize| rows.start + rows.len() * i / count;
    (0..count).map(move |b| (at(b)..at(b + 1), b == 0))
}

/// Adds the parts `[k][r][s][c]` in order and writes the sum (zero if there is none) to dw.
unsafe fn store<T: Float>(g: &ConvGeometry, u: &Ukr<T>, partial: *const T, parts: usize, dw: View4Mut<T>) {
    struct Out<T>(View4Mut<T>);
    // SAFETY: a description of addresses, used under the convolution's contract.
    unsafe impl<T> Sync for Out<T> {}
    let dw = &Out(dw);
    let partial = Ptr::read(partial);
    let (taps, per_k) = (g.r * g.s, g.c * g.r * g.s);
    let size = g.k * per_k;
    let chunks = g.k.min((size * parts.max(1)).div_ceil(16 << 10));
    team::par_if((size * parts.max(1)) as u64 / 4, chunks, &|t| {
        let Out(dw) = dw;
        let [_, ws1, ws2, ws3] = dw.strides;
        for k in g.k * t / chunks..g.k * (t + 1) / chunks {
            let to = dw.at([k as isize, 0, 0, 0]);
            // SAFETY: channel k of dw and of every part is this task's.
            unsafe {
                let put = |i: usize, value: T| {
                    let (tap, c) = (i / g.c, (i % g.c) as isize);
                    let (r, s) = ((tap / g.s) as isize, (tap % g.s) as isize);
                    *to.offset(c * ws1 + r * ws2 + s * ws3) = value;
                };
                if parts == 0 {
                    (0..per_k).for_each(|i| put(i, T::default()));
                    continue;
                }
                let sum = std::slice::from_raw_parts_mut(partial.get().add(k * per_k), per_k);
                for part in 1..parts {
                    let more = std::slice::from_raw_parts(partial.get().add(part * size + k * per_k), per_k);
                    sum.iter_mut().zip(more).for_each(|(a, &b)| *a += b);
                }
                let taps_adjacent = (g.s == 1 || ws3 == 1) && (g.r == 1 || ws2 == g.s as isize);
                if taps_adjacent && taps > 1 {
                    (u.transpose)(to, ws1, sum.as_ptr(), g.c as isize, taps, g.c);
                } else if ws1 == 1 {
                    for tap in 0..taps {
                        let (r, s) = ((tap / g.s) as isize, (tap % g.s) as isize);
                        let dst = to.offset(r * ws2 + s * ws3);
                        std::ptr::copy_nonoverlapping(sum.as_ptr().add(tap * g.c), dst, g.c);
                    }
                } else {
                    sum.iter().enumerate().for_each(|(i, &value)| put(i, value));
                }
            }
        }
    });
}

/// Output rows of one image that lie together in a block.
pub(super) struct Segment {
    pub(super) n: usize,
    pub(super) p0: usize,
    pub(super) count: usize,
    /// Its first output row in the block, and first input row.
    pub(super) row: usize,
    pub(super) input_row: usize,
}

impl Segment {
    /// The segments of a block, and the number of their input rows.
    pub(super) fn all(g: &ConvGeometry, rows: &std::ops::Range<usize>) -> (Vec<Segment>, usize) {
        let (mut segments, mut row, mut input_rows) = (vec![], 0, 0);
        while row < rows.len() {
            let (n, p0) = ((rows.start + row) / g.p, (rows.start + row) % g.p);
            let count = (g.p - p0).min(rows.len() - row);
            let segment = Segment { n, p0, count, row, input_row: input_rows };
            row += count;
            input_rows += segment.input_rows(g);
            segments.push(segment);
        }
        (segments, input_rows)
    }

    pub(super) fn input_rows(&self, g: &ConvGeometry) -> usize {
        (self.count - 1) * g.stride[0] + (g.r - 1) * g.dilation[0] + 1
    }

    /// Packs output gradients of channels `k0..k0 + h` as `[pixel][width]`, `dst` at the block's first pixel.
    ///
    /// # Safety
    /// dy is readable; `dst` has room for the block's pixels.
    pub(super) unsafe fn pack_dy<T: Float>(
        &self,
        g: &ConvGeometry,
        u: &Ukr<T>,
        dy: &View4<T>,
        (k0, h, width): (usize, usize, usize),
        dst: *mut T,
    ) {
        let [_, ys1, ys2, ys3] = dy.strides;
        // Rows that continue one another are packed as one.
        let (runs, len) = if ys2 == g.q as isize * ys3 { (1, self.count * g.q) } else { (self.count, g.q) };
        for i in 0..runs {
            let src = dy.at([self.n as isize, k0 as isize, (self.p0 + i) as isize, 0]);
            // SAFETY: the caller's scratch rows; dy is readable.
            unsafe {
                pack_panel(u, dst.add((self.row + i) * g.q * width), width, src, (ys1, ys3), h, len);
            }
        }
    }
}

impl<'a, T: Float> Run<'a, T> {
    fn new(g: &'a ConvGeometry, u: &'static Ukr<T>, x: View4<T>, dy: View4<T>) -> Self {
        let merged = g.c < u.lanes && g.dilation[1] == 1;
        let width = (g.q - 1) * g.stride[1] + (g.s - 1) * g.dilation[1] + 1;
        Run {
            g,
            u,
            x,
            dy,
            panels: Panels::new(g.k, u.mr),
            merged,
            width,
            row_len: width * if merged { g.c } else { u.nr },
            x_panels: if merged { 1 } else { g.c.div_ceil(u.nr) },
        }
    }

    /// Sums the block's pixels into `out`.
    ///
    /// # Safety
    /// As [`run`]; `out` has room for the gradient.
    unsafe fn block(&self, rows: std::ops::Range<usize>, out: *mut T, accumulate: bool) {
        let (g, u) = (self.g, self.u);
        let out = Ptr::new(out);
        let (segments, input_rows) = Segment::all(g, &rows);
        let segments = &segments;
        let (x_panel, pixels) = (input_rows * self.row_len, rows.len() * g.q);
        // A tile's columns may be loaded beyond the last pixel's.
        with_scratch::<T, _>(self.x_panels * x_panel + u.nr + pixels * g.k, |packed| {
            let packed_dy = Ptr::new(packed.wrapping_add(self.x_panels * x_panel + u.nr));
            let packed = Ptr::new(packed);
            let (xp, kp) = (self.x_panels, self.panels.len());
            let tasks = segments.len() * (xp + kp);
            team::par_if(((x_panel * xp + pixels * g.k) / 2) as u64, tasks, &|t| {
                let (segment, panel) = (&segments[t % segments.len()], t / segments.len());
                // SAFETY: this segment's part of this panel is this task's.
                unsafe {
                    if panel < xp {
                        self.pack_x(segment, panel, packed.get().add(panel * x_panel));
                    } else {
                        let k0 = self.panels.start(panel - xp);
                        let h = self.panels.start(panel - xp + 1) - k0;
                        let dst = packed_dy.get().add(k0 * pixels);
                        segment.pack_dy(g, u, &self.dy, (k0, h, h), dst);
                    }
                }
            });
            let mut offsets = vec![];
            for s in segments {
                offsets
                    .extend((0..s.count).map(|p| ((s.input_row + p * g.stride[0]) * self.row_len) as isize));
            }
            let columns = if self.merged { g.s * g.c } else { g.c };
            let column_panels = columns.div_ceil(u.nr);
            let macs = g.k * g.c * g.r * g.s * pixels;
            team::par_if(cost::<T>(macs), kp * column_panels, &|t| {
                let (kp, cp) = (t / column_panels, t % column_panels);
                let (k0, k1) = (self.panels.start(kp), self.panels.start(kp + 1));
                let h = k1 - k0;
                let w = u.nr.min(columns - cp * u.nr);
                let kernel = u.interleaved(h, w);
                let a = packed_dy.get().wrapping_add(k0 * pixels);
                let per_k = g.c * g.r * g.s;
                for r in 0..g.r {
                    for s in 0..if self.merged { 1 } else { g.s } {
                        let row = r * g.dilation[0] * self.row_len;
                        let (at, ldb) = if self.merged {
                            (row + cp * u.nr, g.stride[1] * g.c)
                        } else {
                            (cp * x_panel + row + s * g.dilation[1] * u.nr, g.stride[1] * u.nr)
                        };
                        // SAFETY: the packed operands hold what the offsets name, with a tile's slack; this tile of
                        // the gradient is this task's.
                        unsafe {
                            let b = packed.get().add(at);
                            let c = out.get().add(k0 * per_k + (r * g.s + s) * g.c + cp * u.nr);
                            let pairs = offsets.len();
                            kernel(
                                pairs,
                                g.q,
                                a,
                                g.q * h,
                                b,
                                offsets.as_ptr(),
                                ldb as isize,
                                c,
                                per_k as isize,
                                w,
                                accumulate,
                            );
                        }
                    }
                }
            });
        });
    }

    /// The segment's input rows, channels of panel `panel`.
    unsafe fn pack_x(&self, segment: &Segment, panel: usize, dst: *mut T) {
        let (g, u) = (self.g, self.u);
        let channels =
            if self.merged { (0, g.c, g.c) } else { (panel * u.nr, u.nr.min(g.c - panel * u.nr), u.nr) };
        let pad = g.pad_before.map(|p| p as isize);
        for i in 0..segment.input_rows(g) {
            let h = (segment.p0 * g.stride[0] + i) as isize - pad[0];
            // SAFETY: the caller's scratch row.
            unsafe {
                let to = dst.add((segment.input_row + i) * self.row_len);
                copy_input_row(u, &self.x, (g.h, g.w), (segment.n, h), (-pad[1], self.width), channels, to);
            }
        }
    }
}
