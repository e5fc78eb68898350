//! Element types, their sizes, and PyTorch's promotion lattice.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE binary64.
    F64,
    /// IEEE binary32, the default.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 8-bit integer.
    U8,
    /// One byte; every byte but 0 is true.
    Bool,
}

/// PyTorch's category order for promotion: bool < integral < floating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// `bool`.
    Bool,
    /// Signed and unsigned integers.
    Integral,
    /// `f64`, `f32`, `f16`, `bf16`.
    Floating,
}

impl DType {
    /// Every dtype, floating ones first.
    pub const ALL: [DType; 10] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            DType::F32 | DType::I32 => 4,
            DType::F16 | DType::BF16 | DType::I16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// The category that decides promotion.
    pub const fn category(self) -> Category {
        match self {
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => Category::Floating,
            DType::Bool => Category::Bool,
            _ => Category::Integral,
        }
    }

    /// `f64`, `f32`, `f16` or `bf16`: the dtypes that may require grad.
    pub const fn is_floating(self) -> bool {
        matches!(self.category(), Category::Floating)
    }

    /// Integers, `bool` not counted.
    pub const fn is_integral(self) -> bool {
        matches!(self.category(), Category::Integral)
    }

    /// The short name: `f32`, `i64`, `bool`, ...
    pub const fn name(self) -> &'static str {
        match self {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// The dtype of that short name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// PyTorch's `promote_types`: the smallest dtype both convert to.
    ///
    /// ```
    /// use stridegrad_core::DType::*;
    /// assert_eq!(U8.promote(I8), I16);
    /// assert_eq!(F16.promote(BF16), F32);
    /// assert_eq!(I64.promote(F16), F16);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        match (self.category(), other.category()) {
            (a, b) if a > b => self, // the higher category wins as it is
            (a, b) if a < b => other,
            (Category::Floating, _) => match (self, other) {
                (F64, _) | (_, F64) => F64,
                _ => F32, // f32 with a half, or f16 with bf16
            },
            _ => match (self, other) {
                (U8, I8) | (I8, U8) => I16,
                (a, b) if a.size() >= b.size() => {
                    if a == U8 {
                        b
                    } else {
                        a
                    }
                }
                (_, b) => b,
            },
        }
    }

    /// Whether PyTorch's `can_cast(self, to)` holds: no float to integer, no number to bool.
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }

    /// The floating dtype that arithmetic on this dtype is carried out in on the host:
    /// `f64` for `f64`, `f32` for the other floating ones.
    pub const fn compute_float(self) -> DType {
        match self {
            DType::F64 => DType::F64,
            _ => DType::F32,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that stands for a [`DType`]: plain data of that size.
///
/// `bool` is handled apart, since not every byte is a valid `bool`: reading a bool tensor to the host
/// normalises each byte.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + PartialEq + fmt::Debug + 'static {
    /// The dtype this type stands for.
    const DTYPE: DType;
    /// The value as `f64`.
    fn to_f64(self) -> f64;
    /// `v` rounded to this type; integers saturate, NaN becomes 0, as Rust's `as` does.
    fn from_f64(v: f64) -> Self;
    /// The value as `i64`; floats truncate and saturate.
    fn to_i64(self) -> i64;
    /// `v` converted to this type; integers wrap, as PyTorch's casts do.
    fn from_i64(v: i64) -> Self;
    /// The little-endian bytes at the front of `bytes` as a value.
    fn read_le(bytes: &[u8]) -> Self;
    /// Writes the little-endian bytes at the front of `bytes`.
    fn write_le(self, bytes: &mut [u8]);
}

macro_rules! element_num {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(v: f64) -> Self { v as $t }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { v as $t }
            fn read_le(bytes: &[u8]) -> Self {
                let mut b = [0; size_of::<$t>()];
                b.copy_from_slice(&bytes[..size_of::<$t>()]);
                <$t>::from_le_bytes(b)
            }
            fn write_le(self, bytes: &mut [u8]) {
                bytes[..size_of::<$t>()].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
element_num!(f64 => F64, f32 => F32, i64 => I64, i32 => I32, i16 => I16, i8 => I8, u8 => U8);

macro_rules! element_half {
    ($($t:ty => $d:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f32() as f64 }
            #[inline(always)]
            fn from_f64(v: f64) -> Self { <$t>::from_f64(v) }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.to_f32() as i64 }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { <$t>::from_f64(v as f64) }
            fn read_le(bytes: &[u8]) -> Self { <$t>::from_le_bytes([bytes[0], bytes[1]]) }
            fn write_le(self, bytes: &mut [u8]) { bytes[..2].copy_from_slice(&self.to_le_bytes()); }
        }
    )*};
}
element_half!(half::f16 => F16, half::bf16 => BF16);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
    fn from_f64(v: f64) -> Self {
        v != 0.0 // NaN is true, as in PyTorch
    }
    fn to_i64(self) -> i64 {
        self as i64
    }
    fn from_i64(v: i64) -> Self {
        v != 0
    }
    fn read_le(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    fn write_le(self, bytes: &mut [u8]) {
        bytes[0] = self as u8;
    }
}
