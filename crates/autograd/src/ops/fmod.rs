//! The remainder with the sign of the dividend.

use stridegrad_core::Binary;

use super::elementwise::{integer_divisor, modulo};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static FMOD("fmod") = |[a, b], []| a.binary(Binary::Fmod, b);
}

faces! {
    /// `self - trunc(self / other) * other`, elementwise: the remainder with the sign of the dividend (C's `fmod`,
    /// Rust's `%`), broadcast and promoted. Floats by 0 give NaN; integers by 0 are refused.
    pub fn fmod | try_fmod(&self, other: impl Into<Operand>) -> Tensor {
        let other = other.into();
        integer_divisor("fmod", self, &other)?;
        modulo(&FMOD, self, &other, |a, b| a.try_div(b)?.try_trunc())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("fmod", || {
        let f = |a: f64, b: f64| a - (a / b).trunc() * b;
        // Quotients between 1 and 2: gradients are checked off the jumps.
        let mut all = binary_samples(
            Domain::Between(-1.9, -1.1),
            Domain::Between(-1.0, -0.96),
            |a, b| a.try_fmod(b),
            f,
        );
        let mut ints = binary_samples(Domain::Index(-9, 9), Domain::Index(1, 5), |a, b| a.try_fmod(b), f);
        ints.extend(binary_samples(Domain::Index(-9, 9), Domain::Index(-5, 0), |a, b| a.try_fmod(b), f));
        all.extend(ints.into_iter().map(Sample::no_grad));
        all
    })
    .refusal("an integer by 0", stridegrad_core::ErrorKind::Argument, || {
        Tensor::try_full([2], 3)?.try_fmod(&Tensor::try_full([2], 0)?)
    })
}
