//! Multiplication.

use stridegrad_core::exec;

use super::elementwise::{binary, check_in_place_dtype, device_of, promoted};
use crate::faces::faces;
use crate::inplace::in_place;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    pub(crate) static MUL("mul") = |[a, b], []| a * b;
}

faces! {
    /// `self * other`, elementwise, broadcast and promoted as PyTorch does; also the `*` operator.
    pub fn mul | try_mul(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = promoted(&[&a, &b]);
        binary(&MUL, &a, &b, dtype, dtype,
            |rec| {
                if rec.needs(0) { rec.save_input(1) }
                if rec.needs(1) { rec.save_input(0) }
            },
            |ctx, g| Ok([
                ctx.needs(0).then(|| g.try_mul(&ctx.input(1)?)).transpose()?,
                ctx.needs(1).then(|| g.try_mul(&ctx.input(0)?)).transpose()?,
            ]))
    }

    /// Multiplies this tensor by `other`, in place. The destination is never broadcast.
    pub fn mul_ | try_mul_(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = promoted(&[&a, &b]);
        check_in_place_dtype("mul_", dtype, self.dtype())?;
        let b = b.resolve(dtype, device_of(&[&a]))?;
        in_place("mul_", self, &[&b],
            |rec| {
                if rec.needs(0) { rec.save_input(1) }
                // The old values are about to be overwritten: their copy is what the other gradient needs.
                if rec.needs(1) { rec.save_input_copy(0, exec::copy_to(self.array(), self.layout().dense_like(), self.dtype())?) }
                Ok(())
            },
            |out| exec::map_into(&MUL, dtype, &[], out, &[out, b.array()]),
            |ctx, g| Ok(vec![
                ctx.needs(0).then(|| g.try_mul(&ctx.input(1)?)).transpose()?,
                match ctx.needs(1) {
                    true => ctx.reduce_to(1, g.try_mul(&ctx.input(0)?)?)?,
                    false => None,
                },
            ]))?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("mul", || {
        binary_samples(Domain::Any, Domain::Any, |a, b| a.try_mul(b), |a, b| a * b)
            .into_iter()
            .map(|s| s.in_place(|x, others| x.try_mul_(&others[0]).map(drop)))
            .collect()
    })
}
