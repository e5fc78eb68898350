//! The sigmoid-weighted linear unit.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SILU("silu") = |[x], []| x / (E::lit(1.0) + (-x).exp());
    static SILU_GRAD("silu_backward") = |[g, x], []| {
        let s = E::lit(1.0) / (E::lit(1.0) + (-x).exp());
        g * s * (E::lit(1.0) + x * (E::lit(1.0) - s))
    };
}

faces! {
    /// `self * sigmoid(self)` (also called swish), elementwise; integers give `f32`.
    pub fn silu | try_silu(&self) -> Tensor {
        unary(&SILU, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SILU_GRAD, &[], &[g, &x], || {
                let s = x.try_sigmoid()?;
                g.try_mul(&s.try_mul(&x.try_mul(&one_minus(&s)?)?.try_add(1.0)?)?)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("silu", || unary_samples(Domain::Any, |x| x.try_silu(), |x| x / (1.0 + (-x).exp())))
}
