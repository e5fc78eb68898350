//! The inner loops of depthwise convolutions: vectors of channels, or vectors of pixels of one row.

// Loops over fixed-size arrays of registers: indices say what is meant.
#![allow(clippy::needless_range_loop)]

use super::simd::Simd;

/// Vectors in flight.
const NV: usize = 4;

/// `y[i] = init[i] + sum over t < taps of x[t][i] * w[t * w_step + i]` for `i < n`.
///
/// # Safety
/// The pointers are good for n elements each; y overlaps no input; the processor has V's instructions.
#[inline(always)]
pub unsafe fn channels<V: Simd>(
    taps: usize,
    x: *const *const V::T,
    w: *const V::T,
    w_step: usize,
    init: *const V::T,
    y: *mut V::T,
    n: usize,
) {
    // SAFETY: the caller's contract; i + the lanes touched is at most n.
    unsafe {
        let mut i = 0;
        while i + NV * V::LANES <= n {
            let mut acc = [V::zero(); NV];
            for v in 0..NV {
                acc[v] = V::load(init.add(i + v * V::LANES));
            }
            for t in 0..taps {
                let (x, w) = ((*x.add(t)).add(i), w.add(t * w_step + i));
                for v in 0..NV {
                    acc[v] = acc[v].fma(V::load(x.add(v * V::LANES)), V::load(w.add(v * V::LANES)));
                }
            }
            for v in 0..NV {
                acc[v].store(y.add(i + v * V::LANES));
            }
            i += NV * V::LANES;
        }
        while i < n {
            let left = n - i;
            let load = |p: *const V::T| if left >= V::LANES { V::load(p) } else { V::load_n(p, left) };
            let mut acc = load(init.add(i));
            for t in 0..taps {
                acc = acc.fma(load((*x.add(t)).add(i)), load(w.add(t * w_step + i)));
            }
            if left >= V::LANES {
                acc.store(y.add(i))
            } else {
                acc.store_n(y.add(i), left)
            }
            i += V::LANES;
        }
    }
}

/// `y[i] = init + sum over t < taps of x[t][i] * w[t]` for `i < n`.
///
/// # Safety
/// As [`channels`].
#[inline(always)]
pub unsafe fn row<V: Simd>(
    taps: usize,
    x: *const *const V::T,
    w: *const V::T,
    init: V::T,
    y: *mut V::T,
    n: usize,
) {
    // SAFETY: the caller's contract; i + the lanes touched is at most n.
    unsafe {
        let mut i = 0;
        while i + NV * V::LANES <= n {
            let mut acc = [V::splat(init); NV];
            for t in 0..taps {
                let (x, w) = ((*x.add(t)).add(i), V::splat(*w.add(t)));
                for v in 0..NV {
                    acc[v] = acc[v].fma(V::load(x.add(v * V::LANES)), w);
                }
            }
            for v in 0..NV {
                acc[v].store(y.add(i + v * V::LANES));
            }
            i += NV * V::LANES;
        }
        while i < n {
            let left = n - i;
            let mut acc = V::splat(init);
            for t in 0..taps {
                let p = (*x.add(t)).add(i);
                let x = if left >= V::LANES { V::load(p) } else { V::load_n(p, left) };
                acc = acc.fma(x, V::splat(*w.add(t)));
            }
            if left >= V::LANES {
                acc.store(y.add(i))
            } else {
                acc.store_n(y.add(i), left)
            }
            i += V::LANES;
        }
    }
}

/// `acc[i] += sum over q < count of a[q * a_step + i] * b[q * b_step + i]` for `i < n`.
///
/// # Safety
/// As [`channels`].
#[inline(always)]
pub unsafe fn dot_channels<V: Simd>(
    count: usize,
    a: *const V::T,
    a_step: isize,
    b: *const V::T,
    b_step: isize,
    acc: *mut V::T,
    n: usize,
) {
    // SAFETY: the caller's contract; i + the lanes touched is at most n.
    unsafe {
        let mut i = 0;
        while i + NV * V::LANES <= n {
            let mut sum = [V::zero(); NV];
            for v in 0..NV {
                sum[v] = V::load(acc.add(i + v * V::LANES));
            }
            for q in 0..count as isize {
                let (a, b) = (a.offset(q * a_step).add(i), b.offset(q * b_step).add(i));
                for v in 0..NV {
                    sum[v] = sum[v].fma(V::load(a.add(v * V::LANES)), V::load(b.add(v * V::LANES)));
                }
            }
            for v in 0..NV {
                sum[v].store(acc.add(i + v * V::LANES));
            }
            i += NV * V::LANES;
        }
        while i < n {
            let left = n - i;
            let load = |p: *const V::T| if left >= V::LANES { V::load(p) } else { V::load_n(p, left) };
            let mut sum = load(acc.add(i));
            for q in 0..count as isize {
                sum = sum.fma(load(a.offset(q * a_step).add(i)), load(b.offset(q * b_step).add(i)));
            }
            if left >= V::LANES {
                sum.store(acc.add(i))
            } else {
                sum.store_n(acc.add(i), left)
            }
            i += V::LANES;
        }
    }
}

/// `acc[l] += sum over i < n with i % LANES == l of a[i] * b[i]`: one dot product in `LANES` sums.
///
/// # Safety
/// As [`channels`]; `acc` has `LANES` elements.
#[inline(always)]
pub unsafe fn dot_row<V: Simd>(n: usize, a: *const V::T, b: *const V::T, acc: *mut V::T) {
    // SAFETY: the caller's contract; i + the lanes touched is at most n.
    unsafe {
        let mut sum = V::load(acc);
        let mut i = 0;
        while i + V::LANES <= n {
            sum = sum.fma(V::load(a.add(i)), V::load(b.add(i)));
            i += V::LANES;
        }
        if i < n {
            sum = sum.fma(V::load_n(a.add(i), n - i), V::load_n(b.add(i), n - i));
        }
        sum.store(acc);
    }
}
