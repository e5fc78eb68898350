//! The soft shrinkage.

use stridegrad_core::{Error, ErrorKind};

use super::elementwise::{Save, linear, no_bool, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SOFTSHRINK("softshrink") = |[x], [lambd]| E::select(x.gt(lambd), x - lambd, E::select(x.lt(-lambd), x + lambd, x * E::lit(0.0)));
    static SOFTSHRINK_GRAD("softshrink_backward") = |[g, x], [lambd]| E::select(E::and(x.ge(-lambd), x.le(lambd)), E::lit(0.0), g);
}

faces! {
    /// `self` moved towards 0 by `lambd`: 0 within `[-lambd, lambd]`, where the gradient is 0 as well. A negative `lambd`
    /// is refused.
    pub fn softshrink | try_softshrink(&self, lambd: f64) -> Tensor {
        no_bool("softshrink", self.dtype(), "convert it with to_dtype()")?;
        if lambd.is_nan() || lambd < 0.0 {
            return Err(Error::new(ErrorKind::Argument, "softshrink",
                format!("lambda must be greater or equal to 0, but found to be {lambd}")));
        }
        let params = [lambd.into()];
        unary_as(&SOFTSHRINK, self, &params, self.dtype(), Save::Input, move |ctx, g| {
            linear(&SOFTSHRINK_GRAD, &params, g, &[&ctx.input(0)?])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("softshrink", || {
        let f = |x: f64| x - 0.125 * x.signum();
        let mut all = unary_samples(Domain::AwayFromZero, |x| x.try_softshrink(0.125), f);
        all.extend(unary_samples(Domain::Between(-0.5, 0.5), |x| x.try_softshrink(0.75), |_| 0.0));
        all
    })
    .refusal("a negative lambda", ErrorKind::Argument, || Tensor::try_ones([2])?.try_softshrink(-1.0))
    .refusal("bools", ErrorKind::DType, || Tensor::try_ones([2])?.try_gt(0.0)?.try_softshrink(0.5))
}
