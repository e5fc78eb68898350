//! True division.

use stridegrad_core::Result;

use super::elementwise::{binary, float_of, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static DIV("div") = |[a, b], []| a / b;
}

pub(crate) fn div(a: &Operand, b: &Operand) -> Result<Tensor> {
    let dtype = float_of(promoted(&[a, b]));
    binary(
        &DIV,
        a,
        b,
        dtype,
        dtype,
        |rec| {
            if rec.any() {
                rec.save_input(1)
            }
            if rec.needs(1) {
                rec.save_input(0)
            }
        },
        |ctx, g| {
            let b = ctx.input(1)?;
            let by_b = g.try_div(&b)?;
            let gb = match ctx.needs(1) {
                // -g a / b^2
                true => Some(by_b.try_mul(&ctx.input(0)?.try_div(&b)?)?.try_neg()?),
                false => None,
            };
            Ok([Some(by_b), gb])
        },
    )
}

faces! {
    /// `self / other`: true division, integers give `f32`; also the `/` operator.
    pub fn div | try_div(&self, other: impl Into<Operand>) -> Tensor {
        div(&self.into(), &other.into())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("div", || {
        binary_samples(Domain::Any, Domain::AwayFromZero, |a, b| a.try_div(b), |a, b| a / b)
    })
}
