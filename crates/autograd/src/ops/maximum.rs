//! The larger of two.

use super::elementwise::{extreme, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static MAXIMUM("maximum") = |[a, b], []| a.max(b);
    // The share of `a`: all where it is larger (or a NaN takes part), half at a tie.
    static MAXIMUM_GRAD("maximum_backward") = |[g, a, b], []| {
        E::select(a.lt(b), E::lit(0.0), E::select(a.eq(b), E::lit(0.5) * g, g))
    };
}

faces! {
    /// The larger of `self` and `other`, elementwise, broadcast and promoted; NaN if either is. At a tie each gets
    /// half of the gradient.
    pub fn maximum | try_maximum(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        extreme(&MAXIMUM, &MAXIMUM_GRAD, &a, &b, promoted(&[&a, &b]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("maximum", || {
        // One domain lies below the other: no ties where gradients are checked.
        let mut all =
            binary_samples(Domain::Positive, Domain::Between(-2.0, 0.2), |a, b| a.try_maximum(b), f64::max);
        all.extend(binary_samples(
            Domain::Between(-2.0, 0.2),
            Domain::Positive,
            |a, b| a.try_maximum(b),
            f64::max,
        ));
        all.extend(
            binary_samples(Domain::Any, Domain::Any, |a, b| a.try_maximum(b), f64::max)
                .into_iter()
                .map(|s| s.numbers().no_grad()),
        );
        all
    })
}
