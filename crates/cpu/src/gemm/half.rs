//! Products of half-precision matrices: operands widened to f32, the sum over all of k in f32, one rounding at the end.

use super::{Mat, MatMut, Share, gemm};
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// `f16` and `bf16`.
pub trait HalfElement: Copy + Default + Send + Sync + 'static {
    /// Widens a slice (exact).
    fn widen(src: &[Self], dst: &mut [f32]);
    /// Rounds a slice to nearest even.
    fn narrow(src: &[f32], dst: &mut [Self]);
}

macro_rules! half_element {
    ($t:ty) => {
        impl HalfElement for $t {
            fn widen(src: &[Self], dst: &mut [f32]) {
                src.convert_to_f32_slice(dst);
            }
            fn narrow(src: &[f32], dst: &mut [Self]) {
                dst.convert_from_f32_slice(src);
            }
        }
    };
}
half_element!(f16);
half_element!(bf16);

/// Elements converted at a time.
const RUN: usize = 256;

/// A row-major copy of a strided half matrix in f32.
unsafe fn widen<H: HalfElement>(dst: *mut f32, rows: usize, cols: usize, src: Mat<H>) {
    let (dst, src) = (Ptr::new(dst), Share(src));
    team::par_if((rows * cols) as u64 / 2, rows, &|i| {
        let src = src.get();
        let mut wide = [0f32; RUN];
        let mut run = [H::default(); RUN];
        for j in (0..cols).step_by(RUN) {
            let len = RUN.min(cols - j);
            // SAFETY: elements of the source (the caller's contract) and row i of the copy, this task's alone.
            unsafe {
                for (jj, x) in run[..len].iter_mut().enumerate() {
                    *x = *src.at(i, j + jj);
                }
                H::widen(&run[..len], &mut wide[..len]);
                std::ptr::copy_nonoverlapping(wide.as_ptr(), dst.get().add(i * cols + j), len);
            }
        }
    });
}

/// Rounds a row-major f32 matrix into a strided half matrix.
unsafe fn narrow<H: HalfElement>(dst: MatMut<H>, rows: usize, cols: usize, src: *const f32) {
    let (dst, src) = (Share(dst), Ptr::read(src));
    team::par_if((rows * cols) as u64 / 2, rows, &|i| {
        let dst = dst.get();
        let mut run = [H::default(); RUN];
        for j in (0..cols).step_by(RUN) {
            let len = RUN.min(cols - j);
            // SAFETY: row i of both matrices, this task's alone.
            unsafe {
                H::narrow(std::slice::from_raw_parts(src.get().add(i * cols + j), len), &mut run[..len]);
                for (jj, x) in run[..len].iter().enumerate() {
                    *dst.ptr.offset(i as isize * dst.rs + (j + jj) as isize * dst.cs) = *x;
                }
            }
        }
    });
}

/// `C = A B` or `C += A B` for `f16` and `bf16`: operands are widened to f32, the sum runs in f32 over all of k, and
/// each element is rounded once when it is stored. Otherwise as [`gemm`].
///
/// # Safety
/// As [`gemm`].
pub unsafe fn gemm_half<H: HalfElement>(
    (m, n, k): (usize, usize, usize),
    a: Mat<H>,
    b: Mat<H>,
    c: MatMut<H>,
    accumulate: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    with_scratch::<f32, _>(m * k, |wa| {
        with_scratch::<f32, _>(k * n, |wb| {
            with_scratch::<f32, _>(m * n, |wc| {
                // SAFETY: the caller's contract on A, B and C; the scratch matrices are row-major, of the sizes asked
                // for, and this call's alone.
                unsafe {
                    widen(wa, m, k, a);
                    widen(wb, k, n, b);
                    if accumulate {
                        widen(wc, m, n, Mat::new(c.ptr, c.rs, c.cs));
                    }
                    let (wa, wb) = (Mat::new(wa, k as isize, 1), Mat::new(wb, n as isize, 1));
                    gemm((m, n, k), wa, wb, MatMut::new(wc, n as isize, 1), accumulate);
                    narrow(c, m, n, wc);
                }
            })
        })
    })
}
