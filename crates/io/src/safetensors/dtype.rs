//! The format's dtype names.

use std::fmt;

use stridegrad_core::DType;

macro_rules! file_dtypes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $bits:literal;)*) => {
        /// A dtype a safetensors file may hold, by the format's own name: more than tensors have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types)]
        #[non_exhaustive]
        pub enum FileDType {
            $($(#[$doc])* $variant,)*
        }

        impl FileDType {
            /// Every dtype of the format.
            pub const ALL: &[FileDType] = &[$(FileDType::$variant),*];

            /// The name in the file, such as `"BF16"`.
            pub const fn name(self) -> &'static str {
                match self { $(FileDType::$variant => $name),* }
            }

            /// The bits an element takes.
            pub const fn bits(self) -> usize {
                match self { $(FileDType::$variant => $bits),* }
            }
        }
    };
}

file_dtypes! {
    /// One byte, 0 or 1.
    Bool = "BOOL", 8;
    /// 4-bit float, two to a byte.
    F4 = "F4", 4;
    /// 6-bit float with 2 exponent bits.
    F6_E2M3 = "F6_E2M3", 6;
    /// 6-bit float with 3 exponent bits.
    F6_E3M2 = "F6_E3M2", 6;
    /// Unsigned 8-bit integer.
    U8 = "U8", 8;
    /// Signed 8-bit integer.
    I8 = "I8", 8;
    /// 8-bit float with 5 exponent bits.
    F8_E5M2 = "F8_E5M2", 8;
    /// 8-bit float with 4 exponent bits.
    F8_E4M3 = "F8_E4M3", 8;
    /// 8-bit power of two.
    F8_E8M0 = "F8_E8M0", 8;
    /// `F8_E4M3` without negative zero and infinities.
    F8_E4M3FNUZ = "F8_E4M3FNUZ", 8;
    /// `F8_E5M2` without negative zero and infinities.
    F8_E5M2FNUZ = "F8_E5M2FNUZ", 8;
    /// Signed 16-bit integer.
    I16 = "I16", 16;
    /// Unsigned 16-bit integer.
    U16 = "U16", 16;
    /// IEEE binary16.
    F16 = "F16", 16;
    /// bfloat16.
    BF16 = "BF16", 16;
    /// Signed 32-bit integer.
    I32 = "I32", 32;
    /// Unsigned 32-bit integer.
    U32 = "U32", 32;
    /// IEEE binary32.
    F32 = "F32", 32;
    /// Two `F32`, real and imaginary part.
    C64 = "C64", 64;
    /// IEEE binary64.
    F64 = "F64", 64;
    /// Signed 64-bit integer.
    I64 = "I64", 64;
    /// Unsigned 64-bit integer.
    U64 = "U64", 64;
}

impl FileDType {
    /// The dtype of that name; names are case sensitive.
    pub fn from_name(name: &str) -> Option<FileDType> {
        FileDType::ALL.iter().copied().find(|d| d.name() == name)
    }

    /// The tensor dtype it is read as, where there is one.
    pub fn dtype(self) -> Option<DType> {
        Some(match self {
            FileDType::F64 => DType::F64,
            FileDType::F32 => DType::F32,
            FileDType::F16 => DType::F16,
            FileDType::BF16 => DType::BF16,
            FileDType::I64 => DType::I64,
            FileDType::I32 => DType::I32,
            FileDType::I16 => DType::I16,
            FileDType::I8 => DType::I8,
            FileDType::U8 => DType::U8,
            FileDType::Bool => DType::Bool,
            _ => return None,
        })
    }

    /// The bytes of a tensor of this dtype and shape: `None` where they overflow or are no whole number.
    pub fn bytes(self, shape: &[usize]) -> Option<usize> {
        let bits = shape.iter().try_fold(1usize, |a, &n| a.checked_mul(n))?.checked_mul(self.bits())?;
        (bits % 8 == 0).then_some(bits / 8)
    }
}

impl TryFrom<DType> for FileDType {
    type Error = stridegrad_core::Error;

    fn try_from(d: DType) -> Result<FileDType, stridegrad_core::Error> {
        FileDType::ALL.iter().copied().find(|f| f.dtype() == Some(d)).ok_or_else(|| {
            let text = format!("safetensors files have no dtype for {d}");
            stridegrad_core::Error::new(stridegrad_core::ErrorKind::Unsupported, super::OP, text)
        })
    }
}

impl fmt::Display for FileDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
