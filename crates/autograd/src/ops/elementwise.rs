//! What elementwise ops share: promotion, running the kernel, recording.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{Array, DType, Device, Error, ErrorKind, Result, Scalar, exec, result_type};

use crate::graph::{Ctx, Recorder};
use crate::{Operand, Tensor};

/// What a unary op's gradient needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Save {
    Nothing,
    Input,
    Output,
}

/// The dtype of a float function's result: integers and bools give `f32`.
pub(crate) fn float_of(dtype: DType) -> DType {
    if dtype.is_floating() { dtype } else { DType::F32 }
}

/// A float function of one operand; integers are converted to `f32` first.
pub(crate) fn unary(
    kernel: &MapKernel,
    x: &Tensor,
    params: &[Scalar],
    save: Save,
    grad: impl Fn(&Ctx<'_>, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    unary_as(kernel, x, params, float_of(x.dtype()), save, grad)
}

/// A function of one operand that computes in, and results in, a given dtype.
pub(crate) fn unary_as(
    kernel: &MapKernel,
    x: &Tensor,
    params: &[Scalar],
    dtype: DType,
    save: Save,
    grad: impl Fn(&Ctx<'_>, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let mut rec = Recorder::new(kernel.name, &[x]);
    match save {
        Save::Nothing => {}
        Save::Input => rec.save_input(0),
        Save::Output => rec.save_output(0),
    }
    let out = exec::map(kernel, dtype, params, dtype, &[x.array()])?;
    rec.finish(out, move |ctx, g| Ok(vec![ctx.reduce_to(0, grad(ctx, g)?)?]))
}

/// A gradient in one pass over memory. Where it will be differentiated itself it is made of ops instead:
/// `composite`, the same formula. The first operand is the gradient, whose sizes and dtype the result has.
pub(crate) fn fused(
    ctx: &Ctx<'_>,
    kernel: &MapKernel,
    params: &[Scalar],
    ins: &[&Tensor],
    composite: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    if ctx.create_graph {
        return composite();
    }
    let dtype = ins[0].dtype();
    let arrays: Vec<&Array> = ins.iter().map(|t| t.array()).collect();
    Ok(Tensor::from_array(exec::map(kernel, dtype, params, dtype, &arrays)?))
}

/// A gradient that is linear in `g` and locally constant in the other operands (signs, masks, ties): its own
/// gradient is the same kernel on the next gradient, and nothing flows to the others.
pub(crate) fn linear(
    kernel: &'static MapKernel,
    params: &[Scalar],
    g: &Tensor,
    rest: &[&Tensor],
) -> Result<Tensor> {
    let mut rec = Recorder::new(kernel.name, &[g]);
    rest.iter().for_each(|t| rec.save_extra(t.array()));
    let arrays: Vec<&Array> = std::iter::once(&g).chain(rest).map(|t| t.array()).collect();
    let out = exec::map(kernel, g.dtype(), params, g.dtype(), &arrays)?;
    let (params, n) = (params.to_vec(), rest.len());
    rec.finish(out, move |ctx, gg| {
        let rest = (0..n).map(|k| ctx.extra(k)).collect::<Result<Vec<_>>>()?;
        let rest: Vec<&Tensor> = rest.iter().collect();
        Ok(vec![ctx.reduce_to(0, linear(kernel, &params, gg, &rest)?)?])
    })
}

/// A function whose gradient is zero wherever it has one: steps and roundings.
pub(crate) fn step(kernel: &MapKernel, x: &Tensor) -> Result<Tensor> {
    unary_as(kernel, x, &[], x.dtype(), Save::Nothing, |_, g| g.try_zeros_like())
}

/// A test of each element: a bool result, which carries no gradient.
pub(crate) fn predicate(kernel: &MapKernel, x: &Tensor) -> Result<Tensor> {
    Ok(Tensor::from_array(exec::map(kernel, x.dtype(), &[], DType::Bool, &[x.array()])?))
}

/// `1 - x`.
pub(crate) fn one_minus(x: &Tensor) -> Result<Tensor> {
    super::sub::sub(&1.0.into(), &x.into())
}

/// The error that refuses a bool operand.
pub(crate) fn no_bool(op: &'static str, dtype: DType, hint: &str) -> Result<()> {
    if dtype == DType::Bool {
        return Err(
            Error::new(ErrorKind::DType, op, format!("{op} of a bool tensor is not supported")).hint(hint)
        );
    }
    Ok(())
}

/// The device of the tensors among some operands (the CPU if there is none).
pub(crate) fn device_of(operands: &[&Operand]) -> Device {
    stridegrad_cpu::register();
    operands
        .iter()
        .find_map(|o| match o {
            Operand::Tensor(t) => Some(t.device()),
            Operand::Scalar(_) => None,
        })
        .unwrap_or(Device::CPU)
}

/// The promoted dtype of some operands.
pub(crate) fn promoted(operands: &[&Operand]) -> DType {
    let args: Vec<_> = operands.iter().map(|o| o.type_arg()).collect();
    result_type(&args)
}

/// A binary op in `compute` with a result of `out`; which operands each gradient needs is told by `save`.
pub(crate) fn binary(
    kernel: &MapKernel,
    a: &Operand,
    b: &Operand,
    compute: DType,
    out: DType,
    save: impl FnOnce(&mut Recorder),
    grad: impl Fn(&Ctx<'_>, &Tensor) -> Result<[Option<Tensor>; 2]> + Send + Sync + 'static,
) -> Result<Tensor> {
    let device = device_of(&[a, b]);
    let (a, b) = (a.resolve(compute, device)?, b.resolve(compute, device)?);
    let mut rec = Recorder::new(kernel.name, &[&a, &b]);
    save(&mut rec);
    let array = exec::map(kernel, compute, &[], out, &[a.array(), b.array()])?;
    rec.finish(array, move |ctx, g| {
        let [ga, gb] = grad(ctx, g)?;
        let fit = |i, g: Option<Tensor>| g.map_or(Ok(None), |g| ctx.reduce_to(i, g));
        Ok(vec![fit(0, ga)?, fit(1, gb)?])
    })
}

/// Refuses an in-place result that its destination's dtype cannot take (no float into an integer).
pub(crate) fn check_in_place_dtype(op: &'static str, result: DType, destination: DType) -> Result<()> {
    if result.can_cast(destination) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::DType,
        op,
        format!("result type {result} can't be cast to the desired output type {destination}"),
    )
    .hint("use the op that makes a new tensor"))
}

/// `maximum` or `minimum`; `share` is the first operand's part of the gradient.
pub(crate) fn extreme(
    kernel: &MapKernel,
    share: &'static MapKernel,
    a: &Operand,
    b: &Operand,
    dtype: DType,
) -> Result<Tensor> {
    let save = |rec: &mut Recorder| {
        rec.save_input(0);
        rec.save_input(1);
    };
    binary(kernel, a, b, dtype, dtype, save, move |ctx, g| {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        Ok([
            ctx.needs(0).then(|| linear(share, &[], g, &[&a, &b])).transpose()?,
            ctx.needs(1).then(|| linear(share, &[], g, &[&b, &a])).transpose()?,
        ])
    })
}

/// Refuses a zero among integer divisors, before anything is computed.
pub(crate) fn integer_divisor(op: &'static str, a: &Tensor, b: &Operand) -> Result<()> {
    if promoted(&[&a.into(), b]).is_floating() {
        return Ok(());
    }
    let zero = match b {
        Operand::Scalar(s) => s.to_i64() == 0,
        Operand::Tensor(t) => t.numel() > 0 && t.detach().try_eq(0)?.try_any()?.try_item::<bool>()?,
    };
    if zero {
        return Err(Error::new(ErrorKind::Argument, op, "division of an integer by zero")
            .hint("convert to a floating dtype, where it gives infinities and NaN"));
    }
    Ok(())
}

/// A remainder, whose gradient is 1 in the dividend and minus the (rounded) quotient in the divisor.
pub(crate) fn modulo(
    kernel: &MapKernel,
    a: &Tensor,
    b: &Operand,
    quotient: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    let a = Operand::from(a);
    let dtype = promoted(&[&a, b]);
    no_bool(kernel.name, dtype, "convert one with to_dtype()")?;
    let save = |rec: &mut Recorder| {
        if rec.needs(1) {
            rec.save_input(0);
            rec.save_input(1);
        }
    };
    binary(kernel, &a, b, dtype, dtype, save, move |ctx, g| {
        let gb = match ctx.needs(1) {
            true => {
                let rounded = quotient(&ctx.input(0)?.detach(), &ctx.input(1)?.detach())?;
                Some(g.try_mul(&rounded)?.try_neg()?)
            }
            false => None,
        };
        Ok([Some(g.clone()), gb])
    })
}
