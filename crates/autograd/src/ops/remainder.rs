//! The remainder with the sign of the divisor.

use stridegrad_core::{Binary, Expr};

use super::elementwise::{integer_divisor, modulo};
use crate::faces::faces;
use crate::{Operand, Tensor};

/// Python's `%`.
#[inline(always)]
fn remainder<E: Expr>(a: E, b: E) -> E {
    let zero = E::lit(0.0);
    let r = a.binary(Binary::Fmod, b);
    let differ = E::or(E::and(r.lt(zero), b.gt(zero)), E::and(r.gt(zero), b.lt(zero)));
    E::select(differ, r + b, r)
}

stridegrad_cpu::map_kernel! {
    static REMAINDER("remainder") = |[a, b], []| remainder(a, b);
}

faces! {
    /// `self - floor(self / other) * other`, elementwise: the remainder with the sign of the divisor (Python's `%`),
    /// broadcast and promoted. Floats by 0 give NaN; integers by 0 are refused.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[7i64, -7], [2]);
    /// assert_eq!(x.remainder(2).to_vec::<i64>(), [1, 1]);
    /// assert_eq!(x.remainder(-2).to_vec::<i64>(), [-1, -1]);
    /// ```
    pub fn remainder | try_remainder(&self, other: impl Into<Operand>) -> Tensor {
        let other = other.into();
        integer_divisor("remainder", self, &other)?;
        modulo(&REMAINDER, self, &other, |a, b| a.try_floor_divide(b))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("remainder", || {
        let f = |a: f64, b: f64| a - (a / b).floor() * b;
        // Quotients between 0 and 1, or between -1 and 0: gradients are checked off the jumps.
        let low = Domain::Between(0.1, 0.9);
        let mut all = binary_samples(low, Domain::Between(1.0, 2.0), |a, b| a.try_remainder(b), f);
        all.extend(binary_samples(low, Domain::Between(-2.0, -1.0), |a, b| a.try_remainder(b), f));
        let mut ints =
            binary_samples(Domain::Index(-9, 9), Domain::Index(1, 5), |a, b| a.try_remainder(b), f);
        ints.extend(binary_samples(Domain::Index(-9, 9), Domain::Index(-5, 0), |a, b| a.try_remainder(b), f));
        all.extend(ints.into_iter().map(Sample::no_grad));
        all
    })
    .refusal("an integer by 0", stridegrad_core::ErrorKind::Argument, || {
        Tensor::try_full([2], 3)?.try_remainder(0)
    })
}
