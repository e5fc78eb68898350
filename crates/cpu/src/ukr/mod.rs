//! Micro-kernels: the register tiles that matrix products and convolutions are made of.
//!
//! [`Ukr`] is a table of function pointers for one element type and one instruction set; [`Float::ukr`] picks it by
//! [`crate::isa::isa`]. Kernels come for every number of rows up to the tile's, so an edge costs no wasted rows;
//! columns beyond the edge are masked.
//!
//! | instruction set | f32 tile | f64 tile | row-pointer tile |
//! |---|---|---|---|
//! | AVX-512 | 14 x 32 | 14 x 16 | 12 rows |
//! | AVX2 + FMA | 6 x 16 | 6 x 8 | 6 rows |
//! | portable | 4 x 8 | 4 x 4 | 4 rows |

pub mod best;
pub mod depthwise;
pub mod simd;
pub mod tile;

use crate::isa::{Isa, isa};
use simd::Lanes;
pub use tile::ROW_SLOTS;

/// [`tile::interleaved`] of one size.
pub type InterleavedFn<T> = unsafe fn(
    pairs: usize,
    k: usize,
    a: *const T,
    a_step: usize,
    b: *const T,
    b_offsets: *const isize,
    ldb: isize,
    c: *mut T,
    ldc: isize,
    n: usize,
    accumulate: bool,
);
/// [`tile::rows`] of one size.
pub type RowsFn<T> = unsafe fn(
    taps: usize,
    k: usize,
    a: *const *const T,
    b: *const T,
    ldb: isize,
    init: *const T,
    c: *const *mut T,
    n: usize,
    accumulate: bool,
);
/// [`tile::transpose`].
pub type TransposeFn<T> =
    unsafe fn(dst: *mut T, ldd: isize, src: *const T, lds: isize, rows: usize, cols: usize);
/// [`tile::copy_rows`].
pub type CopyRowsFn<T> =
    unsafe fn(dst: *mut T, ldd: isize, src: *const T, lds: isize, rows: usize, w: usize, pad_to: usize);

/// [`depthwise::channels`].
pub type ChannelsFn<T> = unsafe fn(
    taps: usize,
    x: *const *const T,
    w: *const T,
    w_step: usize,
    init: *const T,
    y: *mut T,
    n: usize,
);
/// [`depthwise::row`].
pub type RowFn<T> = unsafe fn(taps: usize, x: *const *const T, w: *const T, init: T, y: *mut T, n: usize);
/// [`depthwise::dot_channels`].
pub type DotChannelsFn<T> =
    unsafe fn(count: usize, a: *const T, a_step: isize, b: *const T, b_step: isize, acc: *mut T, n: usize);
/// [`depthwise::dot_row`].
pub type DotRowFn<T> = unsafe fn(n: usize, a: *const T, b: *const T, acc: *mut T);

/// The kernels of one element type on one instruction set.
pub struct Ukr<T: 'static> {
    /// Elements in a vector.
    pub lanes: usize,
    /// Columns of a full tile: two vectors.
    pub nr: usize,
    /// Rows of a full interleaved tile.
    pub mr: usize,
    /// Rows of a full row-pointer tile.
    pub rows: usize,
    interleaved: [&'static [InterleavedFn<T>]; 2],
    by_rows: [&'static [RowsFn<T>]; 2],
    /// Transposes a matrix.
    pub transpose: TransposeFn<T>,
    /// Moves short rows.
    pub copy_rows: CopyRowsFn<T>,
    /// Depthwise forward over channels.
    pub depthwise_channels: ChannelsFn<T>,
    /// Depthwise forward over pixels of a row.
    pub depthwise_row: RowFn<T>,
    /// Depthwise weight gradient over channels.
    pub dot_channels: DotChannelsFn<T>,
    /// Depthwise weight gradient over pixels of a row.
    pub dot_row: DotRowFn<T>,
}

impl<T> Ukr<T> {
    /// The interleaved kernel for `h` rows (1 to `mr`) and `n` columns (1 to `nr`).
    #[inline]
    pub fn interleaved(&self, h: usize, n: usize) -> InterleavedFn<T> {
        self.interleaved[(n > self.lanes) as usize][h - 1]
    }

    /// The row-pointer kernel for `h` rows (1 to `rows`) and `n` columns (1 to `nr`).
    #[inline]
    pub fn by_rows(&self, h: usize, n: usize) -> RowsFn<T> {
        self.by_rows[(n > self.lanes) as usize][h - 1]
    }
}

/// `f32` and `f64`: the element types that have micro-kernels.
pub trait Float:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + std::fmt::Debug
    + std::ops::Add<Output = Self>
    + std::ops::AddAssign
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + 'static
{
    /// The nearest value.
    fn from_f64(x: f64) -> Self;
    /// The kernels for the current instruction set.
    fn ukr() -> &'static Ukr<Self>;
}

macro_rules! table {
    ($wrap:ident, $dw:ident, $v:ty, mr [$($mr:literal)*], rows [$($r:literal)*]) => {
        Ukr {
            lanes: <$v as simd::Simd>::LANES,
            nr: 2 * <$v as simd::Simd>::LANES,
            mr: [$($mr),*].len(),
            rows: [$($r),*].len(),
            interleaved: [&[$($wrap::interleaved::<$v, $mr, 1>),*], &[$($wrap::interleaved::<$v, $mr, 2>),*]],
            by_rows: [&[$($wrap::rows::<$v, $r, 1>),*], &[$($wrap::rows::<$v, $r, 2>),*]],
            transpose: $wrap::transpose::<$v>,
            copy_rows: $wrap::copy_rows::<$v>,
            depthwise_channels: $dw::channels::<$v>,
            depthwise_row: $dw::row::<$v>,
            dot_channels: $dw::dot_channels::<$v>,
            dot_row: $dw::dot_row::<$v>,
        }
    };
}

/// Writes a module that compiles the tile bodies with target features.
#[cfg(target_arch = "x86_64")]
macro_rules! wrappers {
    ($name:ident, $features:literal) => {
        #[allow(clippy::too_many_arguments)]
        mod $name {
            use super::simd::Simd;
            use super::{depthwise, tile};
            #[target_feature(enable = $features)]
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
                // SAFETY: the caller keeps the body's contract.
                unsafe {
                    tile::interleaved::<V, MR, NV>(
                        pairs, k, a, a_step, b, b_offsets, ldb, c, ldc, n, accumulate,
                    )
                }
            }
            #[target_feature(enable = $features)]
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
                // SAFETY: the caller keeps the body's contract.
                unsafe { tile::rows::<V, MR, NV>(taps, k, a, b, ldb, init, c, n, accumulate) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn transpose<V: Simd>(
                dst: *mut V::T,
                ldd: isize,
                src: *const V::T,
                lds: isize,
                rows: usize,
                cols: usize,
            ) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { tile::transpose::<V>(dst, ldd, src, lds, rows, cols) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn copy_rows<V: Simd>(
                dst: *mut V::T,
                ldd: isize,
                src: *const V::T,
                lds: isize,
                rows: usize,
                w: usize,
                pad_to: usize,
            ) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { tile::copy_rows::<V>(dst, ldd, src, lds, rows, w, pad_to) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn channels<V: Simd>(
                taps: usize,
                x: *const *const V::T,
                w: *const V::T,
                w_step: usize,
                init: *const V::T,
                y: *mut V::T,
                n: usize,
            ) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { depthwise::channels::<V>(taps, x, w, w_step, init, y, n) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn row<V: Simd>(
                taps: usize,
                x: *const *const V::T,
                w: *const V::T,
                init: V::T,
                y: *mut V::T,
                n: usize,
            ) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { depthwise::row::<V>(taps, x, w, init, y, n) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn dot_channels<V: Simd>(
                count: usize,
                a: *const V::T,
                a_step: isize,
                b: *const V::T,
                b_step: isize,
                acc: *mut V::T,
                n: usize,
            ) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { depthwise::dot_channels::<V>(count, a, a_step, b, b_step, acc, n) }
            }
            #[target_feature(enable = $features)]
            pub unsafe fn dot_row<V: Simd>(n: usize, a: *const V::T, b: *const V::T, acc: *mut V::T) {
                // SAFETY: the caller keeps the body's contract.
                unsafe { depthwise::dot_row::<V>(n, a, b, acc) }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
wrappers!(avx512, "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma");
#[cfg(target_arch = "x86_64")]
wrappers!(avx2, "avx2,fma");

macro_rules! float {
    ($t:ty, $portable:ty, $v256:ident, $v512:ident) => {
        impl Float for $t {
            #[inline]
            fn from_f64(x: f64) -> $t {
                x as $t
            }
            #[inline]
            fn ukr() -> &'static Ukr<$t> {
                static PORTABLE: Ukr<$t> = table!(tile, depthwise, $portable, mr [1 2 3 4], rows [1 2 3 4]);
                #[cfg(target_arch = "x86_64")]
                {
                    static AVX2: Ukr<$t> = table!(avx2, avx2, simd::$v256, mr [1 2 3 4 5 6], rows [1 2 3 4 5 6]);
                    static AVX512: Ukr<$t> = table!(avx512, avx512, simd::$v512,
                                mr [1 2 3 4 5 6 7 8 9 10 11 12 13 14], rows [1 2 3 4 5 6 7 8 9 10 11 12]);
                    match isa() {
                        Isa::Avx512 => return &AVX512,
                        Isa::Avx2 => return &AVX2,
                        Isa::Portable => {}
                    }
                }
                #[cfg(not(target_arch = "x86_64"))]
                debug_assert_eq!(isa(), Isa::Portable);
                &PORTABLE
            }
        }
    };
}
float!(f32, Lanes<f32, 4>, F32x8, F32x16);
float!(f64, Lanes<f64, 2>, F64x4, F64x8);

/// Cuts `m` rows into the fewest panels of at most `mr`, heights differing by at most one; panel `p` of
/// [`Panels::len`] is rows [`Panels::start`]`(p)..start(p + 1)`.
#[derive(Clone, Copy, Debug)]
pub struct Panels {
    m: usize,
    count: usize,
}

impl Panels {
    /// Cuts `m` rows.
    pub fn new(m: usize, mr: usize) -> Panels {
        Panels { m, count: m.div_ceil(mr) }
    }

    /// The number of panels.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The first row of panel `p`; `start(len())` is m.
    #[inline]
    pub fn start(&self, p: usize) -> usize {
        if self.count == 0 {
            return 0;
        }
        let (q, r) = (self.m / self.count, self.m % self.count);
        p * q + p.min(r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::with_isa;

    fn on_every_isa(f: impl Fn()) {
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            with_isa(isa, &f);
        }
    }

    fn values<T>(n: usize, seed: usize, from: fn(f64) -> T) -> Vec<T> {
        (0..n).map(|i| from(((i * 7919 + seed * 104_729) % 61) as f64 - 30.0)).collect()
    }

    fn interleaved_is_right<T: Float>(from: fn(f64) -> T) {
        let u = T::ukr();
        let (k, pairs) = (5, 2);
        for h in 1..=u.mr {
            for n in 1..=u.nr {
                let ldb = u.nr + 3;
                let a = values(pairs * k * h, h, from);
                let b = values(pairs * k * ldb + u.nr, n, from);
                let offsets = [0, (k * ldb) as isize];
                for accumulate in [false, true] {
                    let before = values(h * (n + 2), 3, from);
                    let mut c = before.clone();
                    // SAFETY: the slices hold what the arguments say.
                    unsafe {
                        u.interleaved(h, n)(
                            pairs,
                            k,
                            a.as_ptr(),
                            k * h,
                            b.as_ptr(),
                            offsets.as_ptr(),
                            ldb as isize,
                            c.as_mut_ptr(),
                            (n + 2) as isize,
                            n,
                            accumulate,
                        )
                    };
                    for i in 0..h {
                        for j in 0..n + 2 {
                            let mut want =
                                if accumulate || j >= n { before[i * (n + 2) + j] } else { T::default() };
                            for p in (0..pairs).filter(|_| j < n) {
                                for kk in 0..k {
                                    want += a[p * k * h + kk * h + i] * b[p * k * ldb + kk * ldb + j];
                                }
                            }
                            assert_eq!(c[i * (n + 2) + j], want, "h {h} n {n} at {i},{j}");
                        }
                    }
                }
            }
        }
    }

    fn rows_is_right<T: Float>(from: fn(f64) -> T) {
        let u = T::ukr();
        let (k, taps) = (5, 3);
        for h in 1..=u.rows {
            for n in 1..=u.nr {
                let a = values(taps * h * k, h, from);
                let b = values(taps * k * u.nr, n, from);
                let init = values(u.nr, 9, from);
                let mut table = vec![std::ptr::null(); taps * ROW_SLOTS];
                for t in 0..taps {
                    for i in 0..h {
                        table[t * ROW_SLOTS + i] = a[(t * h + i) * k..].as_ptr();
                    }
                }
                let mut c = values(h * (n + 1), 5, from);
                let before = c.clone();
                let out: Vec<*mut T> = (0..h).map(|i| c[i * (n + 1)..].as_mut_ptr()).collect();
                // SAFETY: the slices hold what the arguments say.
                unsafe {
                    u.by_rows(h, n)(
                        taps,
                        k,
                        table.as_ptr(),
                        b.as_ptr(),
                        u.nr as isize,
                        init.as_ptr(),
                        out.as_ptr(),
                        n,
                        false,
                    )
                };
                for i in 0..h {
                    for j in 0..n {
                        let mut want = init[j];
                        for t in 0..taps {
                            for kk in 0..k {
                                want += a[(t * h + i) * k + kk] * b[(t * k + kk) * u.nr + j];
                            }
                        }
                        assert_eq!(c[i * (n + 1) + j], want, "h {h} n {n} at {i},{j}");
                    }
                    assert_eq!(c[i * (n + 1) + n], before[i * (n + 1) + n]);
                }
            }
        }
    }

    fn movers_are_right<T: Float>(from: fn(f64) -> T) {
        let u = T::ukr();
        for rows in [1, 2, 7, 8, 15, 16, 17, 33] {
            for cols in [1, 3, 4, 8, 15, 16, 31, 32, 40] {
                let (lds, ldd) = (cols + 2, rows + 3);
                let src = values(rows * lds, 1, from);
                let mut dst = values(cols * ldd, 2, from);
                let before = dst.clone();
                // SAFETY: the slices hold what the arguments say.
                unsafe {
                    (u.transpose)(dst.as_mut_ptr(), ldd as isize, src.as_ptr(), lds as isize, rows, cols)
                };
                for j in 0..cols {
                    for i in 0..ldd {
                        let want = if i < rows { src[i * lds + j] } else { before[j * ldd + i] };
                        assert_eq!(dst[j * ldd + i], want);
                    }
                }
                let pad_to = cols + 1;
                let mut dst = values(rows * (pad_to + 1), 2, from);
                // SAFETY: the slices hold what the arguments say.
                unsafe {
                    let ldd = pad_to as isize + 1;
                    (u.copy_rows)(dst.as_mut_ptr(), ldd, src.as_ptr(), lds as isize, rows, cols, pad_to)
                };
                for i in 0..rows {
                    assert_eq!(dst[i * (pad_to + 1)..][..cols], src[i * lds..][..cols]);
                    assert_eq!(dst[i * (pad_to + 1) + cols], T::default());
                }
            }
        }
    }

    #[test]
    fn tiles_are_right_on_every_isa() {
        on_every_isa(|| {
            interleaved_is_right::<f32>(|x| x as f32);
            interleaved_is_right::<f64>(|x| x);
            rows_is_right::<f32>(|x| x as f32);
            rows_is_right::<f64>(|x| x);
            movers_are_right::<f32>(|x| x as f32);
            movers_are_right::<f64>(|x| x);
        });
    }

    #[test]
    fn panels_cover_and_balance() {
        for m in 0..100 {
            for mr in 1..16 {
                let p = Panels::new(m, mr);
                let heights: Vec<_> = (0..p.len()).map(|i| p.start(i + 1) - p.start(i)).collect();
                assert_eq!(heights.iter().sum::<usize>(), m);
                assert!(heights.iter().all(|&h| h >= 1 && h <= mr));
                if let (Some(a), Some(b)) = (heights.iter().min(), heights.iter().max()) {
                    assert!(b - a <= 1);
                }
            }
        }
    }
}
