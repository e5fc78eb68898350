//! The hyperbolic cosine.

use super::elementwise::{Save, fused, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static COSH("cosh") = |[x], []| x.cosh();
    static COSH_GRAD("cosh_backward") = |[g, x], []| g * x.sinh();
}

faces! {
    /// The hyperbolic cosine, elementwise; integers give `f32`.
    pub fn cosh | try_cosh(&self) -> Tensor {
        unary(&COSH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &COSH_GRAD, &[], &[g, &x], || g.try_mul(x.try_sinh()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("cosh", || unary_samples(Domain::Any, |x| x.try_cosh(), f64::cosh))
}
