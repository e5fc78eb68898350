//! The micro-kernel bodies, generic over the vector type and the tile's size.
//!
//! A tile is `MR` rows of `NV` vectors, held in registers while k runs. One step of k loads `NV` vectors of B and, for
//! each row, spreads one element of A and multiplies. Two ways to find A's elements cover matrix products and all
//! convolutions:
//!
//! - [`interleaved`]: A packed so that the `MR` elements of one k lie side by side; a sum over several (A, B) pairs.
//! - [`rows`]: one pointer for each row, elements of k side by side (a pixel's channels, a row of a row-major matrix).
//!
//! Every element of the tile is the plain sum in order of k, whatever `MR`, `NV` and the edge: cutting a matrix
//! differently does not change its bits.

// Loops over fixed-size arrays of registers: indices say what is meant.
#![allow(clippy::needless_range_loop)]

use super::simd::Simd;

/// Row pointers of one tap in the table handed to [`rows`].
pub const ROW_SLOTS: usize = 16;

type Acc<V, const MR: usize, const NV: usize> = [[V; NV]; MR];

/// `C (MR x n) [+]= sum over p < pairs of A_p (MR x k) B_p (k x n)`, with `A_p = a + p * a_step` interleaved
/// (element `(i, kk)` at `kk * MR + i`), `B_p = b + b_offsets[p]` (row kk at `kk * ldb`, full vectors readable), rows of
/// C at `c + i * ldc`, of which the first `n <= NV * LANES` columns are written.
///
/// # Safety
/// The pointers are good for the elements named; C overlaps neither A nor B; the processor has V's instructions.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn interleaved<V: Simd, const MR: usize, const NV: usize>(
    pairs: usize,
    k: usize,
    a: *const V::T,
    a_step: usize,
    b: *const V::T,
    b_offsets: *const isize,
    ldb: isize,
    c: *mut V::T,
    ldc: isize,
    n: usize,
    accumulate: bool,
) {
    // SAFETY: the caller's contract, element by element as documented above.
    unsafe {
        let mut acc: Acc<V, MR, NV> = [[V::zero(); NV]; MR];
        for i in 0..MR {
            let row = c.offset(i as isize * ldc);
            V::prefetch(row);
            V::prefetch(row.add(n - 1));
        }
        for p in 0..pairs {
            let mut a = a.add(p * a_step);
            let mut b = b.offset(*b_offsets.add(p));
            for _ in 0..k {
                let mut bv = [V::zero(); NV];
                for v in 0..NV {
                    bv[v] = V::load(b.add(v * V::LANES));
                }
                for i in 0..MR {
                    let x = V::splat(*a.add(i));
                    for v in 0..NV {
                        acc[i][v] = acc[i][v].fma(x, bv[v]);
                    }
                }
                a = a.add(MR);
                b = b.offset(ldb);
            }
        }
        for i in 0..MR {
            store_row::<V, NV>(&acc[i], c.offset(i as isize * ldc), n, accumulate);
        }
    }
}

/// `C (MR x n) = init + sum over t < taps of A_t (MR x k) B_t (k x n)`, with row i of `A_t` at `a[t * ROW_SLOTS + i]`,
/// its k elements side by side, row kk of `B_t` at `b + (t * k + kk) * ldb`, full vectors readable, row i of C at
/// `c[i]`. `init` is a row of `NV * LANES` elements that every row starts from, or null; `accumulate` adds to C instead.
///
/// # Safety
/// The pointers are good for the elements named; C overlaps neither A nor B; the processor has V's instructions.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn rows<V: Simd, const MR: usize, const NV: usize>(
    taps: usize,
    k: usize,
    a: *const *const V::T,
    b: *const V::T,
    ldb: isize,
    init: *const V::T,
    c: *const *mut V::T,
    n: usize,
    accumulate: bool,
) {
    // SAFETY: the caller's contract, element by element as documented above.
    unsafe {
        let mut acc: Acc<V, MR, NV> = [[V::zero(); NV]; MR];
        if !init.is_null() {
            for v in 0..NV {
                let x = V::load(init.add(v * V::LANES));
                for row in acc.iter_mut() {
                    row[v] = x;
                }
            }
        }
        let mut b = b;
        for t in 0..taps {
            let mut row = [std::ptr::null(); MR];
            for i in 0..MR {
                row[i] = *a.add(t * ROW_SLOTS + i);
            }
            for kk in 0..k {
                let mut bv = [V::zero(); NV];
                for v in 0..NV {
                    bv[v] = V::load(b.add(v * V::LANES));
                }
                for i in 0..MR {
                    let x = V::splat(*row[i].add(kk));
                    for v in 0..NV {
                        acc[i][v] = acc[i][v].fma(x, bv[v]);
                    }
                }
                b = b.offset(ldb);
            }
        }
        for i in 0..MR {
            store_row::<V, NV>(&acc[i], *c.add(i), n, accumulate);
        }
    }
}

#[inline(always)]
unsafe fn store_row<V: Simd, const NV: usize>(acc: &[V; NV], c: *mut V::T, n: usize, accumulate: bool) {
    // SAFETY: n elements at c are the caller's to write.
    unsafe {
        for v in 0..NV {
            let p = c.add(v * V::LANES);
            if n >= (v + 1) * V::LANES {
                let x = if accumulate { V::load(p).add(acc[v]) } else { acc[v] };
                x.store(p);
            } else if n > v * V::LANES {
                let left = n - v * V::LANES;
                let x = if accumulate { V::load_n(p, left).add(acc[v]) } else { acc[v] };
                x.store_n(p, left);
            }
        }
    }
}

/// `dst[j * ldd + i] = src[i * lds + j]` for `i < rows`, `j < cols`.
///
/// # Safety
/// The pointers are good for the elements named and do not overlap; the processor has V's instructions.
#[inline(always)]
pub unsafe fn transpose<V: Simd>(
    dst: *mut V::T,
    ldd: isize,
    src: *const V::T,
    lds: isize,
    rows: usize,
    cols: usize,
) {
    // SAFETY: the caller's contract; i + ii < rows and j + jj < cols throughout.
    unsafe {
        let lanes = V::LANES;
        let mut i = 0;
        while i < rows {
            let h = lanes.min(rows - i);
            let mut j = 0;
            while j < cols {
                let w = lanes.min(cols - j);
                let from = src.offset(i as isize * lds + j as isize);
                let to = dst.offset(j as isize * ldd + i as isize);
                let mut r = [V::zero(); 16];
                if w == lanes && h == lanes {
                    for ii in 0..lanes {
                        r[ii] = V::load(from.offset(ii as isize * lds));
                    }
                    V::transpose(&mut r);
                    for jj in 0..lanes {
                        r[jj].store(to.offset(jj as isize * ldd));
                    }
                } else {
                    for ii in 0..lanes {
                        if ii < h {
                            let p = from.offset(ii as isize * lds);
                            r[ii] = if w == lanes { V::load(p) } else { V::load_n(p, w) };
                        }
                    }
                    V::transpose(&mut r);
                    for jj in 0..lanes {
                        if jj < w {
                            let p = to.offset(jj as isize * ldd);
                            if h == lanes { r[jj].store(p) } else { r[jj].store_n(p, h) }
                        }
                    }
                }
                j += lanes;
            }
            i += lanes;
        }
    }
}

/// `dst[j * ldd + i] = src[j * lds + i]` for `i < w`, `j < rows`: short rows moved by vectors; `dst`'s columns up to
/// `pad_to` are zeroed.
///
/// # Safety
/// The pointers are good for the elements named and do not overlap; the processor has V's instructions.
#[inline(always)]
pub unsafe fn copy_rows<V: Simd>(
    dst: *mut V::T,
    ldd: isize,
    src: *const V::T,
    lds: isize,
    rows: usize,
    w: usize,
    pad_to: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let lanes = V::LANES;
        for j in 0..rows {
            let from = src.offset(j as isize * lds);
            let to = dst.offset(j as isize * ldd);
            let mut i = 0;
            while i < pad_to.max(w) {
                let x = if w >= i + lanes {
                    V::load(from.add(i))
                } else if w > i {
                    V::load_n(from.add(i), w - i)
                } else {
                    V::zero()
                };
                let room = pad_to.max(w) - i;
                if room >= lanes {
                    x.store(to.add(i))
                } else {
                    x.store_n(to.add(i), room)
                }
                i += lanes;
            }
        }
    }
}
