//! True division.

use stridegrad_core::{Result, exec};

use super::elementwise::{binary, check_in_place_dtype, device_of, float_of, promoted};
use crate::faces::faces;
use crate::inplace::in_place;
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

    /// Divides this tensor by `other`, in place; also the `/=` operator. Refused for integers, whose quotient is a
    /// float. The destination is never broadcast.
    pub fn div_ | try_div_(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = float_of(promoted(&[&a, &b]));
        check_in_place_dtype("div_", dtype, self.dtype())?;
        let b = b.resolve(dtype, device_of(&[&a]))?;
        in_place("div_", self, &[&b],
            |rec| {
                if rec.any() { rec.save_input(1) }
                // The old values are about to be overwritten: their copy is what the other gradient needs.
                if rec.needs(1) { rec.save_input_copy(0, exec::copy_to(self.array(), self.layout().dense_like(), self.dtype())?) }
                Ok(())
            },
            |out| exec::map_into(&DIV, dtype, &[], out, &[out, b.array()]),
            |ctx, g| {
                let b = ctx.input(1)?;
                let by_b = g.try_div(&b)?;
                let gb = match ctx.needs(1) {
                    true => ctx.reduce_to(1, by_b.try_mul(&ctx.input(0)?.try_div(&b)?)?.try_neg()?)?,
                    false => None,
                };
                Ok(vec![Some(by_b), gb])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("div", || {
        binary_samples(Domain::Any, Domain::AwayFromZero, |a, b| a.try_div(b), |a, b| a / b)
            .into_iter()
            .map(|s| s.in_place(|x, others| x.try_div_(&others[0]).map(drop)))
            .collect()
    })
    .refusal("integers in place", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], 4)?.try_div_(2))
}
