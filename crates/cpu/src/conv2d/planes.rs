//! Forward for few channels on row-major planes: output channels x pixels of one output row.
//!
//! Each task copies the input rows of a band of output rows into a padded scratch, plane by plane, columns sorted by
//! their remainder modulo the step. There, tap (c, r, s) of neighbouring output pixels is a run of neighbouring
//! elements: the tile's columns are loaded at shifted places, nothing is packed. The weight is interleaved by output
//! channel. Kernel rows that lie in the padding are left out.
//!
//! Against [`super::rows`] this saves transposing input and output, and wastes no lanes when there are fewer output
//! channels than a vector holds; it wastes those beyond the end of an output row.

use super::Correlation;
use crate::gemm::cost;
use crate::pack::{pack_panel, scatter_tile};
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Panels, Ukr};

/// Bytes of a task's input scratch.
const INPUT_BYTES: usize = 128 << 10;
/// Multiply-adds of a task.
const TASK_MACS: usize = 1 << 20;

/// Whether this scheme is the better one.
pub(super) fn suits<T: Float>(g: &Correlation<T>, u: &Ukr<T>) -> bool {
    let lanes_used = g.q as f64 / (g.q.div_ceil(u.lanes) * u.lanes) as f64;
    let row_bytes = g.c * g.r * ((g.q - 1) * g.stride[1] + g.s * g.dilation[1]) * size_of::<T>();
    // Transposing a tile to channels-last pays only where lanes would be wasted.
    let few = g.k < u.lanes || (g.c <= 4 && g.y.strides[3] == 1);
    few && lanes_used >= 0.7 && row_bytes <= INPUT_BYTES
}

/// Where things lie in the scratch of one task.
struct Shape {
    /// Output rows of a task.
    band: usize,
    /// Columns of the padded input that are read, and elements that a row takes.
    width: usize,
    row_len: usize,
    /// Elements of one channel.
    plane: usize,
    /// Pairs (weights, input) of a kernel row, elements of k in each, and the step between those.
    pairs_per_row: usize,
    run: usize,
    ldb: isize,
    /// Each pair's first input element, kernel row by kernel row.
    offsets: Vec<isize>,
}

impl Shape {
    fn new<T>(g: &Correlation<T>) -> Shape {
        let [step_h, step_w] = g.stride;
        let width = (g.q - 1) * step_w + (g.s - 1) * g.dilation[1] + 1;
        let phase_len = width.div_ceil(step_w);
        let row_len = phase_len * step_w;
        let halo = (g.r - 1) * g.dilation[0] + 1;
        let fits = (INPUT_BYTES / (g.c * row_len * size_of::<T>()).max(1)).saturating_sub(halo) / step_h;
        let image_macs = g.p * g.q * g.k * g.c * g.r * g.s;
        let bands = g.p.div_ceil(fits.clamp(1, g.p)).max((image_macs / (2 * TASK_MACS)).clamp(1, g.p));
        let band = g.p.div_ceil(bands);
        let plane = ((band - 1) * step_h + halo) * row_len;
        // With step 1 the taps of a kernel row are one run.
        let by_runs = step_w == 1;
        let (run, runs) = if by_runs { (g.s, 1) } else { (1, g.s) };
        let mut offsets = Vec::with_capacity(g.c * g.r * runs);
        for r in 0..g.r {
            for c in 0..g.c {
                for s in 0..runs {
                    let column = s * g.dilation[1];
                    let row = c * plane + r * g.dilation[0] * row_len;
                    offsets.push((row + column % step_w * phase_len + column / step_w) as isize);
                }
            }
        }
        let ldb = if by_runs { g.dilation[1] as isize } else { 0 };
        Shape { band, width, row_len, plane, pairs_per_row: g.c * runs, run, ldb, offsets }
    }
}

/// Runs the scheme. The problem has at least one output element and one tap.
///
/// # Safety
/// As [`super::forward`].
pub(super) unsafe fn run<T: Float>(g: &Correlation<T>, u: &'static Ukr<T>) {
    let shape = &Shape::new(g);
    let panels = &Panels::new(g.k, u.mr);
    let taps = g.c * g.r * g.s;
    let bands = g.p.div_ceil(shape.band);
    with_scratch::<T, _>(g.k * taps, |weights| {
        for kp in 0..panels.len() {
            let (k0, k1) = (panels.start(kp), panels.start(kp + 1));
            for r in 0..g.r {
                for c in 0..g.c {
                    // SAFETY: the scratch holds the interleaved weight, which is readable (the caller's contract).
                    unsafe {
                        let dst = weights.add(k0 * taps + (r * g.c + c) * g.s * (k1 - k0));
                        let src = g.weight.at([k0 as isize, c as isize, r as isize, 0]);
                        let strides = (g.weight.strides[0], g.weight.strides[3]);
                        pack_panel(u, dst, k1 - k0, src, strides, k1 - k0, g.s);
                    }
                }
            }
        }
        let weights = Ptr::new(weights);
        // Images are grouped where one is little work.
        let images = (TASK_MACS / (g.macs() / g.n).max(1)).clamp(1, g.n);
        let groups = g.n.div_ceil(images);
        team::par_if(cost::<T>(g.macs()), groups * bands, &|t| {
            let (group, b) = (t / bands, t % bands);
            let rows = b * shape.band..g.p.min((b + 1) * shape.band);
            // Kernels read up to a tile beyond a row's end.
            with_scratch::<T, _>(g.c * shape.plane + u.nr, |input| {
                let mut tile = [T::default(); 14 * 32];
                for n in g.n * group / groups..g.n * (group + 1) / groups {
                    // SAFETY: the scratch is this task's; rows of image n are this task's part of y.
                    unsafe {
                        for c in 0..g.c {
                            let count = (rows.len() - 1) * g.stride[0] + (g.r - 1) * g.dilation[0] + 1;
                            for i in 0..count {
                                let h = (rows.start * g.stride[0] + i) as isize - g.pad[0];
                                let dst = input.add(c * shape.plane + i * shape.row_len);
                                let phases = (g.stride[1], shape.row_len / g.stride[1]);
                                let zero = T::default();
                                copy_plane_row(
                                    &g.x,
                                    (g.h, g.w),
                                    (n, c, h),
                                    g.pad[1],
                                    phases,
                                    shape.width,
                                    zero,
                                    dst,
                                );
                            }
                        }
                        for p in rows.clone() {
                            let base = input.add((p - rows.start) * g.stride[0] * shape.row_len);
                            for kp in 0..panels.len() {
                                let (k0, k1) = (panels.start(kp), panels.start(kp + 1));
                                let weights = weights.get().add(k0 * taps);
                                output_row(g, u, shape, weights, base, (n, p), (k0, k1), &mut tile);
                            }
                        }
                    }
                }
            });
        });
    });
}

/// One output row of channels `k0..k1`.
///
/// # Safety
/// As [`run`]; `weights` are the channels' own, `base` the scratch at the output row's first input row.
#[allow(clippy::too_many_arguments)]
unsafe fn output_row<T: Float>(
    g: &Correlation<T>,
    u: &Ukr<T>,
    shape: &Shape,
    weights: *const T,
    base: *const T,
    (n, p): (usize, usize),
    (k0, k1): (usize, usize),
    tile: &mut [T; 14 * 32],
) {
    let h = k1 - k0;
    let [_, ys1, _, ys3] = g.y.strides;
    let direct = ys3 == 1;
    // Kernel rows that lie inside the image.
    let h0 = (p * g.stride[0]) as isize - g.pad[0];
    let dh = g.dilation[0] as isize;
    let r0 = ((-h0).max(0) as usize).div_ceil(g.dilation[0]).min(g.r);
    let r1 = (g.h as isize - h0 + dh - 1).div_euclid(dh).clamp(r0 as isize, g.r as isize) as usize;
    let first = r0 * shape.pairs_per_row;
    let pairs = (r1 - r0) * shape.pairs_per_row;
    // SAFETY: the caller's contract.
    unsafe {
        for q in (0..g.q).step_by(u.nr) {
            let w = u.nr.min(g.q - q);
            let y = g.y.at([n as isize, k0 as isize, p as isize, q as isize]);
            let (to, ld) = if direct { (y, ys1) } else { (tile.as_mut_ptr(), u.nr as isize) };
            if let Some((bias, step)) = g.bias {
                for i in 0..h as isize {
                    let value = *bias.offset((k0 as isize + i) * step);
                    std::slice::from_raw_parts_mut(to.offset(i * ld), w).fill(value);
                }
            }
            u.interleaved(h, w)(
                pairs,
                shape.run,
                weights.add(first * shape.run * h),
                shape.run * h,
                base.add(q),
                shape.offsets.as_ptr().add(first),
                shape.ldb,
                to,
                ld,
                w,
                g.bias.is_some(),
            );
            if !direct {
                scatter_tile(u, tile.as_ptr(), u.nr, y, (ys1, ys3), (h, w), false);
            }
        }
    }
}

/// Copies `width` columns of row `h` of plane `(n, c)` from padded column 0 on, `outside` where there is no image, sorted by their
/// remainder modulo `step`: column `j` to `dst[j % step * phase_step + j / step]`. A remainder's `width.div_ceil(step)` elements are
/// all written.
///
/// # Safety
/// x is readable where it exists; `dst` has room.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
pub(crate) unsafe fn copy_plane_row<T: Copy>(
    x: &super::View4<T>,
    (size_h, size_w): (usize, usize),
    (n, c, h): (usize, usize, isize),
    pad: isize,
    (step, phase_step): (usize, usize),
    width: usize,
    outside: T,
    dst: *mut T,
) {
    let phase_len = width.div_ceil(step);
    let lo = pad.clamp(0, width as isize) as usize;
    let hi = (size_w as isize + pad).clamp(lo as isize, width as isize) as usize;
    let empty = h < 0 || h >= size_h as isize || lo == hi;
    let stride = x.strides[3];
    // The image's elements of columns lo..hi.
    let src = x.at([n as isize, c as isize, h, lo as isize - pad]);
    // SAFETY: the caller's contract; columns outside the image are not read.
    unsafe {
        let pairs = step == 2 && stride == 1 && !empty;
        for phase in 0..step {
            let out = std::slice::from_raw_parts_mut(dst.add(phase * phase_step), phase_len);
            // Columns j * step + phase with lo <= column < hi.
            let first = if empty { phase_len } else { lo.saturating_sub(phase).div_ceil(step) };
            let last = hi.saturating_sub(phase).div_ceil(step).max(first).min(phase_len);
            out[..first].fill(outside);
            out[last..].fill(outside);
            if pairs {
                continue;
            }
            let from = src.wrapping_offset((first * step + phase) as isize * stride - lo as isize * stride);
            if step == 1 && stride == 1 {
                std::ptr::copy_nonoverlapping(from, out[first..last].as_mut_ptr(), last - first);
                continue;
            }
            for (j, y) in out[first..last].iter_mut().enumerate() {
                *y = *from.offset((j * step) as isize * stride);
            }
        }
        if pairs {
            let row = std::slice::from_raw_parts(src, hi - lo);
            let even = std::slice::from_raw_parts_mut(dst, phase_len);
            let odd = std::slice::from_raw_parts_mut(dst.add(phase_step), phase_len);
            // An odd first column, pairs, an even last column.
            let (mut row, mut at) = (row, lo / 2);
            if lo % 2 == 1 {
                odd[at] = row[0];
                (row, at) = (&row[1..], at + 1);
            }
            for ((pair, e), o) in row.chunks_exact(2).zip(&mut even[at..]).zip(&mut odd[at..]) {
                (*e, *o) = (pair[0], pair[1]);
            }
            if row.len() % 2 == 1 {
                even[at + row.len() / 2] = row[row.len() - 1];
            }
        }
    }
}
