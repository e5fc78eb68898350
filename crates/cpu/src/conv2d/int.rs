//! Integer convolution: plain loops, wrapping.

use super::{ConvGeometry, View4, View4Mut};
use crate::team;

/// [`super::forward`] for `i64`, wrapping on overflow, without bias.
///
/// # Safety
/// As [`super::forward`].
///
/// # Panics
/// As [`super::forward`].
pub unsafe fn forward_i64(g: &ConvGeometry, x: View4<i64>, weight: View4<i64>, y: View4Mut<i64>) {
    g.check();
    struct Operands(View4<i64>, View4<i64>, View4Mut<i64>);
    // SAFETY: a description of addresses, used under this function's contract.
    unsafe impl Sync for Operands {}
    let operands = &Operands(x, weight, y);
    let (cg, kg) = (g.c / g.groups, g.k / g.groups);
    let cost = [g.n, g.k, g.p, g.q, cg, g.r, g.s].iter().fold(1u64, |a, &b| a.saturating_mul(b as u64));
    team::par_if(cost, g.n * g.k, &|t| {
        let Operands(x, weight, y) = operands;
        let (n, k) = (t / g.k, t % g.k);
        for p in 0..g.p {
            for q in 0..g.q {
                let mut sum = 0i64;
                for r in 0..g.r {
                    let h = (p * g.stride[0] + r * g.dilation[0]).wrapping_sub(g.pad_before[0]);
                    for s in 0..g.s {
                        let w = (q * g.stride[1] + s * g.dilation[1]).wrapping_sub(g.pad_before[1]);
                        if h >= g.h || w >= g.w {
                            continue;
                        }
                        for c in 0..cg {
                            let from = [n, k / kg * cg + c, h, w].map(|i| i as isize);
                            // SAFETY: elements inside x and the weight (the caller's contract).
                            let (a, b) =
                                unsafe { (*x.at(from), *weight.at([k, c, r, s].map(|i| i as isize))) };
                            sum = sum.wrapping_add(a.wrapping_mul(b));
                        }
                    }
                }
                // SAFETY: an element of y, in plane (n, k), which is this task's.
                unsafe { *y.at([n, k, p, q].map(|i| i as isize)) = sum }
            }
        }
    });
}
