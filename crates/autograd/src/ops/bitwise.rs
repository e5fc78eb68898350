//! Logic on the bits of integers: `bitwise_and`, `bitwise_or`, `bitwise_xor`, `bitwise_not`.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{Binary, DType, Error, ErrorKind, Result, exec};

use super::elementwise::{device_of, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static AND("bitwise_and") = |[a, b], []| a.binary(Binary::BitAnd, b);
    static OR("bitwise_or") = |[a, b], []| a.binary(Binary::BitOr, b);
    static XOR("bitwise_xor") = |[a, b], []| a.binary(Binary::BitXor, b);
    static NOT("bitwise_not") = |[x], []| -x - E::lit(1.0);
    static NOT_BOOL("bitwise_not") = |[x], []| E::from_mask(x.eq(E::lit(0.0)));
}

fn no_float(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_floating() {
        return Err(Error::new(ErrorKind::DType, op, format!("{op} wants integers or bools, got {dtype}"))
            .hint("use the logical op for truth values, or convert with to_dtype()"));
    }
    Ok(())
}

fn binary(kernel: &MapKernel, a: &Tensor, b: &Operand) -> Result<Tensor> {
    let a = Operand::from(a);
    let dtype = promoted(&[&a, b]);
    no_float(kernel.name, dtype)?;
    let device = device_of(&[&a, b]);
    let (a, b) = (a.resolve(dtype, device)?, b.resolve(dtype, device)?);
    Ok(Tensor::from_array(exec::map(kernel, dtype, &[], dtype, &[a.array(), b.array()])?))
}

faces! {
    /// The bits set in both, elementwise, of integers or bools; broadcast and promoted. Also the `&` operator.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let m = Tensor::from_slice(&[true, false, true, true], [2, 2]);
    /// assert_eq!((&m & m.t()).to_vec::<bool>(), [true, false, false, true]);
    /// ```
    pub fn bitwise_and | try_bitwise_and(&self, other: impl Into<Operand>) -> Tensor {
        binary(&AND, self, &other.into())
    }

    /// The bits set in either, elementwise, of integers or bools; broadcast and promoted. Also the `|` operator.
    pub fn bitwise_or | try_bitwise_or(&self, other: impl Into<Operand>) -> Tensor {
        binary(&OR, self, &other.into())
    }

    /// The bits set in exactly one, elementwise, of integers or bools; broadcast and promoted. Also the `^` operator.
    pub fn bitwise_xor | try_bitwise_xor(&self, other: impl Into<Operand>) -> Tensor {
        binary(&XOR, self, &other.into())
    }

    /// Every bit flipped, elementwise, of integers; the opposite of bools. Also the `!` operator.
    pub fn bitwise_not | try_bitwise_not(&self) -> Tensor {
        no_float("bitwise_not", self.dtype())?;
        let kernel = if self.dtype() == DType::Bool { &NOT_BOOL } else { &NOT };
        Ok(Tensor::from_array(exec::map(kernel, self.dtype(), &[], self.dtype(), &[self.array()])?))
    }
}

macro_rules! operators {
    ($($trait:ident $operator:ident $method:ident;)*) => {$(
        impl<R: Into<Operand>> std::ops::$trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $operator(self, rhs: R) -> Tensor {
                self.$method(rhs)
            }
        }
        impl<R: Into<Operand>> std::ops::$trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $operator(self, rhs: R) -> Tensor {
                self.$method(rhs)
            }
        }
    )*};
}
operators! {
    BitAnd bitand bitwise_and;
    BitOr bitor bitwise_or;
    BitXor bitxor bitwise_xor;
}

impl std::ops::Not for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}

impl std::ops::Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    type Case = (fn(&Tensor, &Tensor) -> Result<Tensor>, fn(i64, i64) -> i64);
    OpSpec::new("bitwise", || {
        let cases: [Case; 3] = [
            (|a, b| a.try_bitwise_and(b), |a, b| a & b),
            (|a, b| a.try_bitwise_or(b), |a, b| a | b),
            (|a, b| a.try_bitwise_xor(b), |a, b| a ^ b),
        ];
        let two = |run, f: fn(i64, i64) -> i64| {
            let f = move |a: f64, b: f64| f(a as i64, b as i64) as f64;
            let mut all = binary_samples(Domain::Index(-99, 99), Domain::Index(-99, 99), run, f);
            all.extend(binary_samples(Domain::Mask, Domain::Mask, run, f));
            all
        };
        let mut all: Vec<Sample> = cases.into_iter().flat_map(|(run, f)| two(run, f)).collect();
        all.extend(unary_samples(Domain::Index(-99, 99), |x| x.try_bitwise_not(), |x| !(x as i64) as f64));
        all.extend(unary_samples(Domain::Mask, |x| x.try_bitwise_not(), |x| 1.0 - x));
        all.into_iter().map(Sample::no_grad).collect()
    })
    .refusal("a float", ErrorKind::DType, || Tensor::try_ones([2])?.try_bitwise_and(1))
}
