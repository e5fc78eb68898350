//! PyTorch's type promotion over mixed operands.

use crate::{Category, DType, Scalar};

/// What an operand is for promotion: one of PyTorch's three priority buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypeArg {
    /// A tensor with at least one dim, `(1,)` included.
    Dimensioned(DType),
    /// A 0-dim tensor.
    ZeroDim(DType),
    /// A Rust number.
    Wrapped(Scalar),
}

/// The dtype that an op over these operands computes in: PyTorch's `result_type`.
///
/// Operands of one bucket promote among themselves. A lower bucket counts only if its *category* (bool <
/// integral < floating) is higher than that of the buckets above it; floating numbers then bring f32, integers
/// i64. No operand at all gives f32.
///
/// ```
/// use stridegrad_core::{DType::*, Scalar, TypeArg::*, result_type};
/// assert_eq!(result_type(&[Dimensioned(I32), Dimensioned(F16)]), F16);
/// assert_eq!(result_type(&[Dimensioned(F16), ZeroDim(F64)]), F16);
/// assert_eq!(result_type(&[Dimensioned(I64), Wrapped(Scalar::Float(1.5))]), F32);
/// ```
pub fn result_type(operands: &[TypeArg]) -> DType {
    let (mut dimensioned, mut zero_dim, mut wrapped) = (None, None, None);
    for operand in operands {
        let (bucket, dtype) = match *operand {
            TypeArg::Dimensioned(d) => (&mut dimensioned, d),
            TypeArg::ZeroDim(d) => (&mut zero_dim, d),
            TypeArg::Wrapped(s) => (&mut wrapped, s.default_dtype()),
        };
        *bucket = Some(bucket.map_or(dtype, |b: DType| b.promote(dtype)));
    }
    combine(dimensioned, combine(zero_dim, wrapped)).unwrap_or(DType::F32)
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(high), Some(low)) = (higher, lower) else { return higher.or(lower) };
    Some(match (high.category(), low.category()) {
        (Category::Floating, _) => high,
        (Category::Bool, _) | (_, Category::Floating) => high.promote(low),
        _ => high,
    })
}

#[cfg(test)]
mod tests {
    use super::TypeArg::*;
    use super::*;
    use DType::*;

    #[test]
    fn buckets_as_pytorch() {
        let cases: &[(&[TypeArg], DType)] = &[
            (&[Dimensioned(U8), Dimensioned(I8)], I16),
            (&[Dimensioned(U8), Dimensioned(I32)], I32),
            (&[Dimensioned(I64), Dimensioned(F16)], F16),
            (&[Dimensioned(F16), Dimensioned(BF16)], F32),
            (&[Dimensioned(Bool), Dimensioned(U8)], U8),
            (&[Dimensioned(I32), Dimensioned(F32)], F32),
            (&[Dimensioned(F16), ZeroDim(F64)], F16),
            (&[Dimensioned(I32), ZeroDim(I64)], I32),
            (&[Dimensioned(I32), ZeroDim(F64)], F64),
            (&[Dimensioned(I32), ZeroDim(F16)], F16),
            (&[ZeroDim(I32), ZeroDim(F64)], F64),
            (&[Dimensioned(I64), Wrapped(Scalar::Float(1.5))], F32),
            (&[Dimensioned(F16), Wrapped(Scalar::Float(1.5))], F16),
            (&[Dimensioned(Bool), Wrapped(Scalar::Int(1))], I64),
            (&[Dimensioned(U8), Wrapped(Scalar::Int(300))], U8),
            (&[Dimensioned(I8), Wrapped(Scalar::Bool(true))], I8),
            (&[Dimensioned(Bool), ZeroDim(I16)], I16),
            (&[Dimensioned(Bool), ZeroDim(F64)], F64),
            (&[Dimensioned(I32), ZeroDim(Bool)], I32),
            (&[ZeroDim(F32), Wrapped(Scalar::Int(1))], F32),
            (&[ZeroDim(I64), Wrapped(Scalar::Float(1.0))], F32),
            (&[ZeroDim(Bool), Wrapped(Scalar::Float(1.0))], F32),
            // The number lifts the 0-dim operand to f32, whose category then counts against the i32 tensor.
            (&[Dimensioned(I32), ZeroDim(I64), Wrapped(Scalar::Float(1.0))], F32),
            (&[Dimensioned(I32), ZeroDim(F16), Wrapped(Scalar::Float(1.0))], F16),
            (&[Wrapped(Scalar::Int(1)), Wrapped(Scalar::Float(1.0))], F32),
            (&[Wrapped(Scalar::Int(1))], I64),
            (&[], F32),
        ];
        for (operands, want) in cases {
            assert_eq!(result_type(operands), *want, "{operands:?}");
            let mut back = operands.to_vec();
            back.reverse();
            assert_eq!(result_type(&back), *want, "{back:?}");
        }
    }

    #[test]
    fn one_bucket_is_promote() {
        for a in DType::ALL {
            for b in DType::ALL {
                assert_eq!(result_type(&[Dimensioned(a), Dimensioned(b)]), a.promote(b));
                assert_eq!(result_type(&[ZeroDim(a), ZeroDim(b)]), a.promote(b));
            }
        }
    }
}
