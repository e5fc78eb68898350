//! Depthwise convolution: each output channel reads one input channel.
//!
//! - Channels side by side in every operand (channels-last): vectors of channels, pixel by pixel.
//! - Anything else: plane by plane. A plane of x is copied to a padded scratch in which columns are sorted by their
//!   remainder modulo the step, so that every tap is a run of neighbouring elements: vectors of pixels of an output row.
//!   Any strides, and several output channels for one input channel, go this way.

use super::planes::copy_plane_row;
use super::{ConvGeometry, Correlation, View4, View4Mut};
use crate::gemm::cost;
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Ukr};

/// Multiply-adds of a task.
const TASK_MACS: usize = 1 << 17;

/// Forward: `g.k` output channels, of which `per` in a row read one input channel; `g.c` is 1 and `weight.strides[1]` unused.
///
/// # Safety
/// As [`super::forward`].
pub(super) unsafe fn forward<T: Float>(g: Correlation<T>, per: usize) {
    let u = T::ukr();
    // SAFETY: the caller's contract, passed on.
    unsafe {
        if g.n * g.k * g.p * g.q == 0 {
            return;
        }
        if g.r * g.s == 0 {
            return super::fill(&g);
        }
        if per == 1 && g.k > 1 && g.x.strides[1] == 1 && g.y.strides[1] == 1 {
            by_channels(&g, u)
        } else {
            by_planes(&g, per, u)
        }
    }
}

/// Pixel by pixel over vectors of channels.
unsafe fn by_channels<T: Float>(g: &Correlation<T>, u: &'static Ukr<T>) {
    let taps = g.r * g.s;
    // The weight as [tap][channel], the bias, and zeros that taps outside the image read.
    with_scratch::<T, _>((taps + 2) * g.k, |weights| {
        // SAFETY: the scratch has this size; operands as the caller's contract has them.
        unsafe {
            for k in 0..g.k {
                for t in 0..taps {
                    let tap = [k as isize, 0, (t / g.s) as isize, (t % g.s) as isize];
                    *weights.add(t * g.k + k) = *g.weight.at(tap);
                }
                let bias = g.bias.map(|(p, step)| *p.offset(k as isize * step));
                *weights.add(taps * g.k + k) = bias.unwrap_or_default();
                *weights.add((taps + 1) * g.k + k) = T::default();
            }
        }
        let weights = Ptr::new(weights);
        let row_macs = g.q * g.k * taps;
        let rows = g.n * g.p;
        let per = (TASK_MACS / row_macs.max(1)).clamp(1, rows);
        let chunks = rows.div_ceil(per);
        team::par_if(cost::<T>(row_macs * rows) * 4, chunks, &|t| {
            let zeros = weights.get().wrapping_add((taps + 1) * g.k).cast_const();
            let mut x = vec![zeros; taps];
            for row in t * per..rows.min((t + 1) * per) {
                let (n, p) = ((row / g.p) as isize, row % g.p);
                for q in 0..g.q {
                    for r in 0..g.r {
                        let h = (p * g.stride[0] + r * g.dilation[0]) as isize - g.pad[0];
                        for s in 0..g.s {
                            let at = (q * g.stride[1] + s * g.dilation[1]) as isize - g.pad[1];
                            let inside = h >= 0 && h < g.h as isize && at >= 0 && at < g.w as isize;
                            x[r * g.s + s] = if inside { g.x.at([n, 0, h, at]) } else { zeros };
                        }
                    }
                    let y = g.y.at([n, 0, p as isize, q as isize]);
                    // SAFETY: channels lie side by side in x, the scratch and y; this row of y is the task's.
                    unsafe {
                        let w = weights.get();
                        (u.depthwise_channels)(taps, x.as_ptr(), w, g.k, w.add(taps * g.k), y, g.k);
                    }
                }
            }
        });
    });
}

/// Padded rows of one plane of x, columns sorted by remainder modulo the step.
struct Plane {
    width: usize,
    phase_len: usize,
    row_len: usize,
    rows: usize,
    /// Where each tap of output row 0 begins.
    offsets: Vec<usize>,
}

impl Plane {
    fn new(
        (p, q): (usize, usize),
        (r, s): (usize, usize),
        stride: [usize; 2],
        dilation: [usize; 2],
    ) -> Plane {
        let width = (q - 1) * stride[1] + (s - 1) * dilation[1] + 1;
        let phase_len = width.div_ceil(stride[1]);
        let row_len = phase_len * stride[1];
        let offset = |r: usize, s: usize| {
            let column = s * dilation[1];
            r * dilation[0] * row_len + column % stride[1] * phase_len + column / stride[1]
        };
        let offsets = (0..r * s).map(|t| offset(t / s, t % s)).collect();
        Plane { width, phase_len, row_len, rows: (p - 1) * stride[0] + (r - 1) * dilation[0] + 1, offsets }
    }

    fn len(&self) -> usize {
        self.rows * self.row_len
    }

    /// Copies plane (n, c) to `dst`, which has [`Plane::len`] elements.
    unsafe fn copy<T: Float>(
        &self,
        x: &View4<T>,
        size: (usize, usize),
        (n, c): (usize, usize),
        pad: [isize; 2],
        dst: *mut T,
    ) {
        for i in 0..self.rows {
            // SAFETY: row i of the scratch plane; x is readable inside its sizes.
            unsafe {
                let to = dst.add(i * self.row_len);
                let phases = (self.row_len / self.phase_len, self.phase_len);
                let at = (n, c, i as isize - pad[0]);
                copy_plane_row(x, size, at, pad[1], phases, self.width, T::default(), to);
            }
        }
    }
}

/// Plane by plane over vectors of pixels.
unsafe fn by_planes<T: Float>(g: &Correlation<T>, per: usize, u: &'static Ukr<T>) {
    let taps = g.r * g.s;
    let plane = &Plane::new((g.p, g.q), (g.r, g.s), g.stride, g.dilation);
    let plane_macs = g.p * g.q * taps;
    let planes = g.n * g.k;
    let per_task = (TASK_MACS / plane_macs.max(1)).clamp(1, planes);
    let chunks = planes.div_ceil(per_task);
    team::par_if(cost::<T>(plane_macs * planes) * 4, chunks, &|t| {
        with_scratch::<T, _>(plane.len() + taps + g.q, |scratch| {
            let (weights, line) =
                (scratch.wrapping_add(plane.len()), scratch.wrapping_add(plane.len() + taps));
            let mut x = vec![std::ptr::null(); taps];
            for i in t * per_task..planes.min((t + 1) * per_task) {
                let (n, k) = (i / g.k, i % g.k);
                // SAFETY: the scratch is this task's and has these parts; plane (n, k) of y is this task's.
                unsafe {
                    plane.copy(&g.x, (g.h, g.w), (n, k / per), g.pad, scratch);
                    for t in 0..taps {
                        let tap = [k as isize, 0, (t / g.s) as isize, (t % g.s) as isize];
                        *weights.add(t) = *g.weight.at(tap);
                    }
                    let bias = g.bias.map(|(p, step)| *p.offset(k as isize * step)).unwrap_or_default();
                    for p in 0..g.p {
                        for (x, offset) in x.iter_mut().zip(&plane.offsets) {
                            *x = scratch.add(p * g.stride[0] * plane.row_len + offset).cast_const();
                        }
                        let y = g.y.at([n as isize, k as isize, p as isize, 0]);
                        let step = g.y.strides[3];
                        let to = if step == 1 { y } else { line };
                        (u.depthwise_row)(taps, x.as_ptr(), weights, bias, to, g.q);
                        if step != 1 {
                            (0..g.q).for_each(|q| *y.offset(q as isize * step) = *line.add(q));
                        }
                    }
                }
            }
        });
    });
}

/// The weight gradient of a depthwise convolution (`g.groups == g.c`).
///
/// # Safety
/// As [`super::weight_grad`].
pub(super) unsafe fn weight_grad<T: Float>(g: &ConvGeometry, x: View4<T>, dy: View4<T>, dw: View4Mut<T>) {
    struct Operands<T>(View4<T>, View4<T>, View4Mut<T>);
    // SAFETY: a description of addresses, used under the convolution's contract.
    unsafe impl<T> Sync for Operands<T> {}
    let operands = &Operands(x, dy, dw);
    let u = T::ukr();
    let (taps, per) = (g.r * g.s, g.k / g.c);
    let macs = g.n * g.k * g.p * g.q * taps;
    let by_channels = per == 1 && x.strides[1] == 1 && dy.strides[1] == 1;
    // Channels of a task; each sums over all images and pixels in order.
    let block = if by_channels { 2 * u.lanes } else { 1 };
    let chunks = g.k.div_ceil(block);
    team::par_if(cost::<T>(macs) * 4, chunks, &|t| {
        let Operands(x, dy, dw) = operands;
        let (k0, k1) = (t * block, g.k.min((t + 1) * block));
        // SAFETY: channels k0..k1 of dw are this task's; the rest is the caller's contract.
        unsafe {
            if by_channels {
                channel_block(g, u, x, dy, dw, (k0, k1));
            } else {
                one_channel(g, u, x, dy, dw, k0);
            }
        }
    });
}

/// Channels `k0..k1`, side by side in x and dy.
unsafe fn channel_block<T: Float>(
    g: &ConvGeometry,
    u: &Ukr<T>,
    x: &View4<T>,
    dy: &View4<T>,
    dw: &View4Mut<T>,
    (k0, k1): (usize, usize),
) {
    let (taps, width) = (g.r * g.s, k1 - k0);
    let mut sums = vec![T::default(); taps * width];
    // Output positions whose tap lies inside the image, along one dim.
    let range = |tap: usize, d: usize, size: usize, out: usize| {
        let (reach, pad, step) = (tap * g.dilation[d], g.pad_before[d], g.stride[d]);
        let first = pad.saturating_sub(reach).div_ceil(step).min(out);
        let last = (size + pad).saturating_sub(reach).div_ceil(step).min(out);
        (first, last.max(first))
    };
    for n in 0..g.n as isize {
        for p in 0..g.p {
            for r in 0..g.r {
                let h = (p * g.stride[0] + r * g.dilation[0]) as isize - g.pad_before[0] as isize;
                if h < 0 || h >= g.h as isize {
                    continue;
                }
                for s in 0..g.s {
                    let (q0, q1) = range(s, 1, g.w, g.q);
                    let at = (q0 * g.stride[1] + s * g.dilation[1]) as isize - g.pad_before[1] as isize;
                    // SAFETY: pixels inside x and dy (the caller's contract); the sums have `width` a tap.
                    unsafe {
                        (u.dot_channels)(
                            q1 - q0,
                            dy.at([n, k0 as isize, p as isize, q0 as isize]),
                            dy.strides[3],
                            x.at([n, k0 as isize, h, at]),
                            x.strides[3] * g.stride[1] as isize,
                            sums.as_mut_ptr().add((r * g.s + s) * width),
                            width,
                        );
                    }
                }
            }
        }
    }
    for t in 0..taps {
        for i in 0..width {
            let tap = [(k0 + i) as isize, 0, (t / g.s) as isize, (t % g.s) as isize];
            // SAFETY: an element of dw that is the caller's to write.
            unsafe { *dw.at(tap) = sums[t * width + i] }
        }
    }
}

/// Output channel `k`, through planes.
unsafe fn one_channel<T: Float>(
    g: &ConvGeometry,
    u: &Ukr<T>,
    x: &View4<T>,
    dy: &View4<T>,
    dw: &View4Mut<T>,
    k: usize,
) {
    let (taps, per) = (g.r * g.s, g.k / g.c);
    let mut sums = vec![T::default(); taps * u.lanes];
    if g.n * g.p * g.q > 0 {
        let plane = Plane::new((g.p, g.q), (g.r, g.s), g.stride, g.dilation);
        with_scratch::<T, _>(plane.len() + g.q, |scratch| {
            let line = scratch.wrapping_add(plane.len());
            for n in 0..g.n {
                // SAFETY: the scratch has these parts; x and dy are readable (the caller's contract).
                unsafe {
                    plane.copy(x, (g.h, g.w), (n, k / per), g.pad_before.map(|p| p as isize), scratch);
                    for p in 0..g.p {
                        let from = dy.at([n as isize, k as isize, p as isize, 0]);
                        let step = dy.strides[3];
                        let row = if step == 1 { from } else { line };
                        if step != 1 {
                            (0..g.q).for_each(|q| *line.add(q) = *from.offset(q as isize * step));
                        }
                        for (t, offset) in plane.offsets.iter().enumerate() {
                            let at = scratch.add(p * g.stride[0] * plane.row_len + offset);
                            (u.dot_row)(g.q, row, at, sums.as_mut_ptr().add(t * u.lanes));
                        }
                    }
                }
            }
        });
    }
    for t in 0..taps {
        let sum = sums[t * u.lanes..][..u.lanes].iter().fold(T::default(), |a, &b| a + b);
        let tap = [k as isize, 0, (t / g.s) as isize, (t % g.s) as isize];
        // SAFETY: an element of dw that is the caller's to write.
        unsafe { *dw.at(tap) = sum }
    }
}
