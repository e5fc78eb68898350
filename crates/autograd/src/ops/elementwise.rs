//! What elementwise ops share: promotion, running the kernel, recording.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{DType, Device, Error, ErrorKind, Result, Scalar, exec, result_type};

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
