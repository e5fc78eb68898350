//! Two-dimensional convolution over any strides: forward, input gradient, weight gradient.
//!
//! Nothing here asks for a memory format. Each pass takes a pointer and four signed element strides for each operand
//! and picks, by strides and shape, among schemes that are each right for all of them:
//!
//! - `rows`: the forward scheme. Output pixels are the rows of a register tile, output channels its columns; a pixel's
//!   input channels are read through a row pointer. Channels-last input is read where it lies; any other input goes,
//!   a bounded block at a time, through a padded channels-last scratch. Output that is not channels-last is
//!   transposed a tile at a time as it is stored.
//! - `planes`: forward for few channels and row-major planes: output channels are the rows of the tile, pixels its
//!   columns, read at shifted places of a padded scratch.
//! - 1x1 kernels on row-major planes are matrix products ([`crate::gemm`]).
//! - The input gradient is a forward pass over the output gradient with the kernel transposed and flipped (by strides,
//!   not by copying); a stride of 2 gives four such passes, one for each phase of the input grid.
//! - [`weight_grad`](weight_grad()) has its own scheme over the same tiles (`wgrad`, `wgrad_taps`).
//! - `depthwise` kernels have direct loops.
//!
//! Patches are never laid out as a matrix: no im2col. Inputs may alias one another; the output overlaps no input. Every
//! output element is written. Work is cut by shape and type alone and partial sums are added in a fixed order: the same
//! bits for any number of threads.
//!
//! `f16` and `bf16` have no kernels here: convert to f32 and back (the sum must run in f32 anyway).

mod depthwise;
mod int;
mod planes;
mod rows;
#[cfg(test)]
mod tests;
mod wgrad;
mod wgrad_taps;

pub use int::forward_i64;
pub(crate) use planes::copy_plane_row;

use crate::gemm::{Mat, MatMut, gemm_batched};
use crate::pack::pack_panel;
use crate::team::{self, Ptr};
use crate::ukr::{Float, Ukr};

/// The sizes of a convolution. `p` and `q` are the output's height and width, which the caller has computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvGeometry {
    /// Images.
    pub n: usize,
    /// Input channels.
    pub c: usize,
    /// Input height.
    pub h: usize,
    /// Input width.
    pub w: usize,
    /// Output channels.
    pub k: usize,
    /// Kernel height.
    pub r: usize,
    /// Kernel width.
    pub s: usize,
    /// Steps along height and width.
    pub stride: [usize; 2],
    /// Zero rows and columns before the input.
    pub pad_before: [usize; 2],
    /// Zero rows and columns after the input.
    pub pad_after: [usize; 2],
    /// Distance of kernel elements.
    pub dilation: [usize; 2],
    /// Groups; they divide `c` and `k`.
    pub groups: usize,
    /// Output height.
    pub p: usize,
    /// Output width.
    pub q: usize,
}

impl ConvGeometry {
    /// The output size along a dim: `floor((size + before + after - dilation * (kernel - 1) - 1) / stride) + 1`, or `None`
    /// if the kernel is larger than the padded input, or anything is zero that must not be.
    pub fn output_size(
        size: usize,
        kernel: usize,
        stride: usize,
        (before, after): (usize, usize),
        dilation: usize,
    ) -> Option<usize> {
        if kernel == 0 || stride == 0 || dilation == 0 {
            return None;
        }
        let padded = size.checked_add(before)?.checked_add(after)?;
        let reach = (kernel - 1).checked_mul(dilation)?.checked_add(1)?;
        Some(padded.checked_sub(reach)? / stride + 1)
    }

    fn check(&self) {
        let positive = [self.groups, self.stride[0], self.stride[1], self.dilation[0], self.dilation[1]];
        assert!(positive.iter().all(|&x| x > 0), "groups, stride and dilation are positive: {self:?}");
        assert!(
            self.c.is_multiple_of(self.groups) && self.k.is_multiple_of(self.groups),
            "groups divide the channels: {self:?}"
        );
    }
}

/// A four-dimensional operand that is read: element `(i, j, y, x)` at `ptr + sum of index * stride`.
#[derive(Clone, Copy, Debug)]
pub struct View4<T> {
    /// Element (0, 0, 0, 0).
    pub ptr: *const T,
    /// Strides in elements.
    pub strides: [isize; 4],
}

/// A four-dimensional operand that is written; as [`View4`].
#[derive(Clone, Copy, Debug)]
pub struct View4Mut<T> {
    /// Element (0, 0, 0, 0).
    pub ptr: *mut T,
    /// Strides in elements.
    pub strides: [isize; 4],
}

impl<T> View4<T> {
    /// An operand from a pointer and strides in elements.
    pub fn new(ptr: *const T, strides: [isize; 4]) -> Self {
        View4 { ptr, strides }
    }

    #[inline(always)]
    pub(crate) fn at(&self, index: [isize; 4]) -> *const T {
        self.ptr.wrapping_offset(dot(self.strides, index))
    }
}

impl<T> View4Mut<T> {
    /// An operand from a pointer and strides in elements.
    pub fn new(ptr: *mut T, strides: [isize; 4]) -> Self {
        View4Mut { ptr, strides }
    }

    #[inline(always)]
    pub(crate) fn at(&self, index: [isize; 4]) -> *mut T {
        self.ptr.wrapping_offset(dot(self.strides, index))
    }
}

#[inline(always)]
fn dot(a: [isize; 4], b: [isize; 4]) -> isize {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

/// A bias vector: pointer and stride.
pub type Bias<T> = Option<(*const T, isize)>;

/// The one problem that forward and input gradient both are, for one group:
/// `y[n,k,p,q] = bias[k] + sum over c, r, s of x[n, c, p * stride - pad + r * dilation, ...] * w[k,c,r,s]`,
/// with zeros outside `h` x `w`. `pad` may be negative and may leave reads beyond the far edge.
#[derive(Clone, Copy)]
struct Correlation<T> {
    n: usize,
    c: usize,
    h: usize,
    w: usize,
    k: usize,
    r: usize,
    s: usize,
    p: usize,
    q: usize,
    stride: [usize; 2],
    pad: [isize; 2],
    dilation: [usize; 2],
    x: View4<T>,
    weight: View4<T>,
    bias: Bias<T>,
    y: View4Mut<T>,
}

// SAFETY: a description of addresses; their use is the convolution's, under its contract.
unsafe impl<T> Sync for Correlation<T> {}

impl<T> Correlation<T> {
    fn macs(&self) -> usize {
        [self.n, self.k, self.p, self.q, self.c, self.r, self.s].iter().fold(1, |a, &b| a.saturating_mul(b))
    }

    /// Folds a step along a dim with a kernel of 1 and no padding into the input's strides.
    fn fold_steps(mut self) -> Self {
        for d in 0..2 {
            let (kernel, out) = if d == 0 { (self.r, self.p) } else { (self.s, self.q) };
            if kernel == 1 && self.pad[d] <= 0 {
                let size = if d == 0 { &mut self.h } else { &mut self.w };
                let reach = (out as isize - 1) * self.stride[d] as isize - self.pad[d];
                if reach < *size as isize {
                    let step = &mut self.x.strides[2 + d];
                    self.x.ptr = self.x.ptr.wrapping_offset(-self.pad[d] * *step);
                    *step *= self.stride[d] as isize;
                    *size = out;
                    (self.stride[d], self.pad[d], self.dilation[d]) = (1, 0, 1);
                }
            }
        }
        self
    }
}

/// `y = conv2d(x, weight) + bias`. Strides are those of `(n, c, h, w)` for x, `(k, c / groups, r, s)` for the weight and
/// `(n, k, p, q)` for y. y is fully overwritten; with no input channels it is the bias.
///
/// # Safety
/// Every element of x, weight and bias that the sizes and strides name is readable and every element of y writable; distinct
/// indices of y are distinct addresses; y overlaps no input.
///
/// # Panics
/// If groups do not divide the channels, or groups, a step or a dilation is zero.
pub unsafe fn forward<T: Float>(
    g: &ConvGeometry,
    x: View4<T>,
    weight: View4<T>,
    bias: Bias<T>,
    y: View4Mut<T>,
) {
    g.check();
    let (cg, kg) = (g.c / g.groups, g.k / g.groups);
    let whole = Correlation {
        n: g.n,
        c: cg,
        h: g.h,
        w: g.w,
        k: kg,
        r: g.r,
        s: g.s,
        p: g.p,
        q: g.q,
        stride: g.stride,
        pad: g.pad_before.map(|p| p as isize),
        dilation: g.dilation,
        x,
        weight,
        bias,
        y,
    };
    // SAFETY: the caller's contract, group by group.
    unsafe {
        if g.groups > 1 && cg == 1 {
            return depthwise::forward(Correlation { k: g.k, ..whole }, kg);
        }
        for i in 0..g.groups as isize {
            let (cg, kg) = (cg as isize, kg as isize);
            correlate(Correlation {
                x: View4::new(x.at([0, i * cg, 0, 0]), x.strides),
                weight: View4::new(weight.at([i * kg, 0, 0, 0]), weight.strides),
                bias: bias.map(|(p, step)| (p.wrapping_offset(i * kg * step), step)),
                y: View4Mut::new(y.at([0, i * kg, 0, 0]), y.strides),
                ..whole
            });
        }
    }
}

/// The gradient of [`forward`] with respect to x: `dx` is fully overwritten.
///
/// # Safety
/// As [`forward`], with dx in the place of its y.
///
/// # Panics
/// As [`forward`].
pub unsafe fn input_grad<T: Float>(g: &ConvGeometry, dy: View4<T>, weight: View4<T>, dx: View4Mut<T>) {
    g.check();
    let (cg, kg) = (g.c / g.groups, g.k / g.groups);
    let depthwise = g.groups > 1 && cg == 1 && kg == 1;
    let phases = [phases(g, 0), phases(g, 1)];
    for ph in &phases[0] {
        for pw in &phases[1] {
            for i in 0..if depthwise { 1 } else { g.groups as isize } {
                let (cg, kg) = (cg as isize, kg as isize);
                let [_, _, ws2, ws3] = weight.strides;
                let first = [
                    if depthwise { 0 } else { i * kg },
                    0,
                    (ph.first + ph.step * ph.taps.saturating_sub(1)) as isize,
                    (pw.first + pw.step * pw.taps.saturating_sub(1)) as isize,
                ];
                let problem = Correlation {
                    n: g.n,
                    c: kg as usize,
                    h: g.p,
                    w: g.q,
                    k: if depthwise { g.c } else { cg as usize },
                    r: ph.taps,
                    s: pw.taps,
                    p: ph.count,
                    q: pw.count,
                    stride: [1, 1],
                    pad: [ph.pad, pw.pad],
                    dilation: [ph.dilation, pw.dilation],
                    x: View4::new(dy.at([0, i * kg, 0, 0]), dy.strides),
                    // The channels of the kernel change places and its taps run backwards.
                    weight: View4::new(
                        weight.at(first),
                        [
                            if depthwise { weight.strides[0] } else { weight.strides[1] },
                            if depthwise { weight.strides[1] } else { weight.strides[0] },
                            -(ph.step as isize) * ws2,
                            -(pw.step as isize) * ws3,
                        ],
                    ),
                    bias: None,
                    y: View4Mut::new(
                        dx.at([0, i * cg, ph.phase as isize, pw.phase as isize]),
                        [
                            dx.strides[0],
                            dx.strides[1],
                            dx.strides[2] * g.stride[0] as isize,
                            dx.strides[3] * g.stride[1] as isize,
                        ],
                    ),
                };
                // SAFETY: the caller's contract; each phase of each group is its own part of dx.
                unsafe { if depthwise { depthwise::forward(problem, 1) } else { correlate(problem) } }
            }
        }
    }
}

/// The input positions `phase + stride * i` along a dim, and the kernel elements that reach them.
struct Phase {
    phase: usize,
    count: usize,
    /// Kernel elements `first + step * j`, `j < taps`.
    first: usize,
    step: usize,
    taps: usize,
    dilation: usize,
    pad: isize,
}

/// Output position, input position and kernel element are tied by `p * stride = h + pad - r * dilation`. For
/// `h = phase + stride * i` the elements r that leave no remainder step by `stride / gcd`, and p falls by `dilation / gcd`
/// from one to the next: a correlation of step 1 over the output gradient, its kernel backwards.
fn phases(g: &ConvGeometry, d: usize) -> Vec<Phase> {
    let (size, kernel) = if d == 0 { (g.h, g.r) } else { (g.w, g.s) };
    let (stride, dilation, pad) = (g.stride[d], g.dilation[d], g.pad_before[d]);
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = gcd(stride, dilation);
    let (step, fall) = (stride / common, dilation / common);
    let phase = |phase: usize| {
        let reach = |r: usize| (phase + pad) as isize - (r * dilation) as isize;
        let first = (0..step.min(kernel)).find(|&r| reach(r) % stride as isize == 0);
        let taps = first.map_or(0, |first| (kernel - first).div_ceil(step));
        let first = first.unwrap_or(0);
        let pad = (fall * taps.saturating_sub(1)) as isize - reach(first).div_euclid(stride as isize);
        Phase { phase, count: (size - phase).div_ceil(stride), first, step, taps, dilation: fall, pad }
    };
    (0..stride.min(size)).map(phase).collect()
}

/// The gradient of [`forward`] with respect to the weight: `dw` is fully overwritten.
///
/// # Safety
/// As [`forward`], with dw in the place of its y.
///
/// # Panics
/// As [`forward`].
pub unsafe fn weight_grad<T: Float>(g: &ConvGeometry, x: View4<T>, dy: View4<T>, dw: View4Mut<T>) {
    g.check();
    let (cg, kg) = (g.c / g.groups, g.k / g.groups);
    // SAFETY: the caller's contract, group by group.
    unsafe {
        if g.groups > 1 && cg == 1 {
            return depthwise::weight_grad(g, x, dy, dw);
        }
        for i in 0..g.groups as isize {
            let x = View4::new(x.at([0, i * cg as isize, 0, 0]), x.strides);
            let dy = View4::new(dy.at([0, i * kg as isize, 0, 0]), dy.strides);
            let dw = View4Mut::new(dw.at([i * kg as isize, 0, 0, 0]), dw.strides);
            wgrad::run(&ConvGeometry { c: cg, k: kg, groups: 1, ..*g }, x, dy, dw);
        }
    }
}

/// Picks a scheme for one group.
unsafe fn correlate<T: Float>(problem: Correlation<T>) {
    let g = problem.fold_steps();
    // SAFETY: the caller's contract, passed on.
    unsafe {
        if g.n * g.k * g.p * g.q == 0 {
            return;
        }
        if g.c * g.r * g.s == 0 {
            return fill(&g);
        }
        if pointwise(&g) {
            return;
        }
        let u = T::ukr();
        if planes::suits(&g, u) { planes::run(&g, u) } else { rows::run(&g, u) }
    }
}

/// Sets y to the bias, or to zero.
unsafe fn fill<T: Float>(g: &Correlation<T>) {
    let cost = (g.n * g.k * g.p * g.q) as u64 / 2;
    team::par_if(cost, g.n * g.k, &|t| {
        let (n, k) = ((t / g.k) as isize, (t % g.k) as isize);
        // SAFETY: the bias is readable; plane (n, k) of y is this task's.
        unsafe {
            let value = g.bias.map_or(T::default(), |(p, step)| *p.offset(k * step));
            for p in 0..g.p as isize {
                for q in 0..g.q as isize {
                    *g.y.at([n, k, p, q]) = value;
                }
            }
        }
    });
}

/// A 1x1 kernel whose pixels have one stride in x and in y is a matrix product, image by image. Returns whether it did
/// it; channels-last operands are better left to [`rows`].
unsafe fn pointwise<T: Float>(g: &Correlation<T>) -> bool {
    let plain = g.r == 1 && g.s == 1 && g.stride == [1, 1] && g.pad == [0, 0] && (g.h, g.w) == (g.p, g.q);
    let one_stride = |s: [isize; 4]| g.p == 1 || s[2] == g.q as isize * s[3];
    let (xs, ys) = (g.x.strides, g.y.strides);
    let by_rows = xs[1] == 1 && ys[1] == 1;
    if !plain || by_rows || !one_stride(xs) || !one_stride(ys) || g.p * g.q < 16 {
        return false;
    }
    // SAFETY: the caller's contract; the same elements under other indices.
    unsafe {
        if g.bias.is_some() {
            fill(g);
        }
        gemm_batched(
            &[g.n],
            [&[0], &[xs[0]], &[ys[0]]],
            (g.k, g.p * g.q, g.c),
            Mat::new(g.weight.ptr, g.weight.strides[0], g.weight.strides[1]),
            Mat::new(g.x.ptr, xs[1], xs[3]),
            MatMut::new(g.y.ptr, ys[1], ys[3]),
            g.bias.is_some(),
        );
    }
    true
}

/// Packs the weight as `[k / nr][r][s][c][nr]`, zeros beyond k.
///
/// # Safety
/// The weight is readable; `dst` has room for `k.div_ceil(nr) * r * s * c * nr` elements.
unsafe fn pack_weight<T: Float>(g: &Correlation<T>, u: &Ukr<T>, dst: *mut T) {
    let (nr, taps, [ws0, ws1, ws2, ws3]) = (u.nr, g.r * g.s, g.weight.strides);
    let panels = g.k.div_ceil(nr);
    // Taps of one (k, c) lie side by side, forwards or backwards: transpose k against taps.
    let run = |step: isize| (g.s == 1 || ws3 == step) && (g.r == 1 || ws2 == g.s as isize * step) && taps > 1;
    let (forwards, backwards) = (run(1), run(-1));
    let by_taps = ws0 != 1 && ws1 != 1 && (forwards || backwards);
    let blocks = g.c.div_ceil(64);
    let dst = Ptr::new(dst);
    team::par_if((panels * nr * taps * g.c) as u64, panels * blocks, &|t| {
        let (kp, block) = (t / blocks, t % blocks);
        let (c0, c1) = (g.c * block / blocks, g.c * (block + 1) / blocks);
        let h = nr.min(g.k - kp * nr);
        let panel = dst.get().wrapping_add(kp * taps * g.c * nr);
        let at = |c: usize, r: usize, s: usize| {
            g.weight.at([(kp * nr) as isize, c as isize, r as isize, s as isize])
        };
        // SAFETY: this task's channels of panel kp; the weight's elements as the caller's contract has them.
        unsafe {
            if by_taps {
                let row = (g.c * nr) as isize;
                for c in c0..c1 {
                    let to = panel.add(c * nr);
                    if h < nr {
                        for t in 0..taps {
                            std::slice::from_raw_parts_mut(to.offset(t as isize * row), nr)
                                .fill(T::default());
                        }
                    }
                    if forwards {
                        (u.transpose)(to, row, at(c, 0, 0), ws0, h, taps);
                    } else {
                        let last = to.offset((taps as isize - 1) * row);
                        (u.transpose)(last, -row, at(c, g.r - 1, g.s - 1), ws0, h, taps);
                    }
                }
                return;
            }
            for r in 0..g.r {
                for s in 0..g.s {
                    let to = panel.add(((r * g.s + s) * g.c + c0) * nr);
                    pack_panel(u, to, nr, at(c0, r, s), (ws0, ws1), h, c1 - c0);
                }
            }
        }
    });
}

/// Copies `count` pixels of one input row (row `h` of image `n`, padded coordinates `first..first + count`, zeros outside) as
/// `[pixel][width]`, channels `c0..c0 + channels`, zeros beyond them.
///
/// # Safety
/// x is readable where it exists; `dst` has room for `count * width` elements.
#[allow(clippy::too_many_arguments)]
unsafe fn copy_input_row<T: Float>(
    u: &Ukr<T>,
    x: &View4<T>,
    (size_h, size_w): (usize, usize),
    (n, h): (usize, isize),
    (first, count): (isize, usize),
    (c0, channels, width): (usize, usize, usize),
    dst: *mut T,
) {
    // SAFETY: the caller's contract; pixels outside the image are not read.
    unsafe {
        let lo = (-first).clamp(0, count as isize) as usize;
        let hi = (size_w as isize - first).clamp(lo as isize, count as isize) as usize;
        if h < 0 || h >= size_h as isize || lo == hi {
            return std::slice::from_raw_parts_mut(dst, count * width).fill(T::default());
        }
        std::slice::from_raw_parts_mut(dst, lo * width).fill(T::default());
        std::slice::from_raw_parts_mut(dst.add(hi * width), (count - hi) * width).fill(T::default());
        let [_, xs1, _, xs3] = x.strides;
        let src = x.at([n as isize, c0 as isize, h, first + lo as isize]);
        let to = dst.add(lo * width);
        let side_by_side = (xs3 == width as isize && (xs1 == 1 || width == 1)) || (width == 1 && xs3 == 1);
        if channels == width && side_by_side {
            std::ptr::copy_nonoverlapping(src, to, (hi - lo) * width);
        } else {
            pack_panel(u, to, width, src, (xs1, xs3), channels, hi - lo);
        }
    }
}
