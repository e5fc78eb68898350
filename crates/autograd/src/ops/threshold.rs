//! The threshold.

use super::elementwise::{Save, linear, no_bool, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static THRESHOLD("threshold") = |[x], [threshold, value]| E::select(x.le(threshold), value, x);
    static THRESHOLD_GRAD("threshold_backward") = |[g, x], [threshold]| E::select(x.le(threshold), E::lit(0.0), g);
}

faces! {
    /// `self` where it is above `threshold`, else `value`; the gradient there is 0. NaN stays.
    pub fn threshold | try_threshold(&self, threshold: f64, value: f64) -> Tensor {
        no_bool("threshold", self.dtype(), "convert it with to_dtype()")?;
        let params = [threshold.into(), value.into()];
        unary_as(&THRESHOLD, self, &params, self.dtype(), Save::Input, move |ctx, g| {
            linear(&THRESHOLD_GRAD, &params[..1], g, &[&ctx.input(0)?])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("threshold", || {
        let f = |x: f64| if x > 0.125 { x } else { -3.0 };
        unary_samples(Domain::AwayFromZero, |x| x.try_threshold(0.125, -3.0), f)
    })
    .refusal("bools", stridegrad_core::ErrorKind::DType, || {
        Tensor::try_ones([2])?.try_gt(0.0)?.try_threshold(0.5, 0.0)
    })
}
