//! Logic on truth values: `logical_and`, `logical_or`, `logical_xor`, `logical_not`.

use super::compare::compare;
use super::elementwise::predicate;
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static AND("logical_and") = |[a, b], []| E::from_mask(E::and(a.ne(E::lit(0.0)), b.ne(E::lit(0.0))));
    static OR("logical_or") = |[a, b], []| E::from_mask(E::or(a.ne(E::lit(0.0)), b.ne(E::lit(0.0))));
    static XOR("logical_xor") = |[a, b], []| {
        let (a, b) = (a.ne(E::lit(0.0)), b.ne(E::lit(0.0)));
        E::from_mask(E::and(E::or(a, b), E::not(E::and(a, b))))
    };
    static NOT("logical_not") = |[x], []| E::from_mask(x.eq(E::lit(0.0)));
}

faces! {
    /// Whether both are true, elementwise, as bools, for any dtypes: anything but 0 is true, NaN too.
    pub fn logical_and | try_logical_and(&self, other: impl Into<Operand>) -> Tensor {
        compare(&AND, self, &other.into())
    }

    /// Whether one is true, elementwise, as bools; see [`Tensor::logical_and`].
    pub fn logical_or | try_logical_or(&self, other: impl Into<Operand>) -> Tensor {
        compare(&OR, self, &other.into())
    }

    /// Whether exactly one is true, elementwise, as bools; see [`Tensor::logical_and`].
    pub fn logical_xor | try_logical_xor(&self, other: impl Into<Operand>) -> Tensor {
        compare(&XOR, self, &other.into())
    }

    /// Whether it is false, elementwise, as bools; see [`Tensor::logical_and`].
    pub fn logical_not | try_logical_not(&self) -> Tensor {
        predicate(&NOT, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    type Case = (fn(&Tensor, &Tensor) -> stridegrad_core::Result<Tensor>, fn(bool, bool) -> bool);
    OpSpec::new("logical", || {
        let cases: [Case; 3] = [
            (|a, b| a.try_logical_and(b), |a, b| a && b),
            (|a, b| a.try_logical_or(b), |a, b| a || b),
            (|a, b| a.try_logical_xor(b), |a, b| a != b),
        ];
        let two = |run, f: fn(bool, bool) -> bool| {
            binary_samples(Domain::Mask, Domain::Index(-1, 2), run, move |a, b| {
                f64::from(f(a != 0.0, b != 0.0))
            })
        };
        let mut all: Vec<Sample> = cases.into_iter().flat_map(|(run, f)| two(run, f)).collect();
        let not = |x: f64| f64::from(x == 0.0);
        all.extend(unary_samples(Domain::Index(-1, 2), |x| x.try_logical_not(), not));
        all.extend(unary_samples(Domain::Mask, |x| x.try_logical_not(), not));
        all.into_iter().map(|s| s.no_grad().result(stridegrad_core::DType::Bool)).collect()
    })
}
