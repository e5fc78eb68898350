//! The Gaussian error linear unit, exact and by its tanh approximation.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use stridegrad_core::{Expr, Math, Result};

use super::elementwise::{Save, fused, one_minus, unary};
use crate::Tensor;
use crate::faces::faces;

/// The factors of the tanh form: `sqrt(2 / pi)` and the cubic term's.
const SQRT_2_OVER_PI: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
const CUBIC: f64 = 0.044715;

/// The standard normal distribution function.
#[inline(always)]
fn cdf<E: Expr>(x: E) -> E {
    E::lit(0.5) * (E::lit(1.0) + (x * E::lit(FRAC_1_SQRT_2)).erf())
}

/// The tanh form's tanh.
#[inline(always)]
fn inner<E: Expr>(x: E) -> E {
    (E::lit(SQRT_2_OVER_PI) * (x + E::lit(CUBIC) * x * x * x)).tanh()
}

stridegrad_cpu::map_kernel! {
    static GELU("gelu") = |[x], []| x * cdf(x);
    // cdf(x) + x pdf(x)
    static GELU_GRAD("gelu_backward") = |[g, x], []| {
        g * (cdf(x) + x * E::lit(0.5 * SQRT_2_OVER_PI) * (E::lit(-0.5) * x * x).exp())
    };
    static GELU_TANH("gelu_tanh") = |[x], []| E::lit(0.5) * x * (E::lit(1.0) + inner(x));
    static GELU_TANH_GRAD("gelu_tanh_backward") = |[g, x], []| {
        let t = inner(x);
        let slope = E::lit(SQRT_2_OVER_PI) * (E::lit(1.0) + E::lit(3.0 * CUBIC) * x * x);
        E::lit(0.5) * g * (E::lit(1.0) + t + x * (E::lit(1.0) - t * t) * slope)
    };
}

fn derivative(x: &Tensor) -> Result<Tensor> {
    let cdf = x.try_mul(FRAC_1_SQRT_2)?.try_erf()?.try_add(1.0)?.try_mul(0.5)?;
    let pdf = x.try_square()?.try_mul(-0.5)?.try_exp()?.try_mul(0.5 * SQRT_2_OVER_PI)?;
    cdf.try_add(x.try_mul(&pdf)?)
}

fn tanh_derivative(x: &Tensor) -> Result<Tensor> {
    let x2 = x.try_square()?;
    let t = x2.try_mul(CUBIC)?.try_add(1.0)?.try_mul(x)?.try_mul(SQRT_2_OVER_PI)?.try_tanh()?;
    let slope = x2.try_mul(3.0 * CUBIC)?.try_add(1.0)?.try_mul(SQRT_2_OVER_PI)?;
    let curve = one_minus(&t.try_square()?)?.try_mul(&slope)?.try_mul(x)?;
    t.try_add(1.0)?.try_add(curve)?.try_mul(0.5)
}

faces! {
    /// `self * P(X <= self)` for a standard normal `X`, elementwise; integers give `f32`.
    ///
    /// Source: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    pub fn gelu | try_gelu(&self) -> Tensor {
        unary(&GELU, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &GELU_GRAD, &[], &[g, &x], || g.try_mul(&derivative(&x)?))
        })
    }

    /// The tanh approximation of [`Tensor::gelu`] (PyTorch's `approximate="tanh"`).
    pub fn gelu_tanh | try_gelu_tanh(&self) -> Tensor {
        unary(&GELU_TANH, self, &[], Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &GELU_TANH_GRAD, &[], &[g, &x], || g.try_mul(&tanh_derivative(&x)?))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("gelu", || {
        let exact = |x: f64| x * (1.0 + super::erf::reference(x / 2f64.sqrt())) / 2.0;
        let tanh = |x: f64| {
            x / 2.0 * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        };
        let mut all = unary_samples(Domain::Any, |x| x.try_gelu(), exact);
        all.extend(unary_samples(Domain::Any, |x| x.try_gelu_tanh(), tanh));
        all
    })
}
