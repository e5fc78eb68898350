//! Average pooling, plain and adaptive: sums over rectangles, divided by a count.

use super::{BLOCK, Operands, PoolGeometry, View4, View4Mut, channels_side_by_side, zero_planes};
use crate::isa::multiversion;
use crate::team;
use crate::ukr::Float;

/// What a sum is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Average {
    /// The window's size, padding included (but not what reaches beyond the padding).
    IncludePad,
    /// The number of input elements in the window.
    ExcludePad,
    /// This number.
    Divisor(f64),
}

/// One output position's elements along a dim, and its factor of the divisor.
#[derive(Clone, Copy)]
struct Window {
    start: usize,
    end: usize,
    count: usize,
}

/// The windows of both dims.
struct Windows {
    rows: Vec<Window>,
    columns: Vec<Window>,
    divisor: Option<f64>,
}

impl Windows {
    fn plain(g: &PoolGeometry, average: Average) -> Windows {
        let dim = |d: usize, size: usize, out: usize| {
            let window = |o: usize| {
                let (from, pad) = (o * g.stride[d], g.pad[d]);
                // In padded coordinates; what reaches beyond the padding does not count.
                let to = (from + g.kernel[d]).min(size + 2 * pad);
                let start = from.saturating_sub(pad).min(size);
                let end = to.saturating_sub(pad).clamp(start, size);
                let include = average == Average::IncludePad;
                Window { start, end, count: if include { to.saturating_sub(from) } else { end - start } }
            };
            (0..out).map(window).collect()
        };
        let divisor = if let Average::Divisor(d) = average { Some(d) } else { None };
        Windows { rows: dim(0, g.h, g.p), columns: dim(1, g.w, g.q), divisor }
    }

    fn adaptive(g: &PoolGeometry) -> Windows {
        let dim = |size: usize, out: usize| {
            let window = |o: usize| {
                let (start, end) = (o * size / out, ((o + 1) * size).div_ceil(out));
                Window { start, end, count: end - start }
            };
            (0..out).map(window).collect()
        };
        Windows { rows: dim(g.h, g.p), columns: dim(g.w, g.q), divisor: None }
    }

    /// The divisor of a window; `None` if the window holds nothing.
    fn divisor<T: Float>(&self, row: &Window, column: &Window) -> Option<T> {
        if row.start == row.end || column.start == column.end {
            return None;
        }
        Some(T::from_f64(self.divisor.unwrap_or((row.count * column.count) as f64)))
    }
}

/// `y` is the mean of each window (see [`Average`]); a window that holds nothing gives zero. `g.dilation` is not used.
///
/// # Safety
/// x is readable and y writable at every index; distinct indices of y are distinct addresses; y does not overlap x.
pub unsafe fn avg_pool2d<T: Float>(g: &PoolGeometry, average: Average, x: View4<T>, y: View4Mut<T>) {
    // SAFETY: the caller's contract.
    unsafe { forward(g, &Windows::plain(g, average), x, y) }
}

/// The gradient of [`avg_pool2d`]; `dx` is fully overwritten.
///
/// # Safety
/// As [`avg_pool2d`], with dy for x and dx for y.
pub unsafe fn avg_pool2d_backward<T: Float>(
    g: &PoolGeometry,
    average: Average,
    dy: View4<T>,
    dx: View4Mut<T>,
) {
    // SAFETY: the caller's contract.
    unsafe { backward(g, &Windows::plain(g, average), dy, dx) }
}

/// Averages over `p` x `q` rectangles that cover the input: output `i` of `p` takes rows `floor(i h / p)` to
/// `ceil((i + 1) h / p)`, columns alike. Only `n, c, h, w, p, q` of the geometry are used.
///
/// # Safety
/// As [`avg_pool2d`].
pub unsafe fn adaptive_avg_pool2d<T: Float>(g: &PoolGeometry, x: View4<T>, y: View4Mut<T>) {
    // SAFETY: the caller's contract.
    unsafe { forward(g, &Windows::adaptive(g), x, y) }
}

/// The gradient of [`adaptive_avg_pool2d`]; `dx` is fully overwritten.
///
/// # Safety
/// As [`avg_pool2d`], with dy for x and dx for y.
pub unsafe fn adaptive_avg_pool2d_backward<T: Float>(g: &PoolGeometry, dy: View4<T>, dx: View4Mut<T>) {
    // SAFETY: the caller's contract.
    unsafe { backward(g, &Windows::adaptive(g), dy, dx) }
}

/// `acc[i] += x[i * step]`.
#[inline(always)]
unsafe fn add_from<T: Float>(acc: &mut [T], x: *const T, step: isize) {
    if step == 1 {
        for (i, a) in acc.iter_mut().enumerate() {
            // SAFETY: as many elements of x as of acc (the caller's contract).
            *a += unsafe { *x.add(i) };
        }
    } else {
        for (i, a) in acc.iter_mut().enumerate() {
            // SAFETY: as above.
            *a += unsafe { *x.offset(i as isize * step) };
        }
    }
}

/// `y[i * step] += x[i]`.
#[inline(always)]
unsafe fn add_to<T: Float>(y: *mut T, step: isize, x: &[T]) {
    if step == 1 {
        for (i, &x) in x.iter().enumerate() {
            // SAFETY: as many elements of y as of x (the caller's contract).
            unsafe { *y.add(i) += x }
        }
    } else {
        for (i, &x) in x.iter().enumerate() {
            // SAFETY: as above.
            unsafe { *y.offset(i as isize * step) += x }
        }
    }
}

unsafe fn forward<T: Float>(g: &PoolGeometry, windows: &Windows, x: View4<T>, y: View4Mut<T>) {
    if g.n * g.c * g.p * g.q == 0 {
        return;
    }
    let by_channels = channels_side_by_side(g.c, &[x.strides, y.strides]);
    let operands = &Operands(x, y, windows);
    let rows = if by_channels { g.n * g.p } else { g.n * g.c * g.p };
    let area: usize = windows.columns.iter().map(|w| w.end - w.start).sum::<usize>().max(g.q);
    let height = windows.rows.iter().map(|w| w.end - w.start).max().unwrap_or(1).max(1);
    let row_work = area * height * if by_channels { g.c } else { 1 };
    let per = (16_384 / row_work.max(1)).clamp(1, rows);
    team::par_if((row_work * rows) as u64 / 4, rows.div_ceil(per), &|t| {
        // SAFETY: the caller's contract; each output row is one task's.
        unsafe { output_rows(g, operands, by_channels, t * per..rows.min((t + 1) * per)) }
    });
}

type Forward<'a, T> = Operands<View4<T>, View4Mut<T>, &'a Windows>;

/// Output rows `rows`: of images, or of planes.
#[inline(always)]
unsafe fn output_rows_body<T: Float>(
    g: &PoolGeometry,
    operands: &Forward<T>,
    by_channels: bool,
    rows: std::ops::Range<usize>,
) {
    let mut sums = vec![T::default(); g.w];
    for row in rows {
        // SAFETY: the caller's contract.
        unsafe {
            if by_channels {
                channels_row(g, operands, row / g.p, row % g.p);
            } else {
                plane_row(operands, row / (g.c * g.p), row / g.p % g.c, row % g.p, &mut sums);
            }
        }
    }
}
multiversion! {
    fn output_rows<T: Float>(
        g: &PoolGeometry, operands: &Forward<T>, by_channels: bool, rows: std::ops::Range<usize>,
    ) = output_rows_body
}

/// Output row p of image n, vectors of channels.
#[inline(always)]
unsafe fn channels_row<T: Float>(g: &PoolGeometry, operands: &Forward<T>, n: usize, p: usize) {
    let Operands(x, y, windows) = operands;
    let row = &windows.rows[p];
    for (q, column) in windows.columns.iter().enumerate() {
        let divisor = windows.divisor::<T>(row, column);
        for c in (0..g.c).step_by(BLOCK) {
            let mut block = [T::default(); BLOCK];
            let acc = &mut block[..BLOCK.min(g.c - c)];
            // SAFETY: the caller's contract; channels c.. of a pixel lie side by side.
            unsafe {
                if let Some(divisor) = divisor {
                    for h in row.start..row.end {
                        for w in column.start..column.end {
                            add_from(acc, x.at([n, c, h, w].map(|i| i as isize)), 1);
                        }
                    }
                    acc.iter_mut().for_each(|a| *a = *a / divisor);
                }
                let to = y.at([n, c, p, q].map(|i| i as isize));
                std::ptr::copy_nonoverlapping(acc.as_ptr(), to, acc.len());
            }
        }
    }
}

/// Output row p of plane (n, c): the window's rows are summed as a whole, then its columns.
#[inline(always)]
unsafe fn plane_row<T: Float>(operands: &Forward<T>, n: usize, c: usize, p: usize, sums: &mut [T]) {
    let Operands(x, y, windows) = operands;
    let row = &windows.rows[p];
    sums.fill(T::default());
    for h in row.start..row.end {
        // SAFETY: a row of x (the caller's contract).
        unsafe { add_from(sums, x.at([n, c, h, 0].map(|i| i as isize)), x.strides[3]) }
    }
    for (q, column) in windows.columns.iter().enumerate() {
        let mean = windows
            .divisor::<T>(row, column)
            .map(|divisor| sums[column.start..column.end].iter().fold(T::default(), |a, &b| a + b) / divisor);
        // SAFETY: an element of y that is this task's.
        unsafe { *y.at([n, c, p, q].map(|i| i as isize)) = mean.unwrap_or_default() }
    }
}

unsafe fn backward<T: Float>(g: &PoolGeometry, windows: &Windows, dy: View4<T>, dx: View4Mut<T>) {
    let by_channels = channels_side_by_side(g.c, &[dy.strides, dx.strides]);
    let block = if by_channels { BLOCK } else { 1 };
    let blocks = g.c.div_ceil(block);
    let operands = &Operands(dy, dx, windows);
    let work = g.n * g.c * (2 * g.h * g.w + g.p * g.q);
    team::par_if(work as u64 / 4, g.n * blocks, &|t| {
        let (n, c0) = (t / blocks, t % blocks * block);
        // SAFETY: the caller's contract; these channels of image n of dx are this task's.
        unsafe { backward_block(g, operands, by_channels, n, c0..g.c.min(c0 + block)) }
    });
}

#[inline(always)]
unsafe fn backward_block_body<T: Float>(
    g: &PoolGeometry,
    operands: &Forward<T>,
    by_channels: bool,
    n: usize,
    channels: std::ops::Range<usize>,
) {
    let Operands(_, dx, _) = operands;
    // SAFETY: the caller's contract.
    unsafe {
        let base = dx.at([n as isize, channels.start as isize, 0, 0]);
        zero_planes(base, dx.strides, channels.len(), (g.h, g.w));
        if by_channels {
            channels_backward(operands, n, channels);
        } else {
            plane_backward(g, operands, n, channels.start);
        }
    }
}
multiversion! {
    fn backward_block<T: Float>(
        g: &PoolGeometry, operands: &Forward<T>, by_channels: bool, n: usize, channels: std::ops::Range<usize>,
    ) = backward_block_body
}

#[inline(always)]
unsafe fn channels_backward<T: Float>(operands: &Forward<T>, n: usize, channels: std::ops::Range<usize>) {
    let Operands(dy, dx, windows) = operands;
    let (c, len) = (channels.start, channels.len());
    // SAFETY: the caller's contract; channels of a pixel lie side by side.
    unsafe {
        let mut share = [T::default(); BLOCK];
        for (p, row) in windows.rows.iter().enumerate() {
            for (q, column) in windows.columns.iter().enumerate() {
                let Some(divisor) = windows.divisor::<T>(row, column) else { continue };
                let from = dy.at([n, c, p, q].map(|i| i as isize));
                for (i, s) in share[..len].iter_mut().enumerate() {
                    *s = *from.add(i) / divisor;
                }
                for h in row.start..row.end {
                    for w in column.start..column.end {
                        add_to(dx.at([n, c, h, w].map(|i| i as isize)), 1, &share[..len]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn plane_backward<T: Float>(g: &PoolGeometry, operands: &Forward<T>, n: usize, c: usize) {
    let Operands(dy, dx, windows) = operands;
    let mut line = vec![T::default(); g.w];
    // SAFETY: the caller's contract; plane (n, c) of dx is this task's.
    unsafe {
        for (p, row) in windows.rows.iter().enumerate() {
            line.fill(T::default());
            for (q, column) in windows.columns.iter().enumerate() {
                let Some(divisor) = windows.divisor::<T>(row, column) else { continue };
                let share = *dy.at([n, c, p, q].map(|i| i as isize)) / divisor;
                line[column.start..column.end].iter_mut().for_each(|x| *x += share);
            }
            for h in row.start..row.end {
                add_to(dx.at([n, c, h, 0].map(|i| i as isize)), dx.strides[3], &line);
            }
        }
    }
}
