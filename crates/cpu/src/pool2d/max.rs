//! Maximum pooling: values and where they were found.
//!
//! A window's elements are visited row by row; an element replaces the best so far if it is greater or NaN. So ties keep
//! the first, NaN wins, and of several NaN the last one's index is kept.

use super::{BLOCK, Operands, PoolGeometry, View4, View4Mut, channels_side_by_side, zero_planes};
use crate::conv2d::copy_plane_row;
#[cfg(target_arch = "x86_64")]
use crate::isa::{Isa, isa};
use crate::scratch::with_scratch;
use crate::team;
use crate::ukr::best::{self, BestFn, Tap};

/// Bytes of a band's scratch.
const SCRATCH_BYTES: usize = 128 << 10;

/// What maximum pooling takes.
pub trait PoolElement: Copy + PartialOrd + Send + Sync + 'static {
    /// What padding counts as.
    const LOWEST: Self;
    /// The inner loop for the current instruction set.
    #[doc(hidden)]
    fn best() -> BestFn<Self> {
        |taps, x, n, best, names| {
            // SAFETY: the caller keeps the loop's contract.
            unsafe { best::plain(Self::LOWEST, taps, x, n, best, names) }
        }
    }
}

macro_rules! float_element {
    ($t:ty, $avx2:ident, $avx512:ident) => {
        impl PoolElement for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            fn best() -> BestFn<$t> {
                #[cfg(target_arch = "x86_64")]
                match isa() {
                    Isa::Avx512 => return best::$avx512,
                    Isa::Avx2 => return best::$avx2,
                    Isa::Portable => {}
                }
                |taps, x, n, best, names| {
                    // SAFETY: the caller keeps the loop's contract.
                    unsafe { best::plain(Self::LOWEST, taps, x, n, best, names) }
                }
            }
        }
    };
}
float_element!(f32, avx2_f32, avx512_f32);
float_element!(f64, avx2_f64, avx512_f64);
impl PoolElement for i64 {
    const LOWEST: i64 = i64::MIN;
}

/// `y` is the largest element of each window, `indices` its index `h * width + w` in the plane. Padding counts as the lowest
/// value and is never the answer; a window that holds nothing (a dilated one may) gives the lowest value and index 0.
///
/// # Safety
/// x is readable, y and indices are writable, at every index; distinct indices of an output are distinct addresses; the
/// outputs overlap neither x nor one another.
///
/// # Panics
/// If a plane has 2^32 elements or more, or a step, dilation or window size is zero.
pub unsafe fn max_pool2d<T: PoolElement>(
    g: &PoolGeometry,
    x: View4<T>,
    y: View4Mut<T>,
    indices: View4Mut<i64>,
) {
    assert!(g.h.saturating_mul(g.w) <= u32::MAX as usize, "a plane of 2^32 elements or more: {g:?}");
    let positive = [g.kernel, g.stride, g.dilation].as_flattened().iter().all(|&v| v > 0);
    assert!(positive, "window, step and dilation are positive: {g:?}");
    if g.n * g.c * g.p * g.q == 0 {
        return;
    }
    let by_channels = channels_side_by_side(g.c, &[x.strides, y.strides, indices.strides]);
    let operands = &Operands(x, y, indices);
    let (bands, best) = (Bands::new(g, size_of::<T>()), T::best());
    // A task is some output rows of an image, or a band of a plane.
    let units = if by_channels { g.n * g.p } else { g.n * g.c * bands.count };
    let work = g.n * g.c * g.p * g.q * g.kernel[0] * g.kernel[1];
    let per = (16_384 / (work / units).max(1)).clamp(1, units);
    team::par_if(work as u64 / 4, units.div_ceil(per), &|t| {
        let units = t * per..units.min((t + 1) * per);
        if by_channels {
            let mut taps = Vec::with_capacity(g.kernel[0] * g.kernel[1]);
            for unit in units {
                // SAFETY: the caller's contract; each output row is one task's.
                unsafe { channels_row(g, operands, best, unit / g.p, unit % g.p, &mut taps) }
            }
            return;
        }
        with_scratch::<T, _>(bands.len() + bands.lanes(), |input| {
            with_scratch::<i64, _>(bands.lanes(), |names| {
                for unit in units {
                    let (plane, band) = (unit / bands.count, unit % bands.count);
                    let place = (plane / g.c, plane % g.c, band);
                    // SAFETY: the caller's contract; each band is one task's; the scratches have these sizes.
                    unsafe { plane_band(g, operands, best, &bands, place, input, names) }
                }
            })
        });
    });
}

type MaxOperands<T> = Operands<View4<T>, View4Mut<T>, View4Mut<i64>>;

/// Elements of a window along dim `d` that lie in the input: the position of output `o`'s element `i`, if inside.
fn inside(g: &PoolGeometry, d: usize, o: usize, i: usize) -> Option<usize> {
    let at = (o * g.stride[d] + i * g.dilation[d]).checked_sub(g.pad[d])?;
    (at < if d == 0 { g.h } else { g.w }).then_some(at)
}

/// Output row p of image n, vectors of channels.
unsafe fn channels_row<T: PoolElement>(
    g: &PoolGeometry,
    operands: &MaxOperands<T>,
    best: BestFn<T>,
    n: usize,
    p: usize,
    taps: &mut Vec<Tap>,
) {
    let Operands(x, y, indices) = operands;
    for q in 0..g.q {
        taps.clear();
        for r in 0..g.kernel[0] {
            let Some(h) = inside(g, 0, p, r) else { continue };
            for s in 0..g.kernel[1] {
                let Some(w) = inside(g, 1, q, s) else { continue };
                let offset = h as isize * x.strides[2] + w as isize * x.strides[3];
                taps.push(Tap { offset, name: (h * g.w + w) as u32 });
            }
        }
        let from = x.at([n as isize, 0, 0, 0]);
        let to = [n as isize, 0, p as isize, q as isize];
        // SAFETY: the caller's contract; a pixel's channels lie side by side.
        unsafe { best(taps, from, g.c, y.at(to), indices.at(to)) }
    }
}

/// A plane is handled in bands of output rows. A band's input is copied to a scratch, padding and all, its rows and columns
/// sorted by their remainders modulo the steps. There, the elements that one tap meets from output to output are
/// neighbours, from the end of a row to the next too: lanes run over the whole band (and over a few columns that are
/// dropped).
struct Bands {
    /// Bands of a plane, and output rows of a band.
    count: usize,
    rows: usize,
    /// Columns that are read; columns and rows with one remainder; elements with one pair of remainders.
    width: usize,
    pitch: usize,
    phase_rows: usize,
    phase_len: usize,
    phases: usize,
    /// Each tap's place in the scratch; its name is the index in the plane relative to the window's corner.
    taps: Vec<Tap>,
}

impl Bands {
    fn new(g: &PoolGeometry, element: usize) -> Bands {
        let [step_h, step_w] = g.stride;
        let width = (g.q - 1) * step_w + (g.kernel[1] - 1) * g.dilation[1] + 1;
        let pitch = width.div_ceil(step_w);
        let halo = (g.kernel[0] - 1) * g.dilation[0] + 1;
        let fits = (SCRATCH_BYTES / (width * element)).saturating_sub(halo) / step_h;
        let count = g.p.div_ceil(fits.clamp(1, g.p));
        let rows = g.p.div_ceil(count);
        let phase_rows = ((rows - 1) * step_h + halo).div_ceil(step_h);
        let phase_len = phase_rows * pitch;
        let tap = |t: usize| {
            let (r, s) = (t / g.kernel[1] * g.dilation[0], t % g.kernel[1] * g.dilation[1]);
            let phase = r % step_h * step_w + s % step_w;
            let offset = (phase * phase_len + r / step_h * pitch + s / step_w) as isize;
            Tap { offset, name: (r * g.w + s) as u32 }
        };
        let taps = (0..g.kernel[0] * g.kernel[1]).map(tap).collect();
        let (count, phases) = (g.p.div_ceil(rows), step_h * step_w);
        Bands { count, rows, width, pitch, phase_rows, phase_len, phases, taps }
    }

    /// Elements of the scratch.
    fn len(&self) -> usize {
        self.phases * self.phase_len
    }

    /// Lanes of a band.
    fn lanes(&self) -> usize {
        self.rows * self.pitch
    }
}

/// Band `band` of plane (n, c). `input` has `bands.len() + bands.lanes()` elements, `names` the latter number of them.
unsafe fn plane_band<T: PoolElement>(
    g: &PoolGeometry,
    operands: &MaxOperands<T>,
    find: BestFn<T>,
    bands: &Bands,
    (n, c, band): (usize, usize, usize),
    input: *mut T,
    names: *mut i64,
) {
    let Operands(x, y, indices) = operands;
    let (p0, p1) = (band * bands.rows, g.p.min((band + 1) * bands.rows));
    let pad = g.pad.map(|p| p as isize);
    // SAFETY: the scratch is this task's and holds the band; tap by tap, all lanes lie inside it; the outputs of the band are this task's.
    unsafe {
        for i in 0..bands.phase_rows * g.stride[0] {
            let h = (p0 * g.stride[0] + i) as isize - pad[0];
            let at = i % g.stride[0] * g.stride[1] * bands.phase_len + i / g.stride[0] * bands.pitch;
            let columns = (g.stride[1], bands.phase_len);
            copy_plane_row(x, (g.h, g.w), (n, c, h), pad[1], columns, bands.width, T::LOWEST, input.add(at));
        }
        let best = input.add(bands.len());
        find(&bands.taps, input, (p1 - p0 - 1) * bands.pitch + g.q, best, names);
        for p in p0..p1 {
            let (best, names) = (best.add((p - p0) * bands.pitch), names.add((p - p0) * bands.pitch));
            let to = [n as isize, c as isize, p as isize, 0];
            let (y, at) = (y.at(to), indices.at(to));
            let (y_step, at_step) = (operands.1.strides[3], operands.2.strides[3]);
            let corner = ((p * g.stride[0]) as isize - pad[0]) * g.w as isize - pad[1];
            let mut lowest = false;
            for q in 0..g.q {
                let value = *best.add(q);
                lowest |= value == T::LOWEST;
                *y.offset(q as isize * y_step) = value;
                let index = (corner + (q * g.stride[1]) as isize) as i64 + *names.add(q);
                *at.offset(q as isize * at_step) = index;
            }
            if lowest {
                // Nothing was greater than the padding: the first element of the window it is.
                for q in (0..g.q).filter(|&q| *best.add(q) == T::LOWEST) {
                    *at.offset(q as isize * at_step) = first_inside(g, p, q) as i64;
                }
            }
        }
    }
}

/// The index of the first element of window (p, q) that lies in the input; 0 if none does.
fn first_inside(g: &PoolGeometry, p: usize, q: usize) -> usize {
    let first = |d: usize, o: usize| (0..g.kernel[d]).find_map(|i| inside(g, d, o, i));
    match (first(0, p), first(1, q)) {
        (Some(h), Some(w)) => h * g.w + w,
        _ => 0,
    }
}

/// The gradient of [`max_pool2d`]: `dx` is zero but for the sums of the gradients whose windows' indices name the element. Only
/// `n, c, h, w, p, q` of the geometry are used.
///
/// # Safety
/// dy and indices are readable and dx is writable at every index; distinct indices of dx are distinct addresses; dx overlaps no
/// input; every index read lies in `0..h * w`.
pub unsafe fn max_pool2d_backward<T>(g: &PoolGeometry, dy: View4<T>, indices: View4<i64>, dx: View4Mut<T>)
where
    T: Copy + Default + std::ops::AddAssign + Send + Sync + 'static,
{
    let by_channels = channels_side_by_side(g.c, &[dy.strides, dx.strides]);
    let block = if by_channels { BLOCK } else { 1 };
    let blocks = g.c.div_ceil(block);
    let operands = &Operands(dy, indices, dx);
    let work = g.n * g.c * (g.h * g.w + 2 * g.p * g.q);
    team::par_if(work as u64 / 2, g.n * blocks, &|t| {
        let Operands(dy, indices, dx) = operands;
        let (n, c0) = ((t / blocks) as isize, t % blocks * block);
        let channels = g.c.min(c0 + block) - c0;
        let [_, ds1, _, ds3] = dy.strides;
        let [_, is1, _, is3] = indices.strides;
        let [_, s1, s2, s3] = dx.strides;
        let one_stride = g.h == 1 || s2 == g.w as isize * s3;
        let base = dx.at([n, c0 as isize, 0, 0]);
        // SAFETY: the caller's contract; these channels of image n of dx are this task's.
        unsafe {
            zero_planes(base, dx.strides, channels, (g.h, g.w));
            for p in 0..g.p as isize {
                let (mut from, mut at) = (dy.at([n, c0 as isize, p, 0]), indices.at([n, c0 as isize, p, 0]));
                for _ in 0..g.q {
                    for c in 0..channels as isize {
                        let i = *at.offset(c * is1);
                        debug_assert!((i as u64) < (g.h * g.w) as u64);
                        let offset = if one_stride {
                            i as isize * s3
                        } else {
                            let (h, w) = (i as usize / g.w, i as usize % g.w);
                            h as isize * s2 + w as isize * s3
                        };
                        *base.offset(c * s1 + offset) += *from.offset(c * ds1);
                    }
                    (from, at) = (from.wrapping_offset(ds3), at.wrapping_offset(is3));
                }
            }
        }
    });
}
