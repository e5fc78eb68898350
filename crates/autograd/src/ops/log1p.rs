//! The logarithm of one more.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static LOG1P("log1p") = |[x], []| x.ln_1p();
    static LOG1P_GRAD("log1p_backward") = |[g, x], []| g / (x + E::lit(1.0));
}

faces! {
    /// `ln(1 + self)`, elementwise, accurate near 0; integers give `f32`.
    pub fn log1p | try_log1p(&self) -> Tensor {
        unary(&LOG1P, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &LOG1P_GRAD, &[], &[g, &x], || g.try_div(&x.try_add(1.0)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("log1p", || unary_samples(Domain::Positive, |x| x.try_log1p(), f64::ln_1p))
}
