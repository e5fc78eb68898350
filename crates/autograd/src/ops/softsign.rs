//! The softsign.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SOFTSIGN("softsign") = |[x], []| x / (E::lit(1.0) + x.abs());
    static SOFTSIGN_GRAD("softsign_backward") = |[g, x], []| g / ((E::lit(1.0) + x.abs()) * (E::lit(1.0) + x.abs()));
}

faces! {
    /// `self / (1 + |self|)`, elementwise; integers give `f32`.
    pub fn softsign | try_softsign(&self) -> Tensor {
        unary(&SOFTSIGN, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SOFTSIGN_GRAD, &[], &[g, &x], || g.try_div(x.try_abs()?.try_add(1.0)?.try_square()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("softsign", || {
        unary_samples(Domain::AwayFromZero, |x| x.try_softsign(), |x| x / (1.0 + x.abs()))
    })
}
