//! Division rounded down.

use stridegrad_core::{Binary, Expr, Math};

use super::elementwise::{binary, integer_divisor, no_bool, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

/// Python's `//`: from the exact remainder, so that the result never disagrees with it.
#[inline(always)]
fn floor_divide<E: Expr>(a: E, b: E) -> E {
    let (zero, one) = (E::lit(0.0), E::lit(1.0));
    let r = a.binary(Binary::Fmod, b);
    let q = (a - r) / b;
    let differ = E::or(E::and(r.lt(zero), b.gt(zero)), E::and(r.gt(zero), b.lt(zero)));
    let q = E::select(differ, q - one, q);
    let f = q.floor();
    // `q` is an integer but for rounding: take the nearest one. Zero gets the quotient's sign.
    let f = E::select((q - f).gt(E::lit(0.5)), f + one, f);
    let f = E::select(q.eq(zero), a / b * zero, f);
    E::select(b.eq(zero), a / b, f)
}

stridegrad_cpu::map_kernel! {
    static FLOOR_DIVIDE("floor_divide") = |[a, b], []| floor_divide(a, b);
}

faces! {
    /// `floor(self / other)`, elementwise (Python's `//`), broadcast and promoted. Floats by 0 give infinities or NaN;
    /// integers by 0 are refused. The gradient is 0.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[7i64, -7], [2]);
    /// assert_eq!(x.floor_divide(2).to_vec::<i64>(), [3, -4]);
    /// ```
    pub fn floor_divide | try_floor_divide(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        integer_divisor("floor_divide", self, &b)?;
        let dtype = promoted(&[&a, &b]);
        no_bool("floor_divide", dtype, "convert one with to_dtype()")?;
        binary(&FLOOR_DIVIDE, &a, &b, dtype, dtype, |_| {}, |_, g| {
            let zero = g.try_zeros_like()?;
            Ok([Some(zero.clone()), Some(zero)])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("floor_divide", || {
        let f = |a: f64, b: f64| (a / b).floor();
        let low = Domain::Between(0.1, 0.9);
        let mut all = binary_samples(low, Domain::Between(1.0, 2.0), |a, b| a.try_floor_divide(b), f);
        all.extend(binary_samples(low, Domain::Between(-2.0, -1.0), |a, b| a.try_floor_divide(b), f));
        let (some, positive, negative) = (Domain::Index(-9, 9), Domain::Index(1, 5), Domain::Index(-5, 0));
        let mut ints = binary_samples(some, positive, |a, b| a.try_floor_divide(b), f);
        ints.extend(binary_samples(some, negative, |a, b| a.try_floor_divide(b), f));
        all.extend(ints.into_iter().map(Sample::no_grad));
        all
    })
    .refusal("an integer by 0", stridegrad_core::ErrorKind::Argument, || {
        Tensor::try_full([2], 3)?.try_floor_divide(0)
    })
}
