//! Convolution and pooling.

use super::{check_sizes, dst, guards, one_device, same_dtype, src};
use crate::array::Array;
use crate::backend::{Dst, Src};
use crate::kernel::{Conv2dParams, ConvPass, Pool2dParams, PoolPass};
use crate::{DType, Layout, Result, backend, bail};

/// The output size of one spatial dim, or `None` if the (dilated) window does not fit.
pub fn conv_output_size(
    size: usize,
    kernel: usize,
    stride: usize,
    padding: [usize; 2],
    dilation: usize,
) -> Option<usize> {
    let padded = size.checked_add(padding[0])?.checked_add(padding[1])?;
    let window = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    Some(padded.checked_sub(window)? / stride + 1)
}

/// Bounds what a kernel computes with along a dim, so that its arithmetic cannot overflow: the padded size is refused
/// if it is absurd, and a step that is never taken whole is cut down.
fn window_in_range(
    op: &'static str,
    size: usize,
    padding: [usize; 2],
    kernel: usize,
    stride: &mut usize,
    dilation: &mut usize,
) -> Result<()> {
    let padded = size.saturating_add(padding[0]).saturating_add(padding[1]);
    if padded > i32::MAX as usize {
        bail!(Overflow, op, "size {size} with padding {padding:?} is beyond 2^31 - 1");
    }
    *stride = (*stride).min(padded.max(1));
    if kernel == 1 {
        *dilation = 1;
    }
    Ok(())
}

/// A convolution pass with a result of the given fresh layout. Sizes: x (N, C, H, W), weight (K, C/groups, R, S),
/// y (N, K, P, Q), bias (K).
pub fn conv2d(pass: ConvPass, params: &Conv2dParams, layout: Layout, ins: &[&Array]) -> Result<Array> {
    let op = "conv2d";
    let device = one_device(op, ins)?;
    let dtype = same_dtype(op, ins)?;
    let result = Array::uninit(layout, dtype, device)?;
    let (x, w, y): (&[usize], &[usize], &[usize]) = match (pass, ins) {
        (ConvPass::Forward, [x, w] | [x, w, _]) => (x.sizes(), w.sizes(), layout.sizes()),
        (ConvPass::InputGrad, [y, w]) => (layout.sizes(), w.sizes(), y.sizes()),
        (ConvPass::WeightGrad, [y, x]) => (x.sizes(), layout.sizes(), y.sizes()),
        _ => bail!(Argument, op, "{} operands for {pass:?}", ins.len()),
    };
    let (&[xn, c, h, wd], &[k, cg, r, s], &[yn, yk, p, q]) = (x, w, y) else {
        bail!(Shape, op, "expected x, weight and y of rank 4, got {x:?}, {w:?} and {y:?}");
    };
    let g = params.groups;
    if g == 0 || params.stride.contains(&0) || params.dilation.contains(&0) {
        bail!(
            Argument,
            op,
            "stride {:?}, dilation {:?} and groups {g} must be positive",
            params.stride,
            params.dilation
        );
    }
    let out = |i: usize, size, kernel| {
        conv_output_size(size, kernel, params.stride[i], params.padding[i], params.dilation[i])
    };
    let fits = xn == yn
        && yk == k
        && cg.checked_mul(g) == Some(c)
        && k % g == 0
        && out(0, h, r) == Some(p)
        && out(1, wd, s) == Some(q);
    if !fits {
        bail!(Shape, op, "x {x:?}, weight {w:?} and y {y:?} do not fit {params:?}");
    }
    if let (ConvPass::Forward, [_, _, bias]) = (pass, ins) {
        check_sizes(op, "bias", bias.sizes(), &[k])?;
    }
    let mut params = *params;
    for (i, (size, kernel)) in [(h, r), (wd, s)].into_iter().enumerate() {
        let before_after = params.padding[i];
        window_in_range(op, size, before_after, kernel, &mut params.stride[i], &mut params.dilation[i])?;
    }
    if layout.numel() == 0 {
        return Ok(result);
    }
    let _guards = guards(op, ins, &[])?;
    let srcs: Vec<Src<'_>> = ins.iter().map(|a| src(a)).collect();
    backend::of(device)?.conv2d(pass, &params, dst(&result), &srcs)?;
    Ok(result)
}

/// A pooling pass with results of the given fresh layouts and dtypes.
pub fn pool2d(
    pass: PoolPass,
    params: &Pool2dParams,
    outs: &[(Layout, DType)],
    ins: &[&Array],
) -> Result<Vec<Array>> {
    let op = "pool2d";
    let device = one_device(op, ins)?;
    let results = outs.iter().map(|(l, d)| Array::uninit(*l, *d, device)).collect::<Result<Vec<_>>>()?;
    let arity = match pass {
        PoolPass::Max => (2, 1),
        PoolPass::MaxGrad => (1, 2),
        _ => (1, 1),
    };
    if (outs.len(), ins.len()) != arity
        || outs.iter().any(|(l, _)| l.rank() != 4)
        || ins.iter().any(|a| a.sizes().len() != 4)
    {
        bail!(Shape, op, "{pass:?} takes {} operand(s) and {} result(s) of rank 4", arity.1, arity.0);
    }
    let (x, y) = match pass {
        PoolPass::MaxGrad | PoolPass::AvgGrad | PoolPass::AdaptiveAvgGrad => {
            (outs[0].0.sizes(), ins[0].sizes())
        }
        _ => (ins[0].sizes(), outs[0].0.sizes()),
    };
    if x[..2] != y[..2]
        || outs.iter().skip(1).any(|(l, _)| l.sizes() != y)
        || ins.iter().skip(1).any(|a| a.sizes() != y)
    {
        bail!(Shape, op, "{pass:?}: sizes {x:?} and {y:?} do not fit together");
    }
    if params.stride.contains(&0)
        || params.kernel.contains(&0)
        || params.dilation.contains(&0)
        || params.divisor == Some(0)
    {
        bail!(
            Argument,
            op,
            "kernel {:?}, stride {:?} and dilation {:?} must be positive, the divisor not 0",
            params.kernel,
            params.stride,
            params.dilation
        );
    }
    let mut params = *params;
    if !matches!(pass, PoolPass::AdaptiveAvg | PoolPass::AdaptiveAvgGrad) {
        for i in 0..2 {
            let kernel = params.kernel[i];
            let padding = [params.padding[i]; 2];
            window_in_range(op, x[2 + i], padding, kernel, &mut params.stride[i], &mut params.dilation[i])?;
            // Ceil mode lets a window reach beyond the padding; nothing is there.
            let padded = x[2 + i] + 2 * padding[0];
            params.kernel[i] = kernel.min(padded / params.dilation[i] + 1);
        }
    }
    if results.iter().all(|r| r.layout().numel() == 0) {
        return Ok(results);
    }
    if pass == PoolPass::MaxGrad && ins[1].dtype() != DType::I64 {
        bail!(DType, op, "positions must be i64, got {}", ins[1].dtype());
    }
    let _guards = guards(op, ins, &[])?;
    let srcs: Vec<Src<'_>> = ins.iter().map(|a| src(a)).collect();
    let dsts: Vec<Dst<'_>> = results.iter().map(dst).collect();
    backend::of(device)?.pool2d(pass, &params, &dsts, &srcs)?;
    Ok(results)
}
