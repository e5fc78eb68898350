//! The forward scheme: output pixels x output channels.
//!
//! The weight is packed once as `[k / nr][r][s][c][nr]`. A tile is up to 12 output pixels (by instruction set) and `nr`
//! output channels; its whole sum over c, r, s stays in registers. For each tap a table holds the pixels' pointers to
//! their input channels.
//!
//! - Input whose channels lie side by side (16 or more of them) is read in place; a tap outside the image points to a row
//!   of zeros.
//! - Other input is copied, one bounded block of rows at a time, into a padded channels-last scratch. There all taps of
//!   a kernel row are one run of `s * c` elements (for dilation 1), so few channels cost no more than many.
//!
//! Output channels are cut into groups whose packed weights stay in the second cache, pixels into tasks.

use super::{Correlation, copy_input_row, pack_weight};
use crate::gemm::cost;
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Panels, ROW_SLOTS, Ukr};

/// Bytes of packed weights that a task runs over for each tile.
const WEIGHT_BYTES: usize = 512 << 10;
/// Bytes of the input scratch.
const INPUT_BYTES: usize = 2 << 20;
/// Multiply-adds of a task.
const TASK_MACS: usize = 1 << 21;
/// Input channels that make a run worth a pointer of its own.
const MIN_RUN: usize = 16;

/// How the pixels of a tile find their input.
struct Source<T> {
    /// Pointers in the table, and elements behind each.
    taps: usize,
    run: usize,
    /// Input rows copied to scratch: the offset of each output row's first, and elements in a row; empty if in place.
    row_offsets: Vec<usize>,
    row_len: usize,
    scratch: Ptr<T>,
    zeros: Ptr<T>,
}

/// Runs the scheme. The problem has at least one output element and one tap.
///
/// # Safety
/// As [`super::forward`].
pub(super) unsafe fn run<T: Float>(g: &Correlation<T>, u: &'static Ukr<T>) {
    let (nr, taps) = (u.nr, g.r * g.s);
    let panels = g.k.div_ceil(nr);
    with_scratch::<T, _>(panels * nr * taps * g.c + panels * nr + g.c, |packed| {
        // SAFETY: the scratch holds the packed weight, the bias and a row of zeros; the rest is the caller's contract.
        unsafe {
            let bias = packed.add(panels * nr * taps * g.c);
            let zeros = bias.add(panels * nr);
            pack_weight(g, u, packed);
            for k in 0..panels * nr {
                let value = g.bias.filter(|_| k < g.k).map(|(p, step)| *p.offset(k as isize * step));
                *bias.add(k) = value.unwrap_or_default();
            }
            std::slice::from_raw_parts_mut(zeros, g.c).fill(T::default());
            let run = Run { g, u, packed: Ptr::new(packed), bias: Ptr::new(bias), panels };
            let in_place = g.x.strides[1] == 1 && g.c >= MIN_RUN;
            if in_place {
                let source = Source {
                    taps,
                    run: g.c,
                    row_offsets: vec![],
                    row_len: 0,
                    scratch: Ptr::new(zeros),
                    zeros: Ptr::new(zeros),
                };
                run.block(0, g.n * g.p, &source);
            } else {
                run.through_scratch(Ptr::new(zeros));
            }
        }
    });
}

/// Asks for the cache line at `p`, which may be any address.
#[inline(always)]
fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch touches no memory; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast())
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

struct Run<'a, T: 'static> {
    g: &'a Correlation<T>,
    u: &'static Ukr<T>,
    packed: Ptr<T>,
    bias: Ptr<T>,
    panels: usize,
}

impl<T: Float> Run<'_, T> {
    /// Blocks of output rows, their input copied to scratch.
    unsafe fn through_scratch(&self, zeros: Ptr<T>) {
        let (g, u) = (self.g, self.u);
        let width = (g.q - 1) * g.stride[1] + (g.s - 1) * g.dilation[1] + 1;
        let row_len = width * g.c;
        let halo = (g.r - 1) * g.dilation[0] + 1;
        let image_rows = (g.p - 1) * g.stride[0] + halo;
        let budget = INPUT_BYTES / (row_len * size_of::<T>()).max(1);
        // Whole images if they fit, else bands of an image.
        let per = match budget / image_rows {
            0 => (budget.saturating_sub(halo) / g.stride[0]).clamp(1, g.p),
            images => images.min(g.n) * g.p,
        };
        let (units, unit) = if per >= g.p { (g.n, g.p) } else { (g.n * g.p, 1) };
        let blocks = units.div_ceil(per / unit);
        for block in 0..blocks {
            let (row0, row1) = (units * block / blocks * unit, units * (block + 1) / blocks * unit);
            // The input rows of the block, image by image; rows that neighbours share appear once.
            let mut row_offsets = Vec::with_capacity(row1 - row0);
            let mut input_rows = vec![];
            let mut row = row0;
            while row < row1 {
                let (n, p0) = (row / g.p, row % g.p);
                let count = (g.p - p0).min(row1 - row);
                let base = input_rows.len();
                row_offsets.extend((0..count).map(|i| (base + i * g.stride[0]) * row_len));
                let h0 = (p0 * g.stride[0]) as isize - g.pad[0];
                input_rows.extend((0..(count - 1) * g.stride[0] + halo).map(|i| (n, h0 + i as isize)));
                row += count;
            }
            with_scratch::<T, _>(input_rows.len() * row_len, |scratch| {
                let scratch = Ptr::new(scratch);
                let elements = input_rows.len() * row_len;
                let chunks = input_rows.len().min(elements.div_ceil(8 << 10));
                team::par_if(elements as u64 / 2, chunks, &|t| {
                    let rows = input_rows.len() * t / chunks..input_rows.len() * (t + 1) / chunks;
                    for i in rows {
                        // SAFETY: row i of the scratch is this task's.
                        unsafe {
                            let dst = scratch.get().add(i * row_len);
                            let span = (-g.pad[1], width);
                            copy_input_row(u, &g.x, (g.h, g.w), input_rows[i], span, (0, g.c, g.c), dst);
                        }
                    }
                });
                let merged = g.dilation[1] == 1;
                let source = Source {
                    taps: if merged { g.r } else { g.r * g.s },
                    run: if merged { g.s * g.c } else { g.c },
                    row_offsets,
                    row_len,
                    scratch,
                    zeros,
                };
                // SAFETY: the scratch holds every input element that the block's rows read.
                unsafe { self.block(row0, row1, &source) };
            });
        }
    }

    /// Output rows `row0..row1` (of `n * p`).
    unsafe fn block(&self, row0: usize, row1: usize, source: &Source<T>) {
        let (g, u) = (self.g, self.u);
        let panel_bytes = g.r * g.s * g.c * u.nr * size_of::<T>();
        let group = (WEIGHT_BYTES / panel_bytes.max(1)).clamp(1, self.panels);
        let groups = self.panels.div_ceil(group);
        let pixels = (row1 - row0) * g.q;
        let macs = pixels * g.c * g.r * g.s * (self.panels * u.nr).div_ceil(groups);
        let chunks = (macs / TASK_MACS).clamp(1, pixels.div_ceil(4 * u.rows));
        team::par_if(cost::<T>(macs * groups), groups * chunks, &|t| {
            let (group, chunk) = (t / chunks, t % chunks);
            let kp = self.panels * group / groups..self.panels * (group + 1) / groups;
            let pixels = pixels * chunk / chunks..pixels * (chunk + 1) / chunks;
            // SAFETY: tasks write disjoint parts of y.
            unsafe { self.task(row0, pixels, kp, source) }
        });
    }

    /// Pixels `pixels` (counted from output row `row0`) of channel panels `kp`.
    unsafe fn task(
        &self,
        row0: usize,
        pixels: std::ops::Range<usize>,
        kp: std::ops::Range<usize>,
        source: &Source<T>,
    ) {
        let (g, u) = (self.g, self.u);
        let mut table = vec![std::ptr::null::<T>(); source.taps * ROW_SLOTS];
        let mut out = [std::ptr::null_mut::<T>(); ROW_SLOTS];
        let mut stored = [std::ptr::null_mut::<T>(); ROW_SLOTS];
        let mut tile = [T::default(); 12 * 32];
        let direct = g.y.strides[1] == 1 || g.k == 1;
        let tiles = Panels::new(pixels.len(), u.rows);
        let mut row = row0 + pixels.start / g.q;
        let mut q = pixels.start % g.q;
        for i in 0..tiles.len() {
            let h = tiles.start(i + 1) - tiles.start(i);
            // Kernel rows that lie inside the image for at least one pixel; the others would only add zeros.
            let (mut r0, mut r1) = (g.r, 0);
            for slot in 0..h {
                let (n, p) = (row / g.p, row % g.p);
                if slot == 0 || q == 0 {
                    let (from, to) = self.kernel_rows(p);
                    (r0, r1) = (r0.min(from), r1.max(to));
                }
                out[slot] = g.y.at([n as isize, 0, p as isize, q as isize]);
                if source.row_offsets.is_empty() {
                    self.point_in_place(&mut table[slot..], (n, p, q), source.zeros.get());
                } else {
                    let at = source.row_offsets[row - row0] + q * g.stride[1] * g.c;
                    let base = source.scratch.get().wrapping_add(at).cast_const();
                    self.point_to_scratch(&mut table[slot..], base, source);
                }
                q += 1;
                if q == g.q {
                    (q, row) = (0, row + 1);
                }
            }
            let taps_per_row = source.taps / g.r;
            if source.row_offsets.is_empty() {
                // The next tile's newest pixels come from afar: ask for them while this tile computes.
                for slot in 0..h {
                    let next = table[(source.taps - 1) * ROW_SLOTS + slot]
                        .wrapping_offset((u.rows * g.stride[1]) as isize * g.x.strides[3]);
                    for c in (0..g.c).step_by(64 / size_of::<T>()) {
                        prefetch(next.wrapping_add(c));
                    }
                }
            }
            for kp in kp.clone() {
                let w = u.nr.min(g.k - kp * u.nr);
                let offset = (kp * u.nr) as isize * g.y.strides[1];
                for slot in 0..h {
                    stored[slot] = if direct {
                        out[slot].wrapping_offset(offset)
                    } else {
                        tile[slot * u.nr..].as_mut_ptr()
                    };
                }
                // SAFETY: the table's pointers reach `run` elements each; the packed panel has full vectors; the
                // tile's pixels and channels of y are this task's.
                unsafe {
                    let b = self.packed.get().add((kp * g.r + r0) * g.s * g.c * u.nr);
                    let table = table.as_ptr().add(r0 * taps_per_row * ROW_SLOTS);
                    let taps = (r1 - r0) * taps_per_row;
                    let init = self.bias.get().add(kp * u.nr);
                    let kernel = u.by_rows(h, w);
                    kernel(taps, source.run, table, b, u.nr as isize, init, stored.as_ptr(), w, false);
                    if !direct {
                        self.store_tile(&tile, &out[..h], offset, w);
                    }
                }
            }
        }
    }

    /// The kernel rows `from..to` that lie inside the image for output row p.
    fn kernel_rows(&self, p: usize) -> (usize, usize) {
        let g = self.g;
        let h0 = (p * g.stride[0]) as isize - g.pad[0];
        let step = g.dilation[0] as isize;
        let from = ((-h0).max(0) as usize).div_ceil(g.dilation[0]).min(g.r);
        let to = (g.h as isize - h0 + step - 1).div_euclid(step).clamp(from as isize, g.r as isize);
        (from, to as usize)
    }

    /// The pointers of one pixel into x; `table[t * ROW_SLOTS]` is tap t's.
    #[inline]
    fn point_in_place(&self, table: &mut [*const T], (n, p, q): (usize, usize, usize), zeros: *const T) {
        let g = self.g;
        let h0 = (p * g.stride[0]) as isize - g.pad[0];
        let w0 = (q * g.stride[1]) as isize - g.pad[1];
        let base = g.x.at([n as isize, 0, h0, w0]);
        let [_, _, xs2, xs3] = g.x.strides;
        let (dh, dw) = (g.dilation[0] as isize, g.dilation[1] as isize);
        let inside = |at: isize, size: usize| at >= 0 && at < size as isize;
        let whole = inside(h0, g.h)
            && inside(h0 + (g.r as isize - 1) * dh, g.h)
            && inside(w0, g.w)
            && inside(w0 + (g.s as isize - 1) * dw, g.w);
        let mut slot = 0;
        for r in 0..g.r as isize {
            let row_inside = whole || inside(h0 + r * dh, g.h);
            for s in 0..g.s as isize {
                let here = whole || (row_inside && inside(w0 + s * dw, g.w));
                table[slot] = if here { base.wrapping_offset(r * dh * xs2 + s * dw * xs3) } else { zeros };
                slot += ROW_SLOTS;
            }
        }
    }

    /// The pointers of one pixel into the scratch.
    #[inline]
    fn point_to_scratch(&self, table: &mut [*const T], base: *const T, source: &Source<T>) {
        let g = self.g;
        let step = g.dilation[0] * source.row_len;
        if source.taps == g.r {
            for r in 0..g.r {
                table[r * ROW_SLOTS] = base.wrapping_add(r * step);
            }
        } else {
            for r in 0..g.r {
                for s in 0..g.s {
                    table[(r * g.s + s) * ROW_SLOTS] = base.wrapping_add(r * step + s * g.dilation[1] * g.c);
                }
            }
        }
    }

    /// Stores a tile whose pixels go to `out[i] + offset`, channels `y.strides[1]` apart.
    #[inline]
    unsafe fn store_tile(&self, tile: &[T], out: &[*mut T], offset: isize, w: usize) {
        let (u, ys1) = (self.u, self.g.y.strides[1]);
        let mut i = 0;
        while i < out.len() {
            // Pixels side by side are stored together.
            let mut run = 1;
            while i + run < out.len() && out[i + run] == out[i].wrapping_add(run) {
                run += 1;
            }
            let dst = out[i].wrapping_offset(offset);
            let from = tile[i * u.nr..].as_ptr();
            // SAFETY: elements of y that are this tile's.
            unsafe {
                if run > 1 {
                    (u.transpose)(dst, ys1, from, u.nr as isize, run, w);
                } else {
                    for j in 0..w {
                        *dst.offset(j as isize * ys1) = *from.add(j);
                    }
                }
            }
            i += run;
        }
    }
}
