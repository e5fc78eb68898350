//! Maximum pooling: values and where they were found.
//!
//! A window's elements are visited row by row; an element replaces the best so far if it is greater or NaN. So ties keep
//! the first, NaN wins, and of several NaN the last one's index is kept.

use super::{BLOCK, Operands, PoolGeometry, View4, View4Mut, channels_side_by_side};
use crate::isa::multiversion;
use crate::team;

/// What maximum pooling takes.
pub trait PoolElement: Copy + PartialOrd + Send + Sync + 'static {
    /// What padding counts as.
    const LOWEST: Self;
}
impl PoolElement for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;
}
impl PoolElement for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
}
impl PoolElement for i64 {
    const LOWEST: i64 = i64::MIN;
}

/// A window element that all lanes of a line have.
#[derive(Clone, Copy)]
struct Tap {
    offset: isize,
    /// Its index in the plane, for lane 0.
    index: u32,
}

/// The best of `taps` for each of `n <= BLOCK` lanes: lane i of tap t at `x + t.offset + i * step`, its index
/// `t.index + i * index_step`.
#[inline(always)]
#[allow(clippy::eq_op)] // x != x asks for NaN, for integers too
unsafe fn best_of<T: PoolElement>(
    taps: &[Tap],
    x: *const T,
    step: isize,
    index_step: u32,
    n: usize,
    best: &mut [T; BLOCK],
    at: &mut [u32; BLOCK],
) {
    // The loop once more for the steps that vectorise.
    match step {
        // SAFETY: the caller's contract.
        1 => unsafe { lanes::<T, 1>(taps, x, step, index_step, n, best, at) },
        // SAFETY: the caller's contract.
        2 => unsafe { lanes::<T, 2>(taps, x, step, index_step, n, best, at) },
        // SAFETY: the caller's contract.
        _ => unsafe { lanes::<T, 0>(taps, x, step, index_step, n, best, at) },
    }
}

#[inline(always)]
#[allow(clippy::eq_op)]
unsafe fn lanes<T: PoolElement, const STEP: isize>(
    taps: &[Tap],
    x: *const T,
    step: isize,
    index_step: u32,
    n: usize,
    best: &mut [T; BLOCK],
    at: &mut [u32; BLOCK],
) {
    let step = if STEP == 0 { step } else { STEP };
    let n = n.min(BLOCK);
    let first = taps.first().map_or(0, |t| t.index);
    for i in 0..n {
        best[i] = T::LOWEST;
        at[i] = first + i as u32 * index_step;
    }
    for tap in taps {
        let x = x.wrapping_offset(tap.offset);
        for i in 0..n {
            // SAFETY: lane i of this tap lies in x (the caller's contract).
            let v = unsafe { *x.offset(i as isize * step) };
            let take = v > best[i] || v != v;
            best[i] = if take { v } else { best[i] };
            at[i] = if take { tap.index + i as u32 * index_step } else { at[i] };
        }
    }
}

multiversion! {
    fn best_lanes<T: PoolElement>(taps: &[Tap], x: *const T, step: isize, index_step: u32, n: usize,
        best: &mut [T; BLOCK], at: &mut [u32; BLOCK]) = best_of
}

/// `y` is the largest element of each window, `indices` its index `h * width + w` in the plane. Padding counts as the lowest
/// value and is never the answer; a window that holds nothing (a dilated one may) gives the lowest value and index 0.
///
/// # Safety
/// x is readable, y and indices are writable, at every index; distinct indices of an output are distinct addresses; the
/// outputs overlap neither x nor one another.
///
/// # Panics
/// If a plane has 2^32 elements or more, or a step, dilation or window size is zero.
pub unsafe fn max_pool2d<T: PoolElement>(
    g: &PoolGeometry,
    x: View4<T>,
    y: View4Mut<T>,
    indices: View4Mut<i64>,
) {
    assert!(g.h.saturating_mul(g.w) <= u32::MAX as usize, "a plane of 2^32 elements or more: {g:?}");
    let positive = [g.kernel, g.stride, g.dilation].as_flattened().iter().all(|&v| v > 0);
    assert!(positive, "window, step and dilation are positive: {g:?}");
    if g.n * g.c * g.p * g.q == 0 {
        return;
    }
    let by_channels = channels_side_by_side(g.c, &[x.strides, y.strides, indices.strides]);
    let operands = &Operands(x, y, indices);
    // A task is an output row, of all channels or of one.
    let rows = if by_channels { g.n * g.p } else { g.n * g.c * g.p };
    let row_work = g.q * g.kernel[0] * g.kernel[1] * if by_channels { g.c } else { 1 };
    let per = (16_384 / row_work.max(1)).clamp(1, rows);
    team::par_if((row_work * rows) as u64 / 2, rows.div_ceil(per), &|t| {
        for row in t * per..rows.min((t + 1) * per) {
            // SAFETY: the caller's contract; each output row is one task's.
            unsafe {
                if by_channels {
                    channels_row(g, operands, row / g.p, row % g.p);
                } else {
                    plane_row(g, operands, row / (g.c * g.p), row / g.p % g.c, row % g.p);
                }
            }
        }
    });
}

type MaxOperands<T> = Operands<View4<T>, View4Mut<T>, View4Mut<i64>>;

/// Elements of a window along dim `d` that lie in the input: the position of output `o`'s element `i`, if inside.
fn inside(g: &PoolGeometry, d: usize, o: usize, i: usize) -> Option<usize> {
    let at = (o * g.stride[d] + i * g.dilation[d]).checked_sub(g.pad[d])?;
    (at < if d == 0 { g.h } else { g.w }).then_some(at)
}

/// Output row p of image n, vectors of channels.
unsafe fn channels_row<T: PoolElement>(g: &PoolGeometry, operands: &MaxOperands<T>, n: usize, p: usize) {
    let Operands(x, y, indices) = operands;
    let (mut best, mut at) = ([T::LOWEST; BLOCK], [0u32; BLOCK]);
    let mut taps = vec![];
    for q in 0..g.q {
        taps.clear();
        for r in 0..g.kernel[0] {
            let Some(h) = inside(g, 0, p, r) else { continue };
            for s in 0..g.kernel[1] {
                let Some(w) = inside(g, 1, q, s) else { continue };
                let offset = h as isize * x.strides[2] + w as isize * x.strides[3];
                taps.push(Tap { offset, index: (h * g.w + w) as u32 });
            }
        }
        for c in (0..g.c).step_by(BLOCK) {
            let lanes = BLOCK.min(g.c - c);
            let to = [n as isize, c as isize, p as isize, q as isize];
            // SAFETY: the caller's contract; channels c.. of this pixel lie side by side.
            unsafe {
                let from = x.at([n as isize, c as isize, 0, 0]);
                best_lanes(&taps, from, 1, 0, lanes, &mut best, &mut at);
                std::ptr::copy_nonoverlapping(best.as_ptr(), y.at(to), lanes);
                let out = indices.at(to);
                for (i, &at) in at[..lanes].iter().enumerate() {
                    *out.add(i) = i64::from(at);
                }
            }
        }
    }
}

/// Output row p of plane (n, c): vectors of pixels where the whole window lies inside, single ones at the edges.
unsafe fn plane_row<T: PoolElement>(
    g: &PoolGeometry,
    operands: &MaxOperands<T>,
    n: usize,
    c: usize,
    p: usize,
) {
    let Operands(x, y, indices) = operands;
    let (mut best, mut at) = ([T::LOWEST; BLOCK], [0u32; BLOCK]);
    // Pixels first..last have their whole window inside the row.
    let reach = (g.kernel[1] - 1) * g.dilation[1];
    let first = g.pad[1].div_ceil(g.stride[1]).min(g.q);
    let last = match (g.w + g.pad[1]).checked_sub(reach + 1) {
        Some(room) => (room / g.stride[1] + 1).clamp(first, g.q),
        None => first,
    };
    let mut taps = vec![];
    let mut q = 0;
    while q < g.q {
        let lanes = if q >= first && q < last { BLOCK.min(last - q) } else { 1 };
        taps.clear();
        for r in 0..g.kernel[0] {
            let Some(h) = inside(g, 0, p, r) else { continue };
            for s in 0..g.kernel[1] {
                let Some(w) = inside(g, 1, q, s) else { continue };
                let offset = h as isize * x.strides[2] + w as isize * x.strides[3];
                taps.push(Tap { offset, index: (h * g.w + w) as u32 });
            }
        }
        // SAFETY: the caller's contract; every lane's window lies inside x.
        unsafe {
            let from = x.at([n as isize, c as isize, 0, 0]);
            let step = x.strides[3] * g.stride[1] as isize;
            best_lanes(&taps, from, step, g.stride[1] as u32, lanes, &mut best, &mut at);
            for i in 0..lanes {
                let to = [n as isize, c as isize, p as isize, (q + i) as isize];
                *y.at(to) = best[i];
                *indices.at(to) = i64::from(at[i]);
            }
        }
        q += lanes;
    }
}

/// The gradient of [`max_pool2d`]: `dx` is zero but for the sums of the gradients whose windows' indices name the element. Only
/// `n, c, h, w, p, q` of the geometry are used.
///
/// # Safety
/// dy and indices are readable and dx is writable at every index; distinct indices of dx are distinct addresses; dx overlaps no
/// input; every index read lies in `0..h * w`.
pub unsafe fn max_pool2d_backward<T>(g: &PoolGeometry, dy: View4<T>, indices: View4<i64>, dx: View4Mut<T>)
where
    T: Copy + Default + std::ops::AddAssign + Send + Sync + 'static,
{
    let by_channels = channels_side_by_side(g.c, &[dy.strides, dx.strides]);
    let block = if by_channels { BLOCK } else { 1 };
    let blocks = g.c.div_ceil(block);
    let operands = &Operands(dy, indices, dx);
    let work = g.n * g.c * (g.h * g.w + 2 * g.p * g.q);
    team::par_if(work as u64 / 2, g.n * blocks, &|t| {
        let Operands(dy, indices, dx) = operands;
        let (n, c0) = ((t / blocks) as isize, t % blocks * block);
        let channels = c0 as isize..g.c.min(c0 + block) as isize;
        let [_, _, s2, s3] = dx.strides;
        let one_stride = g.h == 1 || s2 == g.w as isize * s3;
        // SAFETY: the caller's contract; these channels of image n of dx are this task's.
        unsafe {
            for h in 0..g.h as isize {
                for w in 0..g.w as isize {
                    for c in channels.clone() {
                        *dx.at([n, c, h, w]) = T::default();
                    }
                }
            }
            for p in 0..g.p as isize {
                for q in 0..g.q as isize {
                    for c in channels.clone() {
                        let i = *indices.at([n, c, p, q]);
                        debug_assert!((i as u64) < (g.h * g.w) as u64);
                        let offset = if one_stride {
                            i as isize * s3
                        } else {
                            let (h, w) = (i as usize / g.w, i as usize % g.w);
                            h as isize * s2 + w as isize * s3
                        };
                        *dx.at([n, c, 0, 0]).offset(offset) += *dy.at([n, c, p, q]);
                    }
                }
            }
        }
    });
}
