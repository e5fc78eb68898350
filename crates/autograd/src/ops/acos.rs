//! The arc cosine.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ACOS("acos") = |[x], []| x.acos();
    static ACOS_GRAD("acos_backward") = |[g, x], []| -(g / (E::lit(1.0) - x * x).sqrt());
}

faces! {
    /// The arc cosine in radians, elementwise; NaN outside [-1, 1]; integers give `f32`.
    pub fn acos | try_acos(&self) -> Tensor {
        unary(&ACOS, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ACOS_GRAD, &[], &[g, &x], || g.try_neg()?.try_mul(one_minus(&x.try_square()?)?.try_rsqrt()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("acos", || unary_samples(Domain::Between(-0.8, 0.8), |x| x.try_acos(), f64::acos))
}
