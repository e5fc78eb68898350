//! Integer products: plain loops, wrapping as integer arithmetic does everywhere in the library.

use super::{Mat, MatMut, Share};
use crate::team;

/// `C = A B` or `C += A B` for `i64`, wrapping on overflow; otherwise as [`super::gemm`].
///
/// # Safety
/// As [`super::gemm`].
pub unsafe fn gemm_i64(
    (m, n, k): (usize, usize, usize),
    a: Mat<i64>,
    b: Mat<i64>,
    c: MatMut<i64>,
    accumulate: bool,
) {
    let (a, b, c) = (Share(a), Share(b), Share(c));
    let cost = (m as u64).saturating_mul(n as u64).saturating_mul(k.max(1) as u64);
    team::par_if(cost, m, &|i| {
        let (a, b, c) = (a.get(), b.get(), c.get());
        let at = |j: usize| c.ptr.wrapping_offset(i as isize * c.rs + j as isize * c.cs);
        // SAFETY: row i of C is this task's; A and B are readable (the caller's contract).
        unsafe {
            if !accumulate {
                (0..n).for_each(|j| *at(j) = 0);
            }
            for kk in 0..k {
                let x = *a.at(i, kk);
                let row = b.at(kk, 0);
                for j in 0..n {
                    let y = *row.offset(j as isize * b.cs);
                    *at(j) = (*at(j)).wrapping_add(x.wrapping_mul(y));
                }
            }
        }
    });
}
