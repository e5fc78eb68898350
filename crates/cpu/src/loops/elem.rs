//! Element types in memory and the three types that loops compute in, with the conversions between them.
//!
//! Every dtype is loaded as `f32`, `f64` or [`Int`] and stored from it: gathering converts a strided row into a
//! contiguous tile, scattering converts a tile back. Floats to integers saturate and NaN becomes 0; integers wrap;
//! anything but 0 is true.

use half::{bf16, f16};
use stridegrad_core::kernel::{FoldFn, MapFn, MapKernel, PerIsa, ReduceKernel, RowsFn};
use stridegrad_core::{DType, Expr, Int, Scalar};

use super::transpose::transpose;
use crate::isa::{Isa, isa, multiversion};

/// A `bool` in memory: any byte, true unless 0.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bool(pub(crate) u8);

/// A type as it lies in memory, with its conversions to and from the compute type `C`.
pub(crate) trait Elem<C>: Copy + Send + Sync + 'static {
    fn load(self) -> C;
    fn store(v: C) -> Self;
}

macro_rules! elem {
    ($t:ty, $c:ty, |$x:ident| $load:expr, |$v:ident| $store:expr) => {
        impl Elem<$c> for $t {
            #[inline(always)]
            fn load(self) -> $c {
                let $x = self;
                $load
            }
            #[inline(always)]
            fn store($v: $c) -> $t {
                $store
            }
        }
    };
}

macro_rules! plain_elem {
    ($($t:ty),*) => {$(
        elem!($t, f32, |x| x as f32, |v| v as $t);
        elem!($t, f64, |x| x as f64, |v| v as $t);
        elem!($t, Int, |x| Int(x as i64), |v| v.0 as $t);
    )*};
}
plain_elem!(f32, f64, i64);

// Floats to narrower integers saturate, as `as` does, but in a way that vectorises.
macro_rules! narrow_elem {
    ($($t:ty),*) => {$(
        elem!($t, f32, |x| x as f32, |v| saturating_f32(v, <$t>::MIN as f32, <$t>::MAX as f32) as $t);
        elem!($t, f64, |x| x as f64, |v| saturating_f64(v, <$t>::MIN as f64, <$t>::MAX as f64) as $t);
        elem!($t, Int, |x| Int(x as i64), |v| v.0 as $t);
    )*};
}
narrow_elem!(i16, i8, u8);
elem!(i32, f32, |x| x as f32, |v| f32_to_i32(v));
elem!(i32, f64, |x| x as f64, |v| saturating_f64(v, i32::MIN as f64, i32::MAX as f64));
elem!(i32, Int, |x| Int(x as i64), |v| v.0 as i32);

/// Truncates to an integer in `low..=high`, both of which are `f32` and `i32` values; NaN becomes 0.
#[inline(always)]
fn saturating_f32(v: f32, low: f32, high: f32) -> i32 {
    let v = if v < low { low } else { v };
    let v = if v > high { high } else { v };
    let v = if v.is_nan() { 0.0 } else { v };
    // SAFETY: `v` is a number within the range of `i32`.
    unsafe { v.to_int_unchecked() }
}

/// As [`saturating_f32`].
#[inline(always)]
fn saturating_f64(v: f64, low: f64, high: f64) -> i32 {
    let v = if v < low { low } else { v };
    let v = if v > high { high } else { v };
    let v = if v.is_nan() { 0.0 } else { v };
    // SAFETY: `v` is a number within the range of `i32`.
    unsafe { v.to_int_unchecked() }
}

#[inline(always)]
fn f32_to_i32(v: f32) -> i32 {
    // The largest `i32` is no `f32`: the largest `f32` below it stands in.
    let i = saturating_f32(v, i32::MIN as f32, 2_147_483_520.0);
    if v >= 2_147_483_648.0 { i32::MAX } else { i }
}

// As PyTorch, halves convert by way of f32.
macro_rules! half_elem {
    ($t:ty, $to:ident, $from:ident) => {
        elem!($t, f32, |x| $to(x), |v| $from(v));
        elem!($t, f64, |x| $to(x) as f64, |v| $from(v as f32));
        elem!($t, Int, |x| Int($to(x) as i64), |v| $from(v.0 as f32));
    };
}
half_elem!(f16, f16_to_f32, f32_to_f16);
half_elem!(bf16, bf16_to_f32, f32_to_bf16);

elem!(Bool, f32, |x| (x.0 != 0) as u8 as f32, |v| Bool((v != 0.0) as u8));
elem!(Bool, f64, |x| (x.0 != 0) as u8 as f64, |v| Bool((v != 0.0) as u8));
elem!(Bool, Int, |x| Int((x.0 != 0) as i64), |v| Bool((v.0 != 0) as u8));

#[inline(always)]
fn bf16_to_f32(x: bf16) -> f32 {
    f32::from_bits((x.to_bits() as u32) << 16)
}

/// To nearest, ties to even; branch-free, so that it vectorises.
#[inline(always)]
fn f32_to_bf16(v: f32) -> bf16 {
    let bits = v.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    let quiet_nan = bits >> 16 | 0x40;
    bf16::from_bits(if v.is_nan() { quiet_nan } else { rounded } as u16)
}

/// Exact; branch-free, so that it vectorises.
#[inline(always)]
fn f16_to_f32(x: f16) -> f32 {
    let bits = x.to_bits() as u32;
    // Exponent and mantissa moved into place mean 2^-112 times the value, subnormals included.
    let magnitude = (bits & 0x7FFF) << 13;
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let special = magnitude | 0x7F80_0000; // infinity or NaN
    let value = if magnitude >= 0x7C00 << 13 { special } else { scaled.to_bits() };
    f32::from_bits(value | (bits & 0x8000) << 16)
}

/// To nearest, ties to even; branch-free, so that it vectorises.
#[inline(always)]
fn f32_to_f16(v: f32) -> f16 {
    let sign = v.to_bits() >> 16 & 0x8000;
    let bits = v.to_bits() & 0x7FFF_FFFF;
    // Normal results: move the exponent's bias, round by adding just less than half a unit, and the lowest bit kept.
    let normal = bits.wrapping_sub((127 - 15) << 23).wrapping_add(0xFFF + (bits >> 13 & 1)) >> 13;
    // Subnormal results: adding 0.5 puts the smallest subnormal (2^-24) into the lowest mantissa bit, rounded by the
    // hardware.
    let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let small = bits < (127 - 14) << 23;
    let finite = if small { subnormal } else { normal };
    let large = bits >= (127 + 16) << 23;
    let special = if bits > 0x7F80_0000 { 0x7E00 } else { 0x7C00 };
    f16::from_bits((if large { special } else { finite } | sign) as u16)
}

/// Bytes of a tile.
pub(crate) const TILE_BYTES: usize = 4096;

/// A piece of L1 that operands are converted into.
#[repr(C, align(64))]
pub(crate) struct Tile([std::mem::MaybeUninit<u8>; TILE_BYTES]);

impl Tile {
    #[inline(always)]
    pub(crate) const fn new() -> Tile {
        Tile([const { std::mem::MaybeUninit::uninit() }; TILE_BYTES])
    }

    #[inline(always)]
    pub(crate) fn ptr<C>(&mut self) -> *mut C {
        self.0.as_mut_ptr().cast()
    }
}

/// A rectangle of one operand: `rows` times `len` elements, with its strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rect {
    /// The index of the first element.
    pub(crate) at: isize,
    pub(crate) rows: usize,
    pub(crate) row_stride: isize,
    pub(crate) len: usize,
    pub(crate) stride: isize,
}

impl Rect {
    #[inline(always)]
    pub(crate) fn row(at: isize, len: usize, stride: isize) -> Rect {
        Rect { at, rows: 1, row_stride: 0, len, stride }
    }

    /// Whether the memory is denser across the rows than along them.
    #[inline(always)]
    pub(crate) fn is_transposed(&self) -> bool {
        self.rows > 1 && self.row_stride != 0 && self.row_stride.unsigned_abs() < self.stride.unsigned_abs()
    }
}

/// `f32`, `f64` or [`Int`]: what loops compute in.
pub(crate) trait Compute: Expr<Mask = bool> + Send + Sync + 'static {
    /// The dtype whose memory holds these very values.
    const DTYPE: DType;
    /// Elements of a tile.
    const TILE: usize = TILE_BYTES / size_of::<Self>();

    fn scalar(v: Scalar) -> Self;
    fn map_fn(k: &MapKernel) -> MapFn<Self>;
    fn rows_fn(k: &ReduceKernel) -> RowsFn<Self>;
    fn fold_fn(k: &ReduceKernel) -> FoldFn<Self>;
    fn identity(k: &ReduceKernel) -> Self;

    /// Loads a rectangle of `dtype` from `base` into contiguous memory, row after row.
    ///
    /// # Safety
    /// The rectangle lies inside the readable, initialised memory behind `base`; `out` takes its elements and does
    /// not overlap it.
    unsafe fn gather(dtype: DType, base: *const u8, rect: Rect, out: *mut Self);

    /// Stores contiguous values into a rectangle of `dtype` at `base`.
    ///
    /// # Safety
    /// As for `gather`, the other way round; nobody else accesses the rectangle.
    unsafe fn scatter(dtype: DType, base: *mut u8, rect: Rect, values: *const Self);
}

#[inline(always)]
fn pick<F: Copy>(per: &PerIsa<F>) -> F {
    match isa() {
        Isa::Portable => per.portable,
        Isa::Avx2 => per.avx2,
        Isa::Avx512 => per.avx512,
    }
}

#[inline(always)]
unsafe fn gather_body<C: Compute, T: Elem<C>>(base: *const T, rect: Rect, out: *mut C) {
    let Rect { at, rows, row_stride, len, stride } = rect;
    if rect.is_transposed() {
        // Along the denser side, so that each cache line is read at once.
        for i in 0..len {
            // SAFETY: by the callers' contract every element of the rectangle and of `out` is there.
            unsafe {
                let p = base.offset(at + i as isize * stride);
                let out = out.add(i);
                if row_stride == 1 {
                    (0..rows).for_each(|r| *out.add(r * len) = (*p.add(r)).load());
                } else {
                    (0..rows).for_each(|r| *out.add(r * len) = (*p.offset(r as isize * row_stride)).load());
                }
            }
        }
        return;
    }
    for r in 0..rows {
        // SAFETY: by the callers' contract every element of the rectangle and of `out` is there.
        unsafe {
            let p = base.offset(at + r as isize * row_stride);
            let out = out.add(r * len);
            match stride {
                0 => {
                    let v = (*p).load();
                    for i in 0..len {
                        *out.add(i) = v;
                    }
                }
                1 => {
                    for i in 0..len {
                        *out.add(i) = (*p.add(i)).load();
                    }
                }
                _ => {
                    for i in 0..len {
                        *out.add(i) = (*p.offset(i as isize * stride)).load();
                    }
                }
            }
        }
    }
}
multiversion!(fn gather_as<C: Compute, T: Elem<C>>(base: *const T, rect: Rect, out: *mut C) = gather_body::<C, T>);

#[inline(always)]
unsafe fn scatter_body<C: Compute, T: Elem<C>>(base: *mut T, rect: Rect, values: *const C) {
    let Rect { at, rows, row_stride, len, stride } = rect;
    for r in 0..rows {
        // SAFETY: as in `gather_body`.
        unsafe {
            let p = base.offset(at + r as isize * row_stride);
            let values = values.add(r * len);
            if stride == 1 {
                for i in 0..len {
                    *p.add(i) = T::store(*values.add(i));
                }
            } else {
                for i in 0..len {
                    *p.offset(i as isize * stride) = T::store(*values.add(i));
                }
            }
        }
    }
}
multiversion!(fn scatter_as<C: Compute, T: Elem<C>>(base: *mut T, rect: Rect, values: *const C) = scatter_body::<C, T>);

/// Evaluates an expression with `$T` as the type that stands for a dtype in memory.
macro_rules! with_elem {
    ($dtype:expr, $T:ident => $e:expr) => {{
        use stridegrad_core::DType;
        match $dtype {
            DType::F64 => {
                type $T = f64;
                $e
            }
            DType::F32 => {
                type $T = f32;
                $e
            }
            DType::F16 => {
                type $T = half::f16;
                $e
            }
            DType::BF16 => {
                type $T = half::bf16;
                $e
            }
            DType::I64 => {
                type $T = i64;
                $e
            }
            DType::I32 => {
                type $T = i32;
                $e
            }
            DType::I16 => {
                type $T = i16;
                $e
            }
            DType::I8 => {
                type $T = i8;
                $e
            }
            DType::U8 => {
                type $T = u8;
                $e
            }
            // `Bool`, the last dtype there is.
            _ => {
                type $T = $crate::loops::elem::Bool;
                $e
            }
        }
    }};
}
pub(crate) use with_elem;

macro_rules! compute {
    ($c:ty, $dtype:ident, $scalar:expr, $kernel:ident => $map:expr, $rows:expr, $fold:expr, $identity:expr) => {
        impl Compute for $c {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn scalar(v: Scalar) -> $c {
                $scalar(v)
            }
            #[inline(always)]
            fn map_fn($kernel: &MapKernel) -> MapFn<$c> {
                $map
            }
            #[inline(always)]
            fn rows_fn($kernel: &ReduceKernel) -> RowsFn<$c> {
                $rows
            }
            #[inline(always)]
            fn fold_fn($kernel: &ReduceKernel) -> FoldFn<$c> {
                $fold
            }
            #[inline(always)]
            fn identity($kernel: &ReduceKernel) -> $c {
                $identity
            }
            unsafe fn gather(dtype: DType, base: *const u8, rect: Rect, out: *mut $c) {
                if dtype == Self::DTYPE && rect.is_transposed() && rect.row_stride == 1 {
                    let p = base.cast::<$c>();
                    // SAFETY: passed on to the caller.
                    return unsafe {
                        transpose(out, rect.len as isize, p.offset(rect.at), rect.stride, rect.rows, rect.len)
                    };
                }
                // SAFETY: passed on to the caller.
                with_elem!(dtype, T => unsafe { gather_as::<$c, T>(base.cast(), rect, out) })
            }
            unsafe fn scatter(dtype: DType, base: *mut u8, rect: Rect, values: *const $c) {
                // SAFETY: passed on to the caller.
                with_elem!(dtype, T => unsafe { scatter_as::<$c, T>(base.cast(), rect, values) })
            }
        }
    };
}
compute!(f32, F32, |v: Scalar| v.to_f64() as f32, k => pick(&k.f32), pick(&k.rows_f32), pick(&k.fold_f32), k.identity as f32);
compute!(f64, F64, |v: Scalar| v.to_f64(), k => pick(&k.f64), pick(&k.rows_f64), pick(&k.fold_f64), k.identity);
compute!(Int, I64, |v: Scalar| Int(v.to_i64()), k => k.int, k.rows_int, k.fold_int, Int(k.identity_int));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_convert_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert!(f16_to_f32(h) == h.to_f32() || h.is_nan() && f16_to_f32(h).is_nan(), "{bits:x}");
            assert!(bf16_to_f32(b) == b.to_f32() || b.is_nan() && bf16_to_f32(b).is_nan(), "{bits:x}");
        }
        // Every exponent with mantissas around each rounding boundary of both formats.
        for high in 0..=0x1FFFFu32 {
            for low in [0, 1, 0x3FFF, 0x4000, 0x4001, 0x7FFF, 0xFFF, 0x1000, 0x1001] {
                let v = f32::from_bits(high << 15 | low & 0x7FFF);
                let (h, b) = (f32_to_f16(v), f32_to_bf16(v));
                if v.is_nan() {
                    assert!(h.is_nan() && b.is_nan());
                } else {
                    assert_eq!(h.to_bits(), f16::from_f32(v).to_bits(), "{v:e}");
                    assert_eq!(b.to_bits(), bf16::from_f32(v).to_bits(), "{v:e}");
                }
            }
        }
    }

    #[test]
    fn conversions_saturate_wrap_and_test_for_zero() {
        assert_eq!(<i32 as Elem<f32>>::store(3e9), i32::MAX);
        assert_eq!(<u8 as Elem<f64>>::store(-1.5), 0);
        assert_eq!(<i64 as Elem<f32>>::store(f32::NAN), 0);
        assert_eq!(<u8 as Elem<Int>>::store(Int(257)), 1);
        assert_eq!(<i8 as Elem<Int>>::store(Int(200)), -56);
        assert_eq!(<Bool as Elem<f32>>::store(f32::NAN).0, 1);
        assert_eq!(<Bool as Elem<f32>>::store(-0.0).0, 0);
        assert_eq!(<Bool as Elem<Int>>::load(Bool(7)), Int(1));
    }
}
