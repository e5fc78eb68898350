//! Ops that move elements: views, copies, joining, indexing, creation.

use stridegrad::{DType, Device, MemoryFormat, PadMode, Scalar, Tensor};

use super::args::Args;
use super::call::{Outputs, one, operand};
use super::{Problem, chain};

/// A view, a copy, a joined or a new tensor.
pub(super) fn call(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let x = || operand(xs, 0);
    Ok(one(match op {
        "clone" => x()?.try_copy()?,
        "contiguous" => x()?.try_contiguous()?,
        "contiguous_cl" => x()?.try_contiguous_in(MemoryFormat::ChannelsLast)?,
        "permute" => x()?.try_permute(args.ints("dims")?)?,
        "flip" => x()?.try_flip(args.ints("dims")?)?,
        "view" => x()?.try_view(args.ints("shape")?)?,
        "reshape" => x()?.try_reshape(args.ints("shape")?)?,
        "expand" => x()?.try_expand(args.ints("shape")?)?,
        "slice" => x()?.try_slice(
            args.int_or("dim", 0)?,
            args.maybe_int("start")?,
            args.maybe_int("end")?,
            args.int_or("step", 1)?,
        )?,
        "slice_multi" => slice_multi(x()?, args)?,
        "select" => x()?.try_select(args.int("dim")?, args.int("index")?)?,
        "narrow" => x()?.try_narrow(args.int("dim")?, args.int("start")?, args.int("length")?)?,
        "unfold" => x()?.try_unfold(args.int("dim")?, args.int("size")?, args.int("step")?)?,
        "diagonal" => {
            x()?.try_diagonal(args.int_or("offset", 0)?, args.int_or("dim1", 0)?, args.int_or("dim2", 1)?)?
        }
        "as_strided" => {
            chain::as_strided(x()?, args.ints("size")?, args.ints("stride")?, args.maybe_int("offset")?)?
        }
        "movedim" => x()?.try_movedim(args.ints("src")?, args.ints("dst")?)?,
        "unsqueeze" => match args.maybe_ints("dims")? {
            Some(dims) => {
                let mut t = x()?.clone();
                for d in dims {
                    t = t.try_unsqueeze(d)?;
                }
                t
            }
            None => x()?.try_unsqueeze(args.int("dim")?)?,
        },
        "squeeze" => match args.maybe_ints("dims")? {
            Some(dims) => x()?.try_squeeze_dims(dims)?,
            None => x()?.try_squeeze_dims(args.int("dim")?)?,
        },
        "squeeze_all" => x()?.try_squeeze()?,
        "flatten" => x()?.try_flatten(args.int_or("start", 0)?, args.int_or("end", -1)?)?,
        "repeat" => x()?.try_repeat(args.ints("reps")?)?,
        "roll" => x()?.try_roll(args.ints("shift")?, args.ints("dim")?)?,
        "cat" => Tensor::try_cat(xs, args.int_or("dim", 0)?)?,
        "stack" => Tensor::try_stack(xs, args.int_or("dim", 0)?)?,
        "chunk" => return Ok(x()?.try_chunk(args.int("n")?, args.int_or("dim", 0)?)?),
        "split" => return Ok(x()?.try_split_sizes(args.ints("sizes")?, args.int_or("dim", 0)?)?),
        "pad" => {
            let mode = match args.word("mode") {
                "constant" | "" => PadMode::Constant(args.maybe_scalar("value")?.unwrap_or(Scalar::Int(0))),
                "reflect" => PadMode::Reflect,
                "replicate" => PadMode::Replicate,
                "circular" => PadMode::Circular,
                other => return Err(Problem::Wrong(format!("unknown padding mode {other}"))),
            };
            x()?.try_pad(args.ints("pad")?, mode)?
        }
        "pixel_shuffle" => x()?.try_pixel_shuffle(args.int("factor")?)?,
        "pixel_unshuffle" => x()?.try_pixel_unshuffle(args.int("factor")?)?,
        "tril" => x()?.try_tril(args.int_or("k", 0)?)?,
        "triu" => x()?.try_triu(args.int_or("k", 0)?)?,
        "arange" => Tensor::try_arange_step(
            args.maybe_scalar("start")?.unwrap_or(Scalar::Int(0)),
            args.scalar("end")?,
            args.maybe_scalar("step")?.unwrap_or(Scalar::Int(1)),
        )?
        .try_to_dtype(args.dtype("dtype")?)?,
        "full" => {
            Tensor::try_full_on(args.ints("size")?, args.scalar("value")?, args.dtype("dtype")?, Device::CPU)?
        }
        "eye" => Tensor::try_eye(args.count("n")?, args.int_or("m", args.int("n")?)? as usize)?
            .try_to_dtype(args.dtype("dtype")?)?,
        _ => return Err(Problem::Unknown),
    }))
}

/// Slices of several dims, backwards where the step is negative.
fn slice_multi(x: &Tensor, args: &Args) -> Result<Tensor, Problem> {
    let (starts, ends) = (args.ints("starts")?, args.ints("ends")?);
    let axes = args.maybe_ints("axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = args.maybe_ints("steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&n| n != starts.len()) {
        return Err(Problem::Wrong("starts, ends, axes and steps of different lengths".into()));
    }
    let mut t = x.clone();
    for i in 0..starts.len() {
        let axis = if axes[i] < 0 { axes[i] + x.dim() as i64 } else { axes[i] };
        let n = usize::try_from(axis).ok().and_then(|a| x.sizes().get(a)).map_or(0, |&n| n as i64);
        let from_end = |b: i64| if b < 0 { b.saturating_add(n) } else { b };
        let (start, end, step) = (from_end(starts[i]), from_end(ends[i]), steps[i]);
        if step >= 0 {
            t = t.try_slice(axis, Some(start.clamp(0, n)), Some(end.clamp(0, n)), step)?;
            continue;
        }
        let (start, end) = (start.clamp(0, (n - 1).max(0)), end.clamp(-1, n - 1));
        let stride = step.saturating_neg();
        let count = if n == 0 || start <= end { 0 } else { (start - end - 1) / stride + 1 };
        t = match count {
            0 => t.try_narrow(axis, 0, 0)?,
            _ => {
                let lowest = start - stride * (count - 1);
                t.try_slice(axis, Some(lowest), Some(start + 1), stride)?.try_reversed(axis)?
            }
        };
    }
    Ok(t)
}

/// Selecting and scattering by index.
pub(super) fn index(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let x = || operand(xs, 0);
    let i = || operand(xs, 1);
    Ok(one(match op {
        "index_select" => x()?.try_index_select(args.int("dim")?, i()?)?,
        "gather" => x()?.try_gather(args.int("dim")?, i()?)?,
        "scatter_add" => x()?.try_scatter_add(args.int("dim")?, i()?, operand(xs, 2)?)?,
        "index" => x()?.try_index(&xs[1..].iter().collect::<Vec<_>>())?,
        "index_put" => {
            let (values, indices) = xs[1..].split_last().ok_or_else(|| "no values".to_owned())?;
            x()?.try_index_put(&indices.iter().collect::<Vec<_>>(), values, args.flag("accumulate")?)?
        }
        "scatter" => x()?.try_scatter(args.int("dim")?, i()?, operand(xs, 2)?)?,
        "embedding" => x()?.try_embedding(i()?)?,
        "onnx_gather" => onnx_gather(x()?, i()?, args.int_or("axis", 0)?)?,
        "one_hot" => x()?.try_one_hot(args.int("n")?)?,
        "onnx_one_hot" => onnx_one_hot(x()?, args)?,
        _ => return Err(Problem::Unknown),
    }))
}

/// The sub-tensors at indices of any rank, negative ones from the end.
fn onnx_gather(x: &Tensor, indices: &Tensor, axis: i64) -> Result<Tensor, Problem> {
    let axis = if axis < 0 { axis + x.dim() as i64 } else { axis };
    let at = usize::try_from(axis).ok().filter(|&a| a < x.dim());
    let Some(at) = at else { return Err(Problem::Wrong(format!("axis {axis} of sizes {:?}", x.sizes()))) };
    let indices = indices.try_to_dtype(DType::I64)?;
    let n = x.sizes()[at] as i64;
    let wrapped = indices.try_lt(0)?.try_where_(indices.try_add(n)?, &indices)?;
    let mut sizes = x.sizes()[..at].to_vec();
    sizes.extend(indices.sizes());
    sizes.extend(&x.sizes()[at + 1..]);
    Ok(x.try_index_select(axis, &wrapped.try_flatten(0, -1)?)?.try_view(sizes)?)
}

/// Rows of `off` with one `on`, along a new axis.
fn onnx_one_hot(indices: &Tensor, args: &Args) -> Result<Tensor, Problem> {
    let (depth, axis) = (args.int("depth")?, args.int_or("axis", -1)?);
    let indices = indices.try_to_dtype(DType::I64)?;
    let wrapped = indices.try_lt(0)?.try_where_(indices.try_add(depth)?, &indices)?;
    let classes = Tensor::try_arange(depth)?;
    let hot = wrapped.try_unsqueeze(-1)?.try_eq(&classes)?;
    let value = |name: &str| -> Result<Tensor, Problem> {
        Ok(Tensor::try_full_on((), args.scalar(name)?, args.dtype("dtype")?, Device::CPU)?)
    };
    Ok(hot.try_where_(value("on")?, value("off")?)?.try_movedim(-1, axis)?)
}
