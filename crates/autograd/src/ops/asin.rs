//! The arc sine.

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ASIN("asin") = |[x], []| x.asin();
    static ASIN_GRAD("asin_backward") = |[g, x], []| g / (E::lit(1.0) - x * x).sqrt();
}

faces! {
    /// The arc sine in radians, elementwise; NaN outside [-1, 1]; integers give `f32`.
    pub fn asin | try_asin(&self) -> Tensor {
        unary(&ASIN, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &ASIN_GRAD, &[], &[g, &x], || g.try_mul(one_minus(&x.try_square()?)?.try_rsqrt()?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("asin", || unary_samples(Domain::Between(-0.8, 0.8), |x| x.try_asin(), f64::asin))
}
