//! Packing: copying a strided block into the order in which a micro-kernel reads it.

use crate::ukr::{Float, Ukr};

/// `dst[kk * w + i] = src[i * rs + kk * cs]` for `i < h`, `kk < k`; zero for `h <= i < w`. Any strides.
///
/// # Safety
/// `src` is readable at every index named, `dst` has `k * w` writable elements and does not overlap it; `h <= w`.
pub(crate) unsafe fn pack_panel<T: Float>(
    u: &Ukr<T>,
    dst: *mut T,
    w: usize,
    src: *const T,
    (rs, cs): (isize, isize),
    h: usize,
    k: usize,
) {
    // SAFETY: the caller's contract; each branch touches the elements of the definition above.
    unsafe {
        if rs == 1 {
            return (u.copy_rows)(dst, w as isize, src, cs, k, h, w);
        }
        if cs == 1 {
            (u.transpose)(dst, w as isize, src, rs, h, k);
        } else {
            for kk in 0..k {
                let (from, to) = (src.offset(kk as isize * cs), dst.add(kk * w));
                for i in 0..h {
                    *to.add(i) = *from.offset(i as isize * rs);
                }
            }
        }
        if h < w {
            for kk in 0..k {
                for i in h..w {
                    *dst.add(kk * w + i) = T::default();
                }
            }
        }
    }
}

/// Writes a contiguous tile (`ld` elements a row) to strided memory: `dst[i * rs + j * cs] [+]= tile[i * ld + j]`.
///
/// # Safety
/// `tile` is readable and `dst` writable at every index named, and they do not overlap.
pub(crate) unsafe fn scatter_tile<T: Float>(
    u: &Ukr<T>,
    tile: *const T,
    ld: usize,
    dst: *mut T,
    (rs, cs): (isize, isize),
    (h, n): (usize, usize),
    accumulate: bool,
) {
    // SAFETY: the caller's contract.
    unsafe {
        if rs == 1 && !accumulate {
            return (u.transpose)(dst, cs, tile, ld as isize, h, n);
        }
        for i in 0..h {
            for j in 0..n {
                let p = dst.offset(i as isize * rs + j as isize * cs);
                let x = *tile.add(i * ld + j);
                *p = if accumulate { *p + x } else { x };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stride_pattern_packs_alike() {
        let u = f32::ukr();
        let data: Vec<f32> = (0..4000).map(|i| i as f32).collect();
        for (rs, cs) in [(1, 40), (40, 1), (3, 50), (-1, 40), (40, -1), (0, 1), (1, 0), (0, 0), (-40, -3)] {
            for (h, w, k) in [(1, 1, 1), (5, 5, 9), (14, 14, 33), (3, 32, 20), (32, 32, 7), (31, 32, 17)] {
                let base = 2000 - (rs * h as isize + cs * k as isize) / 2;
                let mut dst = vec![-1f32; w * k];
                // SAFETY: the indices stay within `data`.
                unsafe {
                    let src = data.as_ptr().offset(base);
                    pack_panel(u, dst.as_mut_ptr(), w, src, (rs, cs), h, k);
                }
                for kk in 0..k {
                    for i in 0..w {
                        let at = base + i as isize * rs + kk as isize * cs;
                        let want = if i < h { data[at as usize] } else { 0.0 };
                        assert_eq!(dst[kk * w + i], want, "strides {rs},{cs} at {i},{kk}");
                    }
                }
            }
        }
    }
}
