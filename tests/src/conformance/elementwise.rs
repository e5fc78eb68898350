//! Elementwise ops and reductions.

use stridegrad::{DType, Scalar, Tensor};

use super::Problem;
use super::args::Args;
use super::call::{Outputs, one, operand};

/// An op on elements.
pub(super) fn call(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let x = || operand(xs, 0);
    let y = || operand(xs, 1);
    Ok(one(match op {
        "abs" => x()?.try_abs()?,
        "neg" => x()?.try_neg()?,
        "exp" => x()?.try_exp()?,
        "log" => x()?.try_log()?,
        "sqrt" => x()?.try_sqrt()?,
        "sin" => x()?.try_sin()?,
        "cos" => x()?.try_cos()?,
        "tan" => x()?.try_tan()?,
        "tanh" => x()?.try_tanh()?,
        "sigmoid" => x()?.try_sigmoid()?,
        "relu" => x()?.try_relu()?,
        "silu" => x()?.try_silu()?,
        "softplus" => x()?.try_softplus()?,
        "reciprocal" => x()?.try_reciprocal()?,
        "floor" => x()?.try_floor()?,
        "ceil" => x()?.try_ceil()?,
        "round" => x()?.try_round()?,
        "sign" => x()?.try_sign()?,
        "erf" => x()?.try_erf()?,
        "rsqrt" => x()?.try_rsqrt()?,
        "square" => x()?.try_square()?,
        "log1p" => x()?.try_log1p()?,
        "expm1" => x()?.try_expm1()?,
        "hardtanh" => x()?.try_hardtanh(-1.0, 1.0)?,
        "relu6" => x()?.try_relu6()?,
        "asin" => x()?.try_asin()?,
        "acos" => x()?.try_acos()?,
        "atan" => x()?.try_atan()?,
        "sinh" => x()?.try_sinh()?,
        "cosh" => x()?.try_cosh()?,
        "asinh" => x()?.try_asinh()?,
        "acosh" => x()?.try_acosh()?,
        "atanh" => x()?.try_atanh()?,
        "softsign" => x()?.try_softsign()?,
        "mish" => x()?.try_mish()?,
        "hardswish" => x()?.try_hardswish()?,
        "selu" => x()?.try_selu()?,
        "isposinf" => x()?.try_isposinf()?,
        "isneginf" => x()?.try_isneginf()?,
        "isnan" => x()?.try_isnan()?,
        "isinf" => x()?.try_isinf()?,
        "logical_not" => x()?.try_logical_not()?,
        "bitwise_not" => x()?.try_bitwise_not()?,
        "add" => x()?.try_add(y()?)?,
        "sub" => x()?.try_sub(y()?)?,
        "mul" => x()?.try_mul(y()?)?,
        "div" => match args.word("rounding_mode") {
            "" => x()?.try_div(y()?)?,
            "floor" => x()?.try_floor_divide(y()?)?,
            mode => return Err(Problem::Wrong(format!("unknown rounding mode {mode}"))),
        },
        "maximum" => x()?.try_maximum(y()?)?,
        "minimum" => x()?.try_minimum(y()?)?,
        "pow" => x()?.try_pow(y()?)?,
        "eq" => x()?.try_eq(y()?)?,
        "ne" => x()?.try_ne(y()?)?,
        "lt" => x()?.try_lt(y()?)?,
        "le" => x()?.try_le(y()?)?,
        "gt" => x()?.try_gt(y()?)?,
        "ge" => x()?.try_ge(y()?)?,
        "atan2" => x()?.try_atan2(y()?)?,
        "fmod" => x()?.try_fmod(y()?)?,
        "remainder" => x()?.try_remainder(y()?)?,
        "logical_and" => x()?.try_logical_and(y()?)?,
        "logical_or" => x()?.try_logical_or(y()?)?,
        "logical_xor" => x()?.try_logical_xor(y()?)?,
        "bitwise_and" => x()?.try_bitwise_and(y()?)?,
        "bitwise_or" => x()?.try_bitwise_or(y()?)?,
        "bitwise_xor" => x()?.try_bitwise_xor(y()?)?,
        "where" => x()?.try_where_(y()?, operand(xs, 2)?)?,
        "add_n" => fold(xs, |a, b| a.try_add(b))?,
        "mean_n" => fold(xs, |a, b| a.try_add(b))?.try_div(xs.len() as f64)?,
        "maximum_n" => fold(xs, |a, b| a.try_maximum(b))?,
        "minimum_n" => fold(xs, |a, b| a.try_minimum(b))?,
        "leaky_relu" => x()?.try_leaky_relu(args.float("slope")?)?,
        "elu" => x()?.try_elu(args.float_or("alpha", 1.0)?)?,
        "celu" => x()?.try_celu(args.float_or("alpha", 1.0)?)?,
        "threshold" => x()?.try_threshold(args.float("threshold")?, args.float("value")?)?,
        "hardshrink" => x()?.try_hardshrink(args.float_or("lambd", 0.5)?)?,
        "softshrink" => x()?.try_softshrink(args.float_or("lambd", 0.5)?)?,
        "gelu" => match args.word("approximate") {
            "tanh" => x()?.try_gelu_tanh()?,
            _ => x()?.try_gelu()?,
        },
        "powf" => x()?.try_pow(args.scalar("p")?)?,
        "clamp" => match (args.maybe_scalar("min")?, args.maybe_scalar("max")?) {
            (Some(min), Some(max)) => x()?.try_clamp(min, max)?,
            (Some(min), None) => x()?.try_clamp_min(min)?,
            (None, Some(max)) => x()?.try_clamp_max(max)?,
            (None, None) => x()?.try_clamp(None, None)?,
        },
        "add_scalar" => {
            let s = match args.word("kind") {
                "int" => Scalar::Int(args.float("s")? as i64),
                "bool" => Scalar::Bool(args.float("s")? != 0.0),
                _ => Scalar::Float(args.float("s")?),
            };
            x()?.try_add(s)?
        }
        "masked_fill" => x()?.try_masked_fill(y()?, args.scalar("value")?)?,
        "cast" => x()?.try_to_dtype(args.dtype("to")?)?,
        "view_dtype" => x()?.try_view_dtype(args.dtype("to")?)?,
        _ => return Err(Problem::Unknown),
    }))
}

/// Folds the operands from the left.
fn fold(
    xs: &[Tensor],
    f: impl Fn(&Tensor, &Tensor) -> stridegrad::Result<Tensor>,
) -> Result<Tensor, Problem> {
    let first = operand(xs, 0)?.clone();
    Ok(xs[1..].iter().try_fold(first, |a, b| f(&a, b))?)
}

/// The dims that a reduction is over: all where none are given.
fn dims(args: &Args, x: &Tensor) -> Result<Vec<i64>, Problem> {
    let all = || (0..x.dim() as i64).collect();
    match args.maybe_ints("dims")? {
        Some(list) if list.is_empty() => Ok(all()),
        Some(list) => Ok(list),
        None => Ok(args.maybe_ints("dim")?.unwrap_or_else(all)),
    }
}

/// A reduction, or a running one.
pub(super) fn reduce(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let Some(x) = xs.first() else { return Err(Problem::Unknown) };
    let keepdim = args.flag("keepdim")?;
    let pair = |(values, indices)| vec![values, indices];
    Ok(one(match op {
        "sum" => x.try_sum_dims(dims(args, x)?, keepdim)?,
        "mean" => x.try_mean_dims(dims(args, x)?, keepdim)?,
        "amax" => x.try_amax(dims(args, x)?, keepdim)?,
        "amin" => x.try_amin(dims(args, x)?, keepdim)?,
        "logsumexp" => x.try_logsumexp(dims(args, x)?, keepdim)?,
        "norm" => x.try_norm_dims(args.float_or("p", 2.0)?, dims(args, x)?, keepdim)?,
        "sum_square" => x.try_square()?.try_sum_dims(dims(args, x)?, keepdim)?,
        "log_sum" => x.try_sum_dims(dims(args, x)?, keepdim)?.try_log()?,
        "var" => x.try_var_dims(dims(args, x)?, args.int_or("correction", 1)?, keepdim)?,
        "std" => x.try_std_dims(dims(args, x)?, args.int_or("correction", 1)?, keepdim)?,
        "prod" => x.try_prod_dims(dims(args, x)?, keepdim)?,
        "argmax" => x.try_argmax(args.maybe_int("dim")?, keepdim)?,
        "argmin" => x.try_argmin(args.maybe_int("dim")?, keepdim)?,
        "max_dim" => return Ok(pair(x.try_max_dim(args.int("dim")?, keepdim)?)),
        "min_dim" => return Ok(pair(x.try_min_dim(args.int("dim")?, keepdim)?)),
        "sort" => return Ok(pair(x.try_sort(args.int_or("dim", -1)?, args.flag("descending")?)?)),
        "argsort" => x.try_argsort(args.int_or("dim", -1)?, args.flag("descending")?)?,
        "topk" => {
            let largest = args.flag_or("largest", true)?;
            return Ok(pair(x.try_topk(args.int("k")?, args.int_or("dim", -1)?, largest)?));
        }
        "cumprod" => x.try_cumprod(args.int("dim")?)?,
        "cumsum" => x.try_cumsum(args.int("dim")?)?,
        "softmax" => x.try_softmax(args.int("dim")?)?,
        "log_softmax" => x.try_log_softmax(args.int("dim")?)?,
        "nonzero" => nonzero(x)?,
        _ => return Err(Problem::Unknown),
    }))
}

/// The indices of the elements that are not zero, a row each.
fn nonzero(x: &Tensor) -> Result<Tensor, Problem> {
    let values: Vec<bool> = x.detach().try_to_dtype(DType::Bool)?.try_to_vec()?;
    let mut rows: Vec<i64> = Vec::new();
    for (flat, _) in values.iter().enumerate().filter(|(_, v)| **v) {
        let start = rows.len();
        let mut rest = flat;
        for &n in x.sizes().iter().rev() {
            rows.insert(start, (rest % n) as i64);
            rest /= n;
        }
    }
    let found = values.iter().filter(|v| **v).count();
    Ok(Tensor::try_from_slice(&rows, [found, x.dim()])?)
}
