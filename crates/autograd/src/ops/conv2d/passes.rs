//! The three products of a convolution as recorded ops, each differentiated by the other two.

use stridegrad_core::kernel::{Conv2dParams, ConvPass};
use stridegrad_core::{Array, Layout, MemoryFormat, Result, exec};

use crate::Tensor;
use crate::graph::Recorder;

/// Runs a pass into a fresh array of these sizes and format.
fn run(
    pass: ConvPass,
    params: &Conv2dParams,
    sizes: &[usize],
    format: MemoryFormat,
    ins: &[&Array],
) -> Result<Array> {
    let layout = Layout::contiguous(sizes)?.in_format(format)?;
    // A sum over nothing (no channels, or no images): zeros, or the bias alone.
    if layout.numel() > 0 && ins[..2].iter().any(|a| a.layout().is_empty()) {
        return match (pass, ins) {
            (ConvPass::Forward, [_, _, bias]) => {
                let image = bias.layout().unsqueeze(1)?.unsqueeze(2)?;
                let sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
                exec::copy_to(&bias.with_layout(image.expand(&sizes)?)?, layout, bias.dtype())
            }
            _ => Array::zeros(layout, ins[0].dtype(), ins[0].device()),
        };
    }
    exec::conv2d(pass, params, layout, ins)
}

fn four(t: &Tensor) -> [usize; 4] {
    t.sizes().try_into().unwrap_or_default()
}

/// `y` of sizes (N, K, P, Q) from `x` and `weight`.
pub(super) fn forward(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    params: Conv2dParams,
    sizes: [usize; 4],
    format: MemoryFormat,
) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = [Some(x), Some(weight), bias].into_iter().flatten().collect();
    let mut rec = Recorder::new("conv2d", &inputs);
    if rec.needs(0) {
        rec.save_input(1);
    }
    if rec.needs(1) {
        rec.save_input(0);
    }
    let arrays: Vec<&Array> = inputs.iter().map(|t| t.array()).collect();
    let out = run(ConvPass::Forward, &params, &sizes, format, &arrays)?;
    let (x_sizes, w_sizes) = (four(x), four(weight));
    rec.finish(out, move |ctx, g| {
        let mut grads = vec![None; ctx.wanted.len()];
        if ctx.needs(0) {
            grads[0] = Some(input_grad(g, &ctx.input(1)?, params, x_sizes, format)?);
        }
        if ctx.needs(1) {
            grads[1] = Some(weight_grad(g, &ctx.input(0)?, params, w_sizes, format)?);
        }
        if grads.len() > 2 && ctx.needs(2) {
            grads[2] = Some(g.try_sum_dims([0, 2, 3], false)?);
        }
        Ok(grads)
    })
}

/// The gradient of `x`, of sizes (N, C, H, W), from that of `y` and `weight`.
pub(crate) fn input_grad(
    g: &Tensor,
    weight: &Tensor,
    params: Conv2dParams,
    sizes: [usize; 4],
    format: MemoryFormat,
) -> Result<Tensor> {
    let mut rec = Recorder::new("conv2d_input_grad", &[g, weight]);
    if rec.needs(0) {
        rec.save_input(1);
    }
    if rec.needs(1) {
        rec.save_input(0);
    }
    let out = run(ConvPass::InputGrad, &params, &sizes, format, &[g.array(), weight.array()])?;
    let (g_sizes, w_sizes) = (four(g), four(weight));
    rec.finish(out, move |ctx, gx| {
        let mut grads = vec![None, None];
        if ctx.needs(0) {
            grads[0] = Some(forward(gx, &ctx.input(1)?, None, params, g_sizes, format)?);
        }
        if ctx.needs(1) {
            grads[1] = Some(weight_grad(&ctx.input(0)?, gx, params, w_sizes, format)?);
        }
        Ok(grads)
    })
}

/// The gradient of `weight`, of sizes (K, C / groups, R, S), from that of `y` and `x`.
fn weight_grad(
    g: &Tensor,
    x: &Tensor,
    params: Conv2dParams,
    sizes: [usize; 4],
    format: MemoryFormat,
) -> Result<Tensor> {
    let mut rec = Recorder::new("conv2d_weight_grad", &[g, x]);
    if rec.needs(0) {
        rec.save_input(1);
    }
    if rec.needs(1) {
        rec.save_input(0);
    }
    let out = run(ConvPass::WeightGrad, &params, &sizes, format, &[g.array(), x.array()])?;
    let (g_sizes, x_sizes) = (four(g), four(x));
    rec.finish(out, move |ctx, gw| {
        let mut grads = vec![None, None];
        if ctx.needs(0) {
            grads[0] = Some(forward(&ctx.input(1)?, gw, None, params, g_sizes, format)?);
        }
        if ctx.needs(1) {
            grads[1] = Some(input_grad(&ctx.input(0)?, gw, params, x_sizes, format)?);
        }
        Ok(grads)
    })
}
