//! The inner loop of maximum pooling: for many neighbouring lanes at once, the best of several taps and its name.
//!
//! A later tap replaces the best so far if it is greater or NaN.

/// An element of a pooling window as all lanes have it: where lane 0's lies, and what names it.
#[derive(Clone, Copy, Debug)]
pub struct Tap {
    /// From the loop's x to lane 0's element.
    pub offset: isize,
    /// What stands for it in the result.
    pub name: u32,
}

/// `best[i]` is the best of `x[i + t.offset]` over the taps and `names[i]` its name, for `i < n`: the lowest value and the first
/// tap's name if none was greater.
pub type BestFn<T> = unsafe fn(taps: &[Tap], x: *const T, n: usize, best: *mut T, names: *mut i64);

/// [`BestFn`] in plain code.
///
/// # Safety
/// Every lane of every tap is readable; n elements of best and names are writable and overlap nothing that is read.
#[allow(clippy::eq_op)] // v != v asks for NaN, for integers too
pub unsafe fn plain<T: Copy + PartialOrd>(
    lowest: T,
    taps: &[Tap],
    x: *const T,
    n: usize,
    best: *mut T,
    names: *mut i64,
) {
    for i in 0..n {
        let (mut value, mut name) = (lowest, taps.first().map_or(0, |t| t.name));
        for tap in taps {
            // SAFETY: a lane of a tap (the caller's contract).
            let v = unsafe { *x.offset(i as isize + tap.offset) };
            if v > value || v != v {
                (value, name) = (v, tap.name);
            }
        }
        // SAFETY: i < n.
        unsafe { (*best.add(i), *names.add(i)) = (value, i64::from(name)) }
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{avx2_f32, avx2_f64, avx512_f32, avx512_f64};

#[cfg(target_arch = "x86_64")]
mod x86 {
    // SAFETY (for every block of this module): the caller runs on a processor with the function's instruction set and keeps
    // the contract of [`super::plain`]; masked lanes are not touched.
    #![allow(clippy::undocumented_unsafe_blocks)]
    use super::Tap;
    use std::arch::x86_64::*;

    /// The last lanes, fewer than a vector, in plain code.
    macro_rules! tail {
        ($taps:ident, $x:ident, $i:ident, $n:ident, $best:ident, $names:ident, $lowest:expr) => {
            unsafe { super::plain($lowest, $taps, $x.add($i), $n - $i, $best.add($i), $names.add($i)) }
        };
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
    pub unsafe fn avx512_f32(taps: &[Tap], x: *const f32, n: usize, best: *mut f32, names: *mut i64) {
        let first = taps.first().map_or(0, |t| t.name);
        let mut i = 0;
        while i < n {
            let mask = if n - i >= 16 { 0xffff } else { ((1u32 << (n - i)) - 1) as u16 };
            let mut value = _mm512_set1_ps(f32::NEG_INFINITY);
            let mut name = _mm512_set1_epi32(first as i32);
            for tap in taps {
                let v = unsafe { _mm512_maskz_loadu_ps(mask, x.offset(i as isize + tap.offset)) };
                // Greater, or v is NaN: not (v <= value), unless value is NaN and v is not.
                let take =
                    _mm512_cmp_ps_mask::<_CMP_GT_OQ>(v, value) | _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
                value = _mm512_mask_mov_ps(value, take, v);
                name = _mm512_mask_set1_epi32(name, take, tap.name as i32);
            }
            let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(name));
            let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(name));
            unsafe {
                _mm512_mask_storeu_ps(best.add(i), mask, value);
                _mm512_mask_storeu_epi64(names.add(i), mask as u8, low);
                _mm512_mask_storeu_epi64(names.wrapping_add(i + 8), (mask >> 8) as u8, high);
            }
            i += 16;
        }
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
    pub unsafe fn avx512_f64(taps: &[Tap], x: *const f64, n: usize, best: *mut f64, names: *mut i64) {
        let first = taps.first().map_or(0, |t| t.name);
        let mut i = 0;
        while i < n {
            let mask = if n - i >= 8 { 0xff } else { ((1u32 << (n - i)) - 1) as u8 };
            let mut value = _mm512_set1_pd(f64::NEG_INFINITY);
            let mut name = _mm512_set1_epi64(i64::from(first));
            for tap in taps {
                let v = unsafe { _mm512_maskz_loadu_pd(mask, x.offset(i as isize + tap.offset)) };
                let take =
                    _mm512_cmp_pd_mask::<_CMP_GT_OQ>(v, value) | _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(v, v);
                value = _mm512_mask_mov_pd(value, take, v);
                name = _mm512_mask_set1_epi64(name, take, i64::from(tap.name));
            }
            unsafe {
                _mm512_mask_storeu_pd(best.add(i), mask, value);
                _mm512_mask_storeu_epi64(names.add(i), mask, name);
            }
            i += 8;
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2_f32(taps: &[Tap], x: *const f32, n: usize, best: *mut f32, names: *mut i64) {
        let first = taps.first().map_or(0, |t| t.name);
        let mut i = 0;
        while i + 8 <= n {
            let mut value = _mm256_set1_ps(f32::NEG_INFINITY);
            let mut name = _mm256_castsi256_ps(_mm256_set1_epi32(first as i32));
            for tap in taps {
                let v = unsafe { _mm256_loadu_ps(x.offset(i as isize + tap.offset)) };
                let greater = _mm256_cmp_ps::<_CMP_GT_OQ>(v, value);
                let take = _mm256_or_ps(greater, _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
                value = _mm256_blendv_ps(value, v, take);
                name = _mm256_blendv_ps(name, _mm256_castsi256_ps(_mm256_set1_epi32(tap.name as i32)), take);
            }
            let name = _mm256_castps_si256(name);
            unsafe {
                _mm256_storeu_ps(best.add(i), value);
                let low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(name));
                let high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(name));
                _mm256_storeu_si256(names.add(i).cast(), low);
                _mm256_storeu_si256(names.add(i + 4).cast(), high);
            }
            i += 8;
        }
        tail!(taps, x, i, n, best, names, f32::NEG_INFINITY);
    }

    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn avx2_f64(taps: &[Tap], x: *const f64, n: usize, best: *mut f64, names: *mut i64) {
        let first = taps.first().map_or(0, |t| t.name);
        let mut i = 0;
        while i + 4 <= n {
            let mut value = _mm256_set1_pd(f64::NEG_INFINITY);
            let mut name = _mm256_castsi256_pd(_mm256_set1_epi64x(i64::from(first)));
            for tap in taps {
                let v = unsafe { _mm256_loadu_pd(x.offset(i as isize + tap.offset)) };
                let greater = _mm256_cmp_pd::<_CMP_GT_OQ>(v, value);
                let take = _mm256_or_pd(greater, _mm256_cmp_pd::<_CMP_UNORD_Q>(v, v));
                value = _mm256_blendv_pd(value, v, take);
                let this = _mm256_castsi256_pd(_mm256_set1_epi64x(i64::from(tap.name)));
                name = _mm256_blendv_pd(name, this, take);
            }
            unsafe {
                _mm256_storeu_pd(best.add(i), value);
                _mm256_storeu_si256(names.add(i).cast(), _mm256_castpd_si256(name));
            }
            i += 4;
        }
        tail!(taps, x, i, n, best, names, f64::NEG_INFINITY);
    }
}
