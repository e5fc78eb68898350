//! Two-dimensional pooling over any strides: maximum with indices, average, adaptive average, and their gradients.
//!
//! As in [`crate::conv2d`], operands are pointers with four signed element strides. Each pass has two loop orders that
//! are right for all strides: over vectors of channels where those lie side by side, else over rows of a plane. Outputs
//! overlap no input and are fully overwritten. Gradients that meet in one element are added in order of the output
//! pixels, whatever the number of threads.

mod avg;
mod max;
#[cfg(test)]
mod tests;

pub use avg::{Average, adaptive_avg_pool2d, adaptive_avg_pool2d_backward, avg_pool2d, avg_pool2d_backward};
pub use max::{PoolElement, max_pool2d, max_pool2d_backward};

pub use crate::conv2d::{View4, View4Mut};

/// The sizes of a pooling. `p` and `q` are the output's height and width, which the caller has computed (ceil mode shows
/// only there).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolGeometry {
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Input height.
    pub h: usize,
    /// Input width.
    pub w: usize,
    /// The window's height and width.
    pub kernel: [usize; 2],
    /// Steps along height and width.
    pub stride: [usize; 2],
    /// Padding before (and, for average pooling, after) the input.
    pub pad: [usize; 2],
    /// Distance of window elements (1 for average pooling).
    pub dilation: [usize; 2],
    /// Output height.
    pub p: usize,
    /// Output width.
    pub q: usize,
}

/// Channels handled together.
const BLOCK: usize = 64;

/// A pair of descriptions that parallel tasks read.
struct Operands<A, B, C>(A, B, C);
// SAFETY: descriptions of addresses; their use is the pass's, under its contract.
unsafe impl<A, B, C> Sync for Operands<A, B, C> {}

/// Zeroes `channels` planes from `base` on.
///
/// # Safety
/// The elements are writable.
unsafe fn zero_planes<T: Copy + Default>(
    base: *mut T,
    [_, s1, s2, s3]: [isize; 4],
    channels: usize,
    (h, w): (usize, usize),
) {
    // The dims from the innermost out; neighbours that continue one another are one run.
    let mut dims =
        if s1 == 1 { [(channels, s1), (w, s3), (h, s2)] } else { [(w, s3), (h, s2), (channels, s1)] };
    if dims[1].1 == dims[0].0 as isize * dims[0].1 {
        dims[0].0 *= dims[1].0;
        dims[1] = (1, 0);
    }
    let [(n0, t0), (n1, t1), (n2, t2)] = dims;
    for k in 0..n2 as isize {
        for j in 0..n1 as isize {
            // SAFETY: elements of the planes (the caller's contract).
            unsafe {
                let run = base.offset(k * t2 + j * t1);
                if t0 == 1 {
                    std::slice::from_raw_parts_mut(run, n0).fill(T::default());
                } else {
                    (0..n0 as isize).for_each(|i| *run.offset(i * t0) = T::default());
                }
            }
        }
    }
}

/// Whether vectors of channels are the better loop.
fn channels_side_by_side(c: usize, strides: &[[isize; 4]]) -> bool {
    c >= 4 && strides.iter().all(|s| s[1] == 1)
}
