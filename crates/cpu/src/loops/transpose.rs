//! Transposing rectangles of 1-, 2-, 4- and 8-byte elements, in register blocks where the processor has the shuffles.

#[cfg(target_arch = "x86_64")]
use crate::isa::{Isa, isa};

/// A rectangle to transpose: `dst[r * dst_stride + c] = src[c * src_stride + r]`.
#[derive(Clone, Copy)]
struct Job<T> {
    dst: *mut T,
    dst_stride: isize,
    src: *const T,
    src_stride: isize,
}

impl<T: Copy> Job<T> {
    /// The same from row `r` and column `c` on.
    #[inline(always)]
    fn at(self, r: usize, c: usize) -> Job<T> {
        let (r, c) = (r as isize, c as isize);
        Job {
            dst: self.dst.wrapping_offset(r * self.dst_stride + c),
            src: self.src.wrapping_offset(c * self.src_stride + r),
            ..self
        }
    }

    /// # Safety
    /// All of the rectangle's elements may be read and written.
    #[inline(always)]
    unsafe fn plain(self, rows: usize, cols: usize) {
        for c in 0..cols as isize {
            for r in 0..rows as isize {
                // SAFETY: by the caller's promise.
                unsafe {
                    *self.dst.offset(r * self.dst_stride + c) = *self.src.offset(c * self.src_stride + r)
                };
            }
        }
    }

    /// In square blocks of `N`, the rest element by element.
    ///
    /// # Safety
    /// As for `plain`; `block` transposes N x N elements.
    #[inline(always)]
    unsafe fn blocks<const N: usize>(self, rows: usize, cols: usize, block: impl Fn(Job<T>)) {
        let (whole_rows, whole_cols) = (rows / N * N, cols / N * N);
        // Cache lines of both sides are finished before the next ones are begun: with strides that are powers of two, few
        // of them fit the first cache.
        let line = (64 / size_of::<T>()).min(32).max(N);
        for c0 in (0..whole_cols).step_by(line) {
            for r0 in (0..whole_rows).step_by(line) {
                for r in (r0..whole_rows.min(r0 + line)).step_by(N) {
                    for c in (c0..whole_cols.min(c0 + line)).step_by(N) {
                        block(self.at(r, c));
                    }
                }
            }
        }
        // SAFETY: by the caller's promise.
        unsafe {
            self.at(0, whole_cols).plain(whole_rows, cols - whole_cols);
            self.at(whole_rows, 0).plain(rows - whole_rows, cols);
        }
    }
}

/// `dst[r * dst_stride + c] = src[c * src_stride + r]` for `rows` times `cols` elements.
///
/// # Safety
/// All of these elements lie in memory that may be written and read, and the two sides do not overlap.
pub(crate) unsafe fn transpose<T: Copy + 'static>(
    dst: *mut T,
    dst_stride: isize,
    src: *const T,
    src_stride: isize,
    rows: usize,
    cols: usize,
) {
    let job = Job { dst, dst_stride, src, src_stride };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `isa` only names what the processor has; SSE2 every x86-64 has. The element's size is that of the cast; the
    // caller's promise covers the rest.
    unsafe {
        match (size_of::<T>(), isa()) {
            (1, _) => return x86::by_8_u8(job.cast(), rows, cols),
            (2, _) => return x86::by_8_u16(job.cast(), rows, cols),
            (4, Isa::Avx512) => return x86::by_16_u32(job.cast(), rows, cols),
            (4, Isa::Avx2) => return x86::by_8_u32(job.cast(), rows, cols),
            (8, Isa::Avx512 | Isa::Avx2) => return x86::by_4_u64(job.cast(), rows, cols),
            _ => {}
        }
    }
    // SAFETY: by the caller's promise.
    unsafe { job.blocks::<16>(rows, cols, |b| b.plain(16, 16)) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Job;
    use std::arch::x86_64::*;

    impl<T> Job<T> {
        /// The same memory as elements of another type of the same size.
        pub(super) fn cast<U>(self) -> Job<U> {
            let Job { dst, dst_stride, src, src_stride } = self;
            Job { dst: dst.cast(), dst_stride, src: src.cast(), src_stride }
        }
    }

    /// # Safety
    /// As [`super::transpose`].
    pub(super) unsafe fn by_8_u8(job: Job<u8>, rows: usize, cols: usize) {
        let block = |b: Job<u8>| {
            // SAFETY: the block's 8 x 8 elements lie in the rectangle.
            unsafe {
                let x: [__m128i; 8] =
                    std::array::from_fn(|i| _mm_loadl_epi64(b.src.offset(i as isize * b.src_stride).cast()));
                let t: [__m128i; 4] = std::array::from_fn(|i| _mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]));
                let (a0, a1) = (_mm_unpacklo_epi16(t[0], t[1]), _mm_unpackhi_epi16(t[0], t[1]));
                let (b0, b1) = (_mm_unpacklo_epi16(t[2], t[3]), _mm_unpackhi_epi16(t[2], t[3]));
                let out = [
                    _mm_unpacklo_epi32(a0, b0),
                    _mm_unpackhi_epi32(a0, b0),
                    _mm_unpacklo_epi32(a1, b1),
                    _mm_unpackhi_epi32(a1, b1),
                ];
                for (i, v) in out.into_iter().enumerate() {
                    let p = b.dst.offset(2 * i as isize * b.dst_stride);
                    _mm_storel_epi64(p.cast(), v);
                    _mm_storel_epi64(p.offset(b.dst_stride).cast(), _mm_unpackhi_epi64(v, v));
                }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { job.blocks::<8>(rows, cols, block) }
    }

    /// # Safety
    /// As [`super::transpose`].
    pub(super) unsafe fn by_8_u16(job: Job<u16>, rows: usize, cols: usize) {
        let block = |b: Job<u16>| {
            // SAFETY: the block's 8 x 8 elements lie in the rectangle.
            unsafe {
                let x: [__m128i; 8] =
                    std::array::from_fn(|i| _mm_loadu_si128(b.src.offset(i as isize * b.src_stride).cast()));
                // Pairs of rows, then of pairs, then of fours.
                let t: [__m128i; 8] = std::array::from_fn(|i| {
                    let (p, q) = (x[i / 2 * 2], x[i / 2 * 2 + 1]);
                    if i % 2 == 0 { _mm_unpacklo_epi16(p, q) } else { _mm_unpackhi_epi16(p, q) }
                });
                let u: [__m128i; 8] = std::array::from_fn(|i| {
                    let (p, q) = (t[i / 4 * 4 + i / 2 % 2], t[i / 4 * 4 + i / 2 % 2 + 2]);
                    if i % 2 == 0 { _mm_unpacklo_epi32(p, q) } else { _mm_unpackhi_epi32(p, q) }
                });
                for i in 0..8 {
                    let (p, q) = (u[i / 2], u[i / 2 + 4]);
                    let v = if i % 2 == 0 { _mm_unpacklo_epi64(p, q) } else { _mm_unpackhi_epi64(p, q) };
                    _mm_storeu_si128(b.dst.offset(i as isize * b.dst_stride).cast(), v);
                }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { job.blocks::<8>(rows, cols, block) }
    }

    /// # Safety
    /// As [`super::transpose`]; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn by_8_u32(job: Job<u32>, rows: usize, cols: usize) {
        let block = |b: Job<u32>| {
            // SAFETY: the block's 8 x 8 elements lie in the rectangle.
            unsafe {
                // Rows i and i + 4 share a register half each, so that no lane has to be crossed at the end.
                let half = |i: usize, at: isize| {
                    let row = |i: usize| b.src.offset(i as isize * b.src_stride + at).cast();
                    _mm256_insertf128_ps::<1>(
                        _mm256_castps128_ps256(_mm_loadu_ps(row(i))),
                        _mm_loadu_ps(row(i + 4)),
                    )
                };
                for at in [0isize, 4] {
                    let x: [__m256; 4] = std::array::from_fn(|i| half(i, at));
                    let (a0, a1) = (_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
                    let (b0, b1) = (_mm256_unpacklo_ps(x[2], x[3]), _mm256_unpackhi_ps(x[2], x[3]));
                    let out = [
                        _mm256_shuffle_ps::<0x44>(a0, b0),
                        _mm256_shuffle_ps::<0xEE>(a0, b0),
                        _mm256_shuffle_ps::<0x44>(a1, b1),
                        _mm256_shuffle_ps::<0xEE>(a1, b1),
                    ];
                    for (i, v) in out.into_iter().enumerate() {
                        _mm256_storeu_ps(b.dst.offset((at + i as isize) * b.dst_stride).cast(), v);
                    }
                }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { job.blocks::<8>(rows, cols, block) }
    }

    /// # Safety
    /// As [`super::transpose`]; the processor has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn by_16_u32(job: Job<u32>, rows: usize, cols: usize) {
        let block = |b: Job<u32>| {
            // SAFETY: the block's 16 x 16 elements lie in the rectangle.
            unsafe {
                let x: [__m512i; 16] = std::array::from_fn(|i| {
                    _mm512_loadu_si512(b.src.offset(i as isize * b.src_stride).cast())
                });
                // 2 x 2, then 4 x 4 blocks within each 128-bit lane: u[4 i + j], lane l, holds column 4 l + j of rows
                // 4 i to 4 i + 3.
                let t: [__m512i; 16] = std::array::from_fn(|i| {
                    let (p, q) = (x[i / 2 * 2], x[i / 2 * 2 + 1]);
                    if i % 2 == 0 { _mm512_unpacklo_epi32(p, q) } else { _mm512_unpackhi_epi32(p, q) }
                });
                let u: [__m512i; 16] = std::array::from_fn(|i| {
                    let (p, q) = (t[i / 4 * 4 + i / 2 % 2], t[i / 4 * 4 + i / 2 % 2 + 2]);
                    if i % 2 == 0 { _mm512_unpacklo_epi64(p, q) } else { _mm512_unpackhi_epi64(p, q) }
                });
                // Then the 4 x 4 lanes are transposed.
                for j in 0..4 {
                    let even = |p, q| _mm512_shuffle_i32x4::<0x88>(p, q); // lanes 0 and 2 of each
                    let odd = |p, q| _mm512_shuffle_i32x4::<0xDD>(p, q); // lanes 1 and 3
                    let (e0, o0) = (even(u[j], u[4 + j]), odd(u[j], u[4 + j]));
                    let (e1, o1) = (even(u[8 + j], u[12 + j]), odd(u[8 + j], u[12 + j]));
                    let out = [even(e0, e1), even(o0, o1), odd(e0, e1), odd(o0, o1)];
                    for (l, v) in out.into_iter().enumerate() {
                        let row = (4 * l + j) as isize;
                        _mm512_storeu_si512(b.dst.offset(row * b.dst_stride).cast(), v);
                    }
                }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { job.blocks::<16>(rows, cols, block) }
    }

    /// # Safety
    /// As [`super::transpose`]; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn by_4_u64(job: Job<u64>, rows: usize, cols: usize) {
        let block = |b: Job<u64>| {
            // SAFETY: the block's 4 x 4 elements lie in the rectangle.
            unsafe {
                let x: [__m256d; 4] =
                    std::array::from_fn(|i| _mm256_loadu_pd(b.src.offset(i as isize * b.src_stride).cast()));
                let (a0, a1) = (_mm256_unpacklo_pd(x[0], x[1]), _mm256_unpackhi_pd(x[0], x[1]));
                let (b0, b1) = (_mm256_unpacklo_pd(x[2], x[3]), _mm256_unpackhi_pd(x[2], x[3]));
                let out = [
                    _mm256_permute2f128_pd::<0x20>(a0, b0),
                    _mm256_permute2f128_pd::<0x20>(a1, b1),
                    _mm256_permute2f128_pd::<0x31>(a0, b0),
                    _mm256_permute2f128_pd::<0x31>(a1, b1),
                ];
                for (i, v) in out.into_iter().enumerate() {
                    _mm256_storeu_pd(b.dst.offset(i as isize * b.dst_stride).cast(), v);
                }
            }
        };
        // SAFETY: by the caller's promise.
        unsafe { job.blocks::<4>(rows, cols, block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Isa, with_isa};

    fn check<T: Copy + PartialEq + std::fmt::Debug + Default + 'static>(value: impl Fn(usize) -> T) {
        for (rows, cols) in [(1, 1), (4, 4), (8, 8), (16, 16), (17, 35), (40, 16), (3, 70), (32, 33)] {
            let (dst_stride, src_stride) = (cols + 3, rows + 5);
            let src: Vec<T> = (0..cols * src_stride).map(&value).collect();
            let mut dst = vec![T::default(); rows * dst_stride];
            // SAFETY: both rectangles lie in the vectors.
            unsafe {
                transpose(
                    dst.as_mut_ptr(),
                    dst_stride as isize,
                    src.as_ptr(),
                    src_stride as isize,
                    rows,
                    cols,
                )
            };
            for (i, &got) in dst.iter().enumerate() {
                let (r, c) = (i / dst_stride, i % dst_stride);
                let want = if c < cols { src[c * src_stride + r] } else { T::default() };
                assert_eq!(got, want, "{rows} x {cols}: {r}, {c}");
            }
        }
    }

    #[test]
    fn every_size_on_every_instruction_set() {
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            with_isa(isa, || {
                check(|i| (i % 251) as u8 + 1);
                check(|i| i as u16 + 1);
                check(|i| i as u32 + 1);
                check(|i| i as u64 + 1);
            });
        }
    }
}
