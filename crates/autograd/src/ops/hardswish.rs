//! The hard swish.

use super::elementwise::{Save, fused, linear, unary};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static HARDSWISH("hardswish") = |[x], []| {
        x * (x + E::lit(3.0)).max(E::lit(0.0)).min(E::lit(6.0)) / E::lit(6.0)
    };
    static HARDSWISH_GRAD("hardswish_backward") = |[g, x], []| {
        let curve = g * (x / E::lit(3.0) + E::lit(0.5));
        let right = E::select(x.ge(E::lit(3.0)), g, curve);
        E::select(x.le(E::lit(-3.0)), E::lit(0.0), right)
    };
    static CURVED("hardswish_curved") = |[g, x], []| {
        E::select(E::and(x.gt(E::lit(-3.0)), x.lt(E::lit(3.0))), g, E::lit(0.0))
    };
    static RIGHT("hardswish_right") = |[g, x], []| E::select(x.ge(E::lit(3.0)), g, E::lit(0.0));
}

faces! {
    /// `self * min(max(self + 3, 0), 6) / 6`, elementwise; integers give `f32`. The gradient is 0 up to -3 and 1 from 3 on.
    ///
    /// Source: Howard et al., "Searching for MobileNetV3", 2019.
    pub fn hardswish | try_hardswish(&self) -> Tensor {
        unary(&HARDSWISH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &HARDSWISH_GRAD, &[], &[g, &x], || {
                let curve = linear(&CURVED, &[], g, &[&x])?.try_mul(x.try_div(3.0)?.try_add(0.5)?)?;
                curve.try_add(linear(&RIGHT, &[], g, &[&x])?)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("hardswish", || {
        let f = |x: f64| x * (x + 3.0).clamp(0.0, 6.0) / 6.0;
        let mut all = unary_samples(Domain::Any, |x| x.try_hardswish(), f);
        // Beyond both kinks.
        all.extend(unary_samples(Domain::Between(3.25, 5.0), |x| x.try_hardswish(), f));
        all.extend(unary_samples(Domain::Between(-5.0, -3.25), |x| x.try_hardswish(), f));
        all
    })
}
