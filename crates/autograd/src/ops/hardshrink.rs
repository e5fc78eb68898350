//! The hard shrinkage.

use super::elementwise::{Save, linear, no_bool, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static HARDSHRINK("hardshrink") = |[x], [lambd]| E::select(E::and(x.ge(-lambd), x.le(lambd)), E::lit(0.0), x);
    static HARDSHRINK_GRAD("hardshrink_backward") = |[g, x], [lambd]| E::select(E::and(x.ge(-lambd), x.le(lambd)), E::lit(0.0), g);
}

faces! {
    /// `self` where it lies outside `[-lambd, lambd]`, else 0; the gradient inside is 0 as well. NaN stays.
    pub fn hardshrink | try_hardshrink(&self, lambd: f64) -> Tensor {
        no_bool("hardshrink", self.dtype(), "convert it with to_dtype()")?;
        let params = [lambd.into()];
        unary_as(&HARDSHRINK, self, &params, self.dtype(), Save::Input, move |ctx, g| {
            linear(&HARDSHRINK_GRAD, &params, g, &[&ctx.input(0)?])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("hardshrink", || {
        let mut all = unary_samples(Domain::AwayFromZero, |x| x.try_hardshrink(0.125), |x| x);
        all.extend(unary_samples(Domain::Between(-0.5, 0.5), |x| x.try_hardshrink(0.75), |_| 0.0));
        all.extend(unary_samples(
            Domain::Between(0.75, 1.75),
            |x| x.try_mul(x)?.try_sub(4.0)?.try_hardshrink(0.5),
            |x| x * x - 4.0,
        ));
        all
    })
    .refusal("bools", stridegrad_core::ErrorKind::DType, || {
        Tensor::try_ones([2])?.try_gt(0.0)?.try_hardshrink(0.5)
    })
}
