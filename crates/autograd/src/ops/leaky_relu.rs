//! The leaky rectified linear unit.

use super::elementwise::{Save, linear, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static LEAKY_RELU("leaky_relu") = |[x], [slope]| E::select(x.gt(E::lit(0.0)), x, slope * x);
    static LEAKY_RELU_GRAD("leaky_relu_backward") = |[g, x], [slope]| {
        E::select(x.gt(E::lit(0.0)), g, slope * g)
    };
}

faces! {
    /// `self` where it is positive, else `slope * self`; integers give `f32`. The gradient at 0 is `slope`.
    pub fn leaky_relu | try_leaky_relu(&self, slope: f64) -> Tensor {
        unary(&LEAKY_RELU, self, &[slope.into()], Save::Input, move |ctx, g| {
            linear(&LEAKY_RELU_GRAD, &[slope.into()], g, &[&ctx.input(0)?])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("leaky_relu", || {
        unary_samples(
            Domain::AwayFromZero,
            |x| x.try_leaky_relu(0.125),
            |x| if x > 0.0 { x } else { x / 8.0 },
        )
    })
}
