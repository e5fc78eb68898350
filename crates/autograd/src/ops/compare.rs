//! Comparisons: `eq`, `ne`, `lt`, `le`, `gt`, `ge`.

use stridegrad_core::{DType, Result, exec};

use super::elementwise::{device_of, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static EQ("eq") = |[a, b], []| E::from_mask(a.eq(b));
    static NE("ne") = |[a, b], []| E::from_mask(a.ne(b));
    static LT("lt") = |[a, b], []| E::from_mask(a.lt(b));
    static LE("le") = |[a, b], []| E::from_mask(a.le(b));
    static GT("gt") = |[a, b], []| E::from_mask(a.gt(b));
    static GE("ge") = |[a, b], []| E::from_mask(a.ge(b));
}

/// A test of two operands in their promoted dtype: a bool result, which carries no gradient.
pub(crate) fn compare(
    kernel: &stridegrad_core::kernel::MapKernel,
    a: &Tensor,
    b: &Operand,
) -> Result<Tensor> {
    let a = Operand::from(a);
    let dtype = promoted(&[&a, b]);
    let device = device_of(&[&a, b]);
    let (a, b) = (a.resolve(dtype, device)?, b.resolve(dtype, device)?);
    Ok(Tensor::from_array(exec::map(kernel, dtype, &[], DType::Bool, &[a.array(), b.array()])?))
}

faces! {
    /// `self == other`, elementwise, as bools. Operands are broadcast, and compared in their promoted dtype: an
    /// integer tensor and `1.5` compare as floats. NaN equals nothing.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1i64, 2, 3], [3]);
    /// assert_eq!(x.eq(2).to_vec::<bool>(), [false, true, false]);
    /// assert_eq!(x.lt(1.5).to_vec::<bool>(), [true, false, false]);
    /// ```
    pub fn eq | try_eq(&self, other: impl Into<Operand>) -> Tensor {
        compare(&EQ, self, &other.into())
    }

    /// `self != other`, elementwise, as bools; see [`Tensor::eq`]. NaN differs from everything.
    pub fn ne | try_ne(&self, other: impl Into<Operand>) -> Tensor {
        compare(&NE, self, &other.into())
    }

    /// `self < other`, elementwise, as bools; see [`Tensor::eq`].
    pub fn lt | try_lt(&self, other: impl Into<Operand>) -> Tensor {
        compare(&LT, self, &other.into())
    }

    /// `self <= other`, elementwise, as bools; see [`Tensor::eq`].
    pub fn le | try_le(&self, other: impl Into<Operand>) -> Tensor {
        compare(&LE, self, &other.into())
    }

    /// `self > other`, elementwise, as bools; see [`Tensor::eq`].
    pub fn gt | try_gt(&self, other: impl Into<Operand>) -> Tensor {
        compare(&GT, self, &other.into())
    }

    /// `self >= other`, elementwise, as bools; see [`Tensor::eq`].
    pub fn ge | try_ge(&self, other: impl Into<Operand>) -> Tensor {
        compare(&GE, self, &other.into())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    type Case = (fn(&Tensor, &Tensor) -> Result<Tensor>, fn(f64, f64) -> bool);
    OpSpec::new("compare", || {
        let cases: [Case; 6] = [
            (|a, b| a.try_eq(b), |a, b| a == b),
            (|a, b| a.try_ne(b), |a, b| a != b),
            (|a, b| a.try_lt(b), |a, b| a < b),
            (|a, b| a.try_le(b), |a, b| a <= b),
            (|a, b| a.try_gt(b), |a, b| a > b),
            (|a, b| a.try_ge(b), |a, b| a >= b),
        ];
        let both = |run, f: fn(f64, f64) -> bool| {
            let small = Domain::Index(0, 4); // many ties
            let mut all = binary_samples(Domain::Any, Domain::Any, run, move |a, b| f64::from(f(a, b)));
            all.extend(binary_samples(small, small, run, move |a, b| f64::from(f(a, b))));
            all.into_iter().map(|s| s.no_grad().result(DType::Bool)).collect::<Vec<_>>()
        };
        cases.into_iter().flat_map(|(run, f)| both(run, f)).collect()
    })
}
