//! The smaller of two.

use super::elementwise::{extreme, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static MINIMUM("minimum") = |[a, b], []| a.min(b);
    // The share of `a`: all where it is smaller (or a NaN takes part), half at a tie.
    static MINIMUM_GRAD("minimum_backward") = |[g, a, b], []| {
        E::select(a.gt(b), E::lit(0.0), E::select(a.eq(b), E::lit(0.5) * g, g))
    };
}

faces! {
    /// The smaller of `self` and `other`, elementwise, broadcast and promoted; NaN if either is. At a tie each gets
    /// half of the gradient.
    pub fn minimum | try_minimum(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        extreme(&MINIMUM, &MINIMUM_GRAD, &a, &b, promoted(&[&a, &b]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("minimum", || {
        // One domain lies below the other: no ties where gradients are checked.
        let mut all =
            binary_samples(Domain::Positive, Domain::Between(-2.0, 0.2), |a, b| a.try_minimum(b), f64::min);
        all.extend(binary_samples(
            Domain::Between(-2.0, 0.2),
            Domain::Positive,
            |a, b| a.try_minimum(b),
            f64::min,
        ));
        all.extend(
            binary_samples(Domain::Any, Domain::Any, |a, b| a.try_minimum(b), f64::min)
                .into_iter()
                .map(|s| s.numbers().no_grad()),
        );
        all
    })
}
