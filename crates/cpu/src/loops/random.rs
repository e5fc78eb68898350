//! Random numbers: each element a function of the stream and of its row-major number.

use half::{bf16, f16};
use stridegrad_core::kernel::Distribution;
use stridegrad_core::{DType, Error, ErrorKind, Int, Layout, Philox, Result};

use super::elem::{Compute, Rect};
use super::{CHUNK, Raw, View};
use crate::team;

/// Fills `dst`. `f32`, `f16` and `bf16` draw from the stream of `f32`, everything else from that of `f64`, integers
/// from that of 64-bit numbers.
pub(crate) fn random(dist: Distribution, stream: &Philox, dst: View<'_>) -> Result<()> {
    let narrow = matches!(dst.dtype(), DType::F32 | DType::F16 | DType::BF16);
    match dist {
        Distribution::Uniform { low, high } if narrow => {
            let (low, span, top) = (low as f32, (high - low) as f32, below(dst.dtype(), high) as f32);
            generate::<f32>(dst, 4, &|first, out| {
                stream.uniform_f32(first, out);
                out.iter_mut().for_each(|v| *v = (low + *v * span).min(top).max(low));
            });
        }
        Distribution::Uniform { low, high } => {
            let (span, top) = (high - low, below(dst.dtype(), high));
            generate::<f64>(dst, 6, &|first, out| {
                stream.uniform_f64(first, out);
                out.iter_mut().for_each(|v| *v = (low + *v * span).min(top).max(low));
            });
        }
        Distribution::Normal { mean, std } if narrow => {
            let (mean, std) = (mean as f32, std as f32);
            generate::<f32>(dst, 20, &|first, out| {
                stream.normal_f32(first, out);
                out.iter_mut().for_each(|v| *v = mean + *v * std);
            });
        }
        Distribution::Normal { mean, std } => generate::<f64>(dst, 30, &|first, out| {
            stream.normal_f64(first, out);
            out.iter_mut().for_each(|v| *v = mean + *v * std);
        }),
        Distribution::Integer { low, high } => {
            let n = if high > low { high.wrapping_sub(low) as u64 } else { 0 };
            generate::<Int>(dst, 6, &|first, out| {
                let mut words = [0u64; Int::TILE];
                stream.below(n, first, &mut words[..out.len()]);
                out.iter_mut().zip(words).for_each(|(v, w)| *v = Int(low.wrapping_add(w as i64)));
            });
        }
        Distribution::Bernoulli { p } if narrow => generate::<f32>(dst, 4, &|first, out| {
            stream.uniform_f32(first, out);
            out.iter_mut().for_each(|v| *v = ((*v as f64) < p) as u8 as f32);
        }),
        Distribution::Bernoulli { p } => generate::<f64>(dst, 6, &|first, out| {
            stream.uniform_f64(first, out);
            out.iter_mut().for_each(|v| *v = (*v < p) as u8 as f64);
        }),
        other => {
            let text = format!("the CPU backend cannot draw from {other:?}");
            return Err(Error::new(ErrorKind::Unsupported, "random", text));
        }
    }
    Ok(())
}

/// The largest value of `dtype` below `high`, so that rounding never yields the excluded end.
fn below(dtype: DType, high: f64) -> f64 {
    // The bits of a float, as a sign and a magnitude, one step down.
    fn down(bits: u16) -> u16 {
        match bits {
            0 | 0x8000 => 0x8001,
            b if b & 0x8000 == 0 => b - 1,
            b => b + 1,
        }
    }
    match dtype {
        DType::F32 => {
            let v = high as f32;
            (if v as f64 >= high { v.next_down() } else { v }) as f64
        }
        DType::F16 => {
            let v = f16::from_f64(high);
            (if v.to_f64() >= high { f16::from_bits(down(v.to_bits())) } else { v }).to_f64()
        }
        DType::BF16 => {
            let v = bf16::from_f64(high);
            (if v.to_f64() >= high { bf16::from_bits(down(v.to_bits())) } else { v }).to_f64()
        }
        _ => high.next_down(),
    }
}

/// Makes tiles of consecutive row-major elements (`fill(first, tile)`) and stores them.
fn generate<C: Compute>(dst: View<'_>, ns: u64, fill: &(dyn Fn(u64, &mut [C]) + Sync)) {
    let n = dst.layout.numel();
    let flat = dst.layout.is_contiguous();
    team::par_if(n as u64 * ns, n.div_ceil(CHUNK), &|chunk| {
        let mut tile = [C::lit(0.0); 512];
        let end = n.min((chunk + 1) * CHUNK);
        for first in (chunk * CHUNK..end).step_by(tile.len()) {
            let values = &mut tile[..(end - first).min(512)];
            fill(first as u64, values);
            if flat {
                let rect = Rect::row((dst.layout.offset() + first) as isize, values.len(), 1);
                // SAFETY: these elements lie in the buffer, and this chunk alone writes them.
                unsafe { C::scatter(dst.raw.dtype, dst.raw.ptr(), rect, values.as_ptr()) }
            } else {
                scatter_from(dst.raw, dst.layout, first, values);
            }
        }
    });
}

/// Stores values as the row-major elements from number `first` on.
fn scatter_from<C: Compute>(to: Raw, layout: &Layout, first: usize, values: &[C]) {
    let last = layout.rank() - 1; // a layout of rank 0 is contiguous
    let (len, stride) = (layout.sizes()[last], layout.strides()[last]);
    let mut done = 0;
    while done < values.len() {
        let (mut rest, column) = ((first + done) / len, (first + done) % len);
        let mut at = layout.offset() as isize + column as isize * stride;
        for d in (0..last).rev() {
            at += (rest % layout.sizes()[d]) as isize * layout.strides()[d];
            rest /= layout.sizes()[d];
        }
        let n = (len - column).min(values.len() - done);
        // SAFETY: the row's elements lie in the buffer, and the caller's chunk alone writes them.
        unsafe { C::scatter(to.dtype, to.ptr(), Rect::row(at, n, stride), values.as_ptr().add(done)) }
        done += n;
    }
}
