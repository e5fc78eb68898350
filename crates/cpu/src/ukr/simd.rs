//! The vector types that micro-kernels are generic over.
//!
//! Methods are `#[inline(always)]` without a target feature of their own: they are only ever inlined into functions
//! that enable the feature, where the intrinsics become single instructions. All of them are `unsafe`: the caller
//! runs on a processor that has the vector type's instruction set, and pointers are good for the lanes touched.

/// A vector of [`Simd::LANES`] elements.
pub trait Simd: Copy {
    /// The element.
    type T: Copy;
    /// Elements in a vector: at most 16.
    const LANES: usize;
    /// All lanes zero.
    unsafe fn zero() -> Self;
    /// All lanes `x`.
    unsafe fn splat(x: Self::T) -> Self;
    /// Reads `LANES` elements.
    unsafe fn load(p: *const Self::T) -> Self;
    /// Reads `n < LANES` elements; the other lanes are zero and their memory is not touched.
    unsafe fn load_n(p: *const Self::T, n: usize) -> Self;
    /// Writes `LANES` elements.
    unsafe fn store(self, p: *mut Self::T);
    /// Writes the first `n < LANES` elements.
    unsafe fn store_n(self, p: *mut Self::T, n: usize);
    /// `self + other`.
    unsafe fn add(self, other: Self) -> Self;
    /// `self + a * b`, rounded once where the instruction set has it.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// Transposes the square matrix whose rows are the first `LANES` vectors.
    unsafe fn transpose(rows: &mut [Self; 16]);
    /// Asks for the cache line at `p`, which may be any address.
    unsafe fn prefetch(p: *const Self::T);
}

/// The portable vector: an array that the compiler keeps in registers.
#[derive(Clone, Copy)]
pub struct Lanes<T, const N: usize>([T; N]);

macro_rules! portable {
    ($t:ty) => {
        impl<const N: usize> Simd for Lanes<$t, N> {
            type T = $t;
            const LANES: usize = N;
            #[inline(always)]
            unsafe fn zero() -> Self {
                Lanes([0.0; N])
            }
            #[inline(always)]
            unsafe fn splat(x: $t) -> Self {
                Lanes([x; N])
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: N elements are readable (the trait's contract).
                Lanes(std::array::from_fn(|i| unsafe { *p.add(i) }))
            }
            #[inline(always)]
            unsafe fn load_n(p: *const $t, n: usize) -> Self {
                // SAFETY: n elements are readable (the trait's contract).
                Lanes(std::array::from_fn(|i| if i < n { unsafe { *p.add(i) } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                for i in 0..N {
                    // SAFETY: N elements are writable (the trait's contract).
                    unsafe { *p.add(i) = self.0[i] }
                }
            }
            #[inline(always)]
            unsafe fn store_n(self, p: *mut $t, n: usize) {
                for i in 0..n.min(N) {
                    // SAFETY: n elements are writable (the trait's contract).
                    unsafe { *p.add(i) = self.0[i] }
                }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                Lanes(std::array::from_fn(|i| self.0[i] + other.0[i]))
            }
            #[inline(always)]
            unsafe fn fma(self, a: Self, b: Self) -> Self {
                Lanes(std::array::from_fn(|i| {
                    // Without the instruction, `mul_add` would be a library call.
                    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                        a.0[i].mul_add(b.0[i], self.0[i])
                    } else {
                        self.0[i] + a.0[i] * b.0[i]
                    }
                }))
            }
            #[inline(always)]
            unsafe fn transpose(rows: &mut [Self; 16]) {
                for i in 0..N {
                    for j in 0..i {
                        let x = rows[i].0[j];
                        rows[i].0[j] = rows[j].0[i];
                        rows[j].0[i] = x;
                    }
                }
            }
            #[inline(always)]
            unsafe fn prefetch(_: *const $t) {}
        }
    };
}
portable!(f32);
portable!(f64);

#[cfg(target_arch = "x86_64")]
pub use x86::{F32x8, F32x16, F64x4, F64x8};

#[cfg(target_arch = "x86_64")]
mod x86 {
    // SAFETY (for every block of this module): `Simd`'s contract. The caller runs on a processor with the instruction
    // set of the type and hands pointers that are good for the lanes touched; masked lanes are not touched.
    #![allow(clippy::undocumented_unsafe_blocks)]
    use super::Simd;
    use std::arch::x86_64::*;

    /// AVX-512, single precision.
    #[derive(Clone, Copy)]
    pub struct F32x16(__m512);
    /// AVX-512, double precision.
    #[derive(Clone, Copy)]
    pub struct F64x8(__m512d);
    /// AVX2, single precision.
    #[derive(Clone, Copy)]
    pub struct F32x8(__m256);
    /// AVX2, double precision.
    #[derive(Clone, Copy)]
    pub struct F64x4(__m256d);

    impl Simd for F32x16 {
        type T = f32;
        const LANES: usize = 16;
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { F32x16(_mm512_setzero_ps()) }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            unsafe { F32x16(_mm512_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            unsafe { F32x16(_mm512_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn load_n(p: *const f32, n: usize) -> Self {
            unsafe { F32x16(_mm512_maskz_loadu_ps(((1u32 << n) - 1) as u16, p)) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            unsafe { _mm512_storeu_ps(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_n(self, p: *mut f32, n: usize) {
            unsafe { _mm512_mask_storeu_ps(p, ((1u32 << n) - 1) as u16, self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { F32x16(_mm512_add_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { F32x16(_mm512_fmadd_ps(a.0, b.0, self.0)) }
        }
        #[inline(always)]
        unsafe fn transpose(r: &mut [Self; 16]) {
            unsafe {
                let zero = _mm512_setzero_ps();
                // Pairs of rows, then quads: afterwards lane L of q[4i + j] holds column 4L + j of rows 4i..4i+4.
                let (mut t, mut q) = ([zero; 16], [zero; 16]);
                for i in 0..8 {
                    t[2 * i] = _mm512_unpacklo_ps(r[2 * i].0, r[2 * i + 1].0);
                    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i].0, r[2 * i + 1].0);
                }
                for i in 0..4 {
                    let d = |j: usize| _mm512_castps_pd(t[4 * i + j]);
                    q[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(0), d(2)));
                    q[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(0), d(2)));
                    q[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(d(1), d(3)));
                    q[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(d(1), d(3)));
                }
                // Then 128-bit lanes.
                for j in 0..4 {
                    let even_lo = _mm512_shuffle_f32x4::<0x88>(q[j], q[4 + j]);
                    let odd_lo = _mm512_shuffle_f32x4::<0xdd>(q[j], q[4 + j]);
                    let even_hi = _mm512_shuffle_f32x4::<0x88>(q[8 + j], q[12 + j]);
                    let odd_hi = _mm512_shuffle_f32x4::<0xdd>(q[8 + j], q[12 + j]);
                    r[j].0 = _mm512_shuffle_f32x4::<0x88>(even_lo, even_hi);
                    r[8 + j].0 = _mm512_shuffle_f32x4::<0xdd>(even_lo, even_hi);
                    r[4 + j].0 = _mm512_shuffle_f32x4::<0x88>(odd_lo, odd_hi);
                    r[12 + j].0 = _mm512_shuffle_f32x4::<0xdd>(odd_lo, odd_hi);
                }
            }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }

    impl Simd for F64x8 {
        type T = f64;
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { F64x8(_mm512_setzero_pd()) }
        }
        #[inline(always)]
        unsafe fn splat(x: f64) -> Self {
            unsafe { F64x8(_mm512_set1_pd(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f64) -> Self {
            unsafe { F64x8(_mm512_loadu_pd(p)) }
        }
        #[inline(always)]
        unsafe fn load_n(p: *const f64, n: usize) -> Self {
            unsafe { F64x8(_mm512_maskz_loadu_pd(((1u32 << n) - 1) as u8, p)) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f64) {
            unsafe { _mm512_storeu_pd(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_n(self, p: *mut f64, n: usize) {
            unsafe { _mm512_mask_storeu_pd(p, ((1u32 << n) - 1) as u8, self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { F64x8(_mm512_add_pd(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { F64x8(_mm512_fmadd_pd(a.0, b.0, self.0)) }
        }
        #[inline(always)]
        unsafe fn transpose(r: &mut [Self; 16]) {
            unsafe {
                let zero = _mm512_setzero_pd();
                // Lane L of t[2i + j] holds column 2L + j of rows 2i, 2i+1.
                let mut t = [zero; 8];
                for i in 0..4 {
                    t[2 * i] = _mm512_unpacklo_pd(r[2 * i].0, r[2 * i + 1].0);
                    t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i].0, r[2 * i + 1].0);
                }
                for j in 0..2 {
                    let even_lo = _mm512_shuffle_f64x2::<0x88>(t[j], t[2 + j]);
                    let odd_lo = _mm512_shuffle_f64x2::<0xdd>(t[j], t[2 + j]);
                    let even_hi = _mm512_shuffle_f64x2::<0x88>(t[4 + j], t[6 + j]);
                    let odd_hi = _mm512_shuffle_f64x2::<0xdd>(t[4 + j], t[6 + j]);
                    r[j].0 = _mm512_shuffle_f64x2::<0x88>(even_lo, even_hi);
                    r[4 + j].0 = _mm512_shuffle_f64x2::<0xdd>(even_lo, even_hi);
                    r[2 + j].0 = _mm512_shuffle_f64x2::<0x88>(odd_lo, odd_hi);
                    r[6 + j].0 = _mm512_shuffle_f64x2::<0xdd>(odd_lo, odd_hi);
                }
            }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const f64) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }

    /// A lane mask with the first `n` of eight lanes set.
    #[inline(always)]
    unsafe fn mask8(n: usize) -> __m256i {
        static ONES_THEN_ZEROS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        unsafe { _mm256_loadu_si256(ONES_THEN_ZEROS.as_ptr().add(8 - n.min(8)).cast()) }
    }

    impl Simd for F32x8 {
        type T = f32;
        const LANES: usize = 8;
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { F32x8(_mm256_setzero_ps()) }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            unsafe { F32x8(_mm256_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            unsafe { F32x8(_mm256_loadu_ps(p)) }
        }
        #[inline(always)]
        unsafe fn load_n(p: *const f32, n: usize) -> Self {
            unsafe { F32x8(_mm256_maskload_ps(p, mask8(n))) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            unsafe { _mm256_storeu_ps(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_n(self, p: *mut f32, n: usize) {
            unsafe { _mm256_maskstore_ps(p, mask8(n), self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { F32x8(_mm256_add_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { F32x8(_mm256_fmadd_ps(a.0, b.0, self.0)) }
        }
        #[inline(always)]
        unsafe fn transpose(r: &mut [Self; 16]) {
            unsafe {
                let zero = _mm256_setzero_ps();
                let (mut t, mut q) = ([zero; 8], [zero; 8]);
                for i in 0..4 {
                    t[2 * i] = _mm256_unpacklo_ps(r[2 * i].0, r[2 * i + 1].0);
                    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i].0, r[2 * i + 1].0);
                }
                // Lane L of q[4i + j] holds column 4L + j of rows 4i..4i+4.
                for i in 0..2 {
                    q[4 * i] = _mm256_shuffle_ps::<0x44>(t[4 * i], t[4 * i + 2]);
                    q[4 * i + 1] = _mm256_shuffle_ps::<0xee>(t[4 * i], t[4 * i + 2]);
                    q[4 * i + 2] = _mm256_shuffle_ps::<0x44>(t[4 * i + 1], t[4 * i + 3]);
                    q[4 * i + 3] = _mm256_shuffle_ps::<0xee>(t[4 * i + 1], t[4 * i + 3]);
                }
                for j in 0..4 {
                    r[j].0 = _mm256_permute2f128_ps::<0x20>(q[j], q[4 + j]);
                    r[4 + j].0 = _mm256_permute2f128_ps::<0x31>(q[j], q[4 + j]);
                }
            }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const f32) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }

    impl Simd for F64x4 {
        type T = f64;
        const LANES: usize = 4;
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { F64x4(_mm256_setzero_pd()) }
        }
        #[inline(always)]
        unsafe fn splat(x: f64) -> Self {
            unsafe { F64x4(_mm256_set1_pd(x)) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f64) -> Self {
            unsafe { F64x4(_mm256_loadu_pd(p)) }
        }
        #[inline(always)]
        unsafe fn load_n(p: *const f64, n: usize) -> Self {
            unsafe { F64x4(_mm256_maskload_pd(p, mask8(2 * n))) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f64) {
            unsafe { _mm256_storeu_pd(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_n(self, p: *mut f64, n: usize) {
            unsafe { _mm256_maskstore_pd(p, mask8(2 * n), self.0) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { F64x4(_mm256_add_pd(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { F64x4(_mm256_fmadd_pd(a.0, b.0, self.0)) }
        }
        #[inline(always)]
        unsafe fn transpose(r: &mut [Self; 16]) {
            unsafe {
                let lo01 = _mm256_unpacklo_pd(r[0].0, r[1].0);
                let hi01 = _mm256_unpackhi_pd(r[0].0, r[1].0);
                let lo23 = _mm256_unpacklo_pd(r[2].0, r[3].0);
                let hi23 = _mm256_unpackhi_pd(r[2].0, r[3].0);
                r[0].0 = _mm256_permute2f128_pd::<0x20>(lo01, lo23);
                r[1].0 = _mm256_permute2f128_pd::<0x20>(hi01, hi23);
                r[2].0 = _mm256_permute2f128_pd::<0x31>(lo01, lo23);
                r[3].0 = _mm256_permute2f128_pd::<0x31>(hi01, hi23);
            }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const f64) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    }
}
