//! Rust numbers as operands: PyTorch's "wrapped numbers".

use crate::{Category, DType};

/// A Rust number used as an operand: its category counts for promotion, its width does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A `bool`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// The category for promotion.
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) => Category::Integral,
            Scalar::Float(_) => Category::Floating,
        }
    }

    /// The dtype a tensor of this scalar has when nothing else decides: `bool`, `i64` or `f32`.
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
        }
    }

    /// The value as `f64`.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
        }
    }

    /// The value as `i64`; floats truncate and saturate.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
        }
    }

    /// Whether the value is not zero (NaN is true).
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
        }
    }
}

macro_rules! from {
    ($($t:ty => $v:ident as $c:ty),*) => {$(
        impl From<$t> for Scalar { fn from(v: $t) -> Scalar { Scalar::$v(v as $c) } }
    )*};
}
from!(f64 => Float as f64, f32 => Float as f64, i64 => Int as i64, i32 => Int as i64, i16 => Int as i64,
      i8 => Int as i64, u8 => Int as i64, usize => Int as i64, u32 => Int as i64, isize => Int as i64, bool => Bool as bool);
