//! The Mish activation.

use stridegrad_core::{Expr, Math};

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

/// `tanh(ln(1 + e^x))` as a quotient of `n = e^x (e^x + 2)`; from 20 on it is 1, and there `n` might overflow.
#[inline(always)]
fn gate<E: Expr>(x: E) -> E {
    let e = x.min(E::lit(20.0)).exp();
    let n = e * (e + E::lit(2.0));
    n / (n + E::lit(2.0))
}

/// The logistic function.
#[inline(always)]
fn sigmoid<E: Expr>(x: E) -> E {
    E::lit(1.0) / (E::lit(1.0) + (-x).exp())
}

stridegrad_cpu::map_kernel! {
    static MISH("mish") = |[x], []| x * gate(x);
    static MISH_GRAD("mish_backward") = |[g, x], []| {
        let t = gate(x);
        g * (t + x * sigmoid(x) * (E::lit(1.0) - t * t))
    };
}

faces! {
    /// `self * tanh(softplus(self))`, elementwise; integers give `f32`.
    ///
    /// Source: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
    pub fn mish | try_mish(&self) -> Tensor {
        unary(&MISH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &MISH_GRAD, &[], &[g, &x], || {
                let t = x.try_softplus()?.try_tanh()?;
                let slope = one_minus(&t.try_square()?)?.try_mul(x.try_sigmoid()?)?.try_mul(&x)?;
                g.try_mul(t.try_add(slope)?)
            })
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("mish", || {
        let f = |x: f64| x * x.exp().ln_1p().tanh();
        let mut all = unary_samples(Domain::Any, |x| x.try_mish(), f);
        all.extend(unary_samples(Domain::Between(-40.0, 40.0), |x| x.try_mish(), f));
        all
    })
}
