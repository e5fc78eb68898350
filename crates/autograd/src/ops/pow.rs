//! Powers.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{DType, Error, ErrorKind, Result, Scalar};

use super::elementwise::{Save, binary, promoted, unary_as};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static POW("pow") = |[x, e], []| x.pow(e);
    static POW_SCALAR("pow") = |[x], [e]| x.pow(e);
    // Common exponents, without a call of the power function.
    static POW_HALF("pow") = |[x], [_e]| x.sqrt();
    static POW_2("pow") = |[x], [_e]| x * x;
    static POW_3("pow") = |[x], [_e]| x * x * x;
    static POW_MINUS_1("pow") = |[x], [_e]| E::lit(1.0) / x;
    static POW_MINUS_2("pow") = |[x], [_e]| E::lit(1.0) / (x * x);
}

/// The kernel for a constant exponent, as PyTorch chooses it.
fn scalar_kernel(e: Scalar, dtype: DType) -> &'static MapKernel {
    match e.to_f64() {
        0.5 => &POW_HALF,
        2.0 => &POW_2,
        3.0 => &POW_3,
        -1.0 if dtype.is_floating() => &POW_MINUS_1,
        -2.0 if dtype.is_floating() => &POW_MINUS_2,
        _ => &POW_SCALAR,
    }
}

fn pow_scalar(x: &Tensor, e: Scalar) -> Result<Tensor> {
    let dtype = promoted(&[&x.into(), &e.into()]);
    if !dtype.is_floating() && e.to_i64() < 0 {
        return Err(Error::new(
            ErrorKind::Argument,
            "pow",
            "integers to negative integer powers are not allowed",
        )
        .hint("use a floating exponent, or convert with to_dtype()"));
    }
    let dtype = if dtype == DType::Bool { DType::I64 } else { dtype };
    unary_as(scalar_kernel(e, dtype), x, &[e], dtype, Save::Input, move |ctx, g| {
        // Exactly 0 at exponent 0, also where 0 is raised to -1.
        if e.to_f64() == 0.0 {
            return g.try_zeros_like();
        }
        let lower = ctx.input(0)?.try_pow(e.to_f64() - 1.0)?;
        g.try_mul(&lower.try_mul(e.to_f64())?)
    })
}

fn pow(a: &Operand, b: &Operand) -> Result<Tensor> {
    let dtype = match promoted(&[a, b]) {
        DType::Bool => DType::I64,
        other => other,
    };
    binary(
        &POW,
        a,
        b,
        dtype,
        dtype,
        |rec| {
            if rec.any() {
                rec.save_input(0);
                rec.save_input(1);
            }
            if rec.needs(1) {
                rec.save_output(0);
            }
        },
        |ctx, g| {
            let (x, e) = (ctx.input(0)?, ctx.input(1)?);
            let gx = match ctx.needs(0) {
                true => {
                    let d = x.try_pow(e.try_sub(1.0)?)?.try_mul(&e)?;
                    Some(g.try_mul(&d)?.try_masked_fill(&e.try_eq(0.0)?, 0.0)?)
                }
                false => None,
            };
            let ge = match ctx.needs(1) {
                true => {
                    // 0^e is flat in e >= 0, though its logarithm is not finite.
                    let flat = x.try_eq(0.0)?.try_logical_and(&e.try_ge(0.0)?)?;
                    let log = x.try_masked_fill(&flat, 1.0)?.try_log()?;
                    Some(g.try_mul(&ctx.output(0)?.try_mul(&log)?)?.try_masked_fill(&flat, 0.0)?)
                }
                false => None,
            };
            Ok([gx, ge])
        },
    )
}

faces! {
    /// `self` to the power of a number or a tensor, broadcast and promoted. Integers with an integer exponent give
    /// integers: a negative number as exponent is refused, one in a tensor gives 0 (but for the bases 1 and -1).
    /// `0^0` is 1.
    ///
    /// The gradient of `x^0` is 0, also at `x = 0`; that of `0^e` with respect to `e >= 0` is 0.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    /// assert_eq!(x.pow(2).to_vec::<f32>(), [1.0, 4.0, 9.0]);
    /// ```
    pub fn pow | try_pow(&self, exponent: impl Into<Operand>) -> Tensor {
        match exponent.into() {
            Operand::Scalar(e) => pow_scalar(self, e),
            tensor => pow(&self.into(), &tensor),
        }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("pow", || {
        let mut all = binary_samples(Domain::Positive, Domain::Any, |a, b| a.try_pow(b), f64::powf);
        for (e, domain) in [
            (0.0, Domain::Any),
            (1.0, Domain::Any),
            (2.0, Domain::Any),
            (3.0, Domain::Any),
            (0.5, Domain::Positive),
            (-1.0, Domain::AwayFromZero),
            (-2.0, Domain::AwayFromZero),
            (2.5, Domain::Positive),
        ] {
            all.extend(unary_samples(domain, move |x| x.try_pow(e), move |x| x.powf(e)));
        }
        all.extend(
            unary_samples(Domain::Any, |x| x.try_pow(3), |x| x.powi(3)).into_iter().map(Sample::numbers),
        );
        all
    })
    .refusal("an integer to a negative number", ErrorKind::Argument, || Tensor::try_full([2], 3)?.try_pow(-1))
}
