//! Products, convolutions, pooling, normalisation and losses.

use stridegrad::{
    AvgPool2dOptions, BatchNormOptions, Conv2dOptions, CrossEntropyOptions, MaxPool2dOptions, NllLossOptions,
    Tensor,
};

use super::Problem;
use super::args::Args;
use super::call::{Outputs, one, operand};

/// A layer's op.
pub(super) fn call(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let x = || operand(xs, 0);
    let w = || operand(xs, 1);
    let bias = || if args.flag("bias")? { operand(xs, 2).map(Some) } else { Ok(None) };
    let eps = || args.float_or("eps", 1e-5);
    Ok(one(match op {
        "matmul" => x()?.try_matmul(w()?)?,
        "linear" => x()?.try_linear(w()?, xs.get(2))?,
        "gemm" => gemm(args, x()?, w()?, xs.get(2))?,
        "conv2d" => x()?.try_conv2d(w()?, bias()?, conv_options::<2>(args)?)?,
        "conv1d" => x()?.try_conv1d(w()?, bias()?, conv_options::<1>(args)?)?,
        "conv_transpose2d" => {
            let more = args.each::<2>("output_padding", 0)?;
            x()?.try_conv_transpose2d(w()?, xs.get(2), more, conv_options::<2>(args)?)?
        }
        "conv_transpose1d" => {
            let [more] = args.each::<1>("output_padding", 0)?;
            x()?.try_conv_transpose1d(w()?, xs.get(2), more, conv_options::<1>(args)?)?
        }
        "max_pool1d" => {
            let options = max_options::<1>(args)?;
            x()?.try_unsqueeze(-2)?.try_max_pool2d(options)?.try_squeeze_dims(-2)?
        }
        "max_pool2d" => x()?.try_max_pool2d(max_options::<2>(args)?)?,
        "avg_pool1d" => {
            let options = avg_options::<1>(args)?;
            x()?.try_unsqueeze(-2)?.try_avg_pool2d(options)?.try_squeeze_dims(-2)?
        }
        "avg_pool2d" => x()?.try_avg_pool2d(avg_options::<2>(args)?)?,
        "adaptive_avg_pool2d" => x()?.try_adaptive_avg_pool2d(args.each::<2>("out", 1)?)?,
        "adaptive_max_pool2d" => x()?.try_adaptive_max_pool2d(args.each::<2>("out", 1)?)?,
        "batch_norm_train" => {
            let options = BatchNormOptions::training().eps(eps()?);
            x()?.try_batch_norm(None, None, xs.get(1), xs.get(2), options)?
        }
        "batch_norm_eval" => {
            let options = BatchNormOptions::eval().eps(eps()?);
            x()?.try_batch_norm(xs.get(1), xs.get(2), xs.get(3), xs.get(4), options)?
        }
        "group_norm" => x()?.try_group_norm(args.count("groups")?, xs.get(1), xs.get(2), eps()?)?,
        "instance_norm" => x()?.try_instance_norm(xs.get(1), xs.get(2), eps()?)?,
        "rms_norm" => {
            let lead = x()?.dim().saturating_sub(args.count("dims")?);
            x()?.try_rms_norm(&x()?.sizes()[lead..], xs.get(1), eps()?)?
        }
        "upsample_nearest2d" => x()?.try_upsample_nearest2d(args.each::<2>("out", 1)?)?,
        "layer_norm" => {
            let lead = x()?.dim().saturating_sub(args.count("dims")?);
            x()?.try_layer_norm(&x()?.sizes()[lead..], xs.get(1), xs.get(2), eps()?)?
        }
        _ => return Err(Problem::Unknown),
    }))
}

/// Numbers for the spatial axes as (height, width): those of a sequence stand for the width.
fn plane<const N: usize>(counts: [usize; N], height: usize) -> [usize; 2] {
    [if N == 1 { height } else { counts[0] }, counts[N - 1]]
}

fn conv_options<const N: usize>(args: &Args) -> Result<Conv2dOptions, Problem> {
    Ok(Conv2dOptions::new()
        .stride(plane(args.each::<N>("stride", 1)?, 1))
        .padding(plane(args.each::<N>("padding", 0)?, 0))
        .dilation(plane(args.each::<N>("dilation", 1)?, 1))
        .groups(if args.has("groups") { args.count("groups")? } else { 1 }))
}

fn max_options<const N: usize>(args: &Args) -> Result<MaxPool2dOptions, Problem> {
    let k = plane(args.each::<N>("k", 1)?, 1);
    Ok(MaxPool2dOptions::new(k)
        .stride(if args.has("stride") { plane(args.each::<N>("stride", 1)?, 1) } else { k })
        .padding(plane(args.each::<N>("padding", 0)?, 0))
        .dilation(plane(args.each::<N>("dilation", 1)?, 1))
        .ceil_mode(args.flag("ceil")?))
}

fn avg_options<const N: usize>(args: &Args) -> Result<AvgPool2dOptions, Problem> {
    let k = plane(args.each::<N>("k", 1)?, 1);
    Ok(AvgPool2dOptions::new(k)
        .stride(if args.has("stride") { plane(args.each::<N>("stride", 1)?, 1) } else { k })
        .padding(plane(args.each::<N>("padding", 0)?, 0))
        .ceil_mode(args.flag("ceil")?)
        .count_include_pad(args.flag_or("count_include_pad", true)?))
}

/// `alpha A' B' + beta C`, where `C` may be missing.
fn gemm(args: &Args, a: &Tensor, b: &Tensor, c: Option<&Tensor>) -> Result<Tensor, Problem> {
    let turned = |t: &Tensor, name: &str| -> Result<Tensor, Problem> {
        Ok(if args.flag(name)? { t.try_transpose(0, 1)? } else { t.clone() })
    };
    let product = turned(a, "transA")?.try_matmul(&turned(b, "transB")?)?;
    let product = product.try_mul(args.float_or("alpha", 1.0)?)?;
    Ok(match c {
        Some(c) => product.try_add(c.try_mul(args.float_or("beta", 1.0)?)?)?,
        None => product,
    })
}

/// A loss.
pub(super) fn loss(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    let x = || operand(xs, 0);
    let target = || operand(xs, 1);
    let weight = || if args.flag("weight")? { operand(xs, 2).map(Some) } else { Ok(None) };
    Ok(one(match op {
        "cross_entropy" => {
            let mut options = CrossEntropyOptions::new()
                .reduction(args.reduction()?)
                .label_smoothing(args.float_or("label_smoothing", 0.0)?);
            if let Some(class) = args.maybe_int("ignore_index")? {
                options = options.ignore_index(class);
            }
            if let Some(w) = weight()? {
                options = options.weight(w);
            }
            x()?.try_cross_entropy_with(target()?, options)?
        }
        "nll_loss" => {
            let mut options = NllLossOptions::new().reduction(args.reduction()?);
            if let Some(class) = args.maybe_int("ignore_index")? {
                options = options.ignore_index(class);
            }
            if let Some(w) = weight()? {
                options = options.weight(w);
            }
            x()?.try_nll_loss_with(target()?, options)?
        }
        "mse_loss" => x()?.try_mse_loss(target()?, args.reduction()?)?,
        "l1_loss" => x()?.try_l1_loss(target()?, args.reduction()?)?,
        "smooth_l1_loss" => {
            x()?.try_smooth_l1_loss(target()?, args.float_or("beta", 1.0)?, args.reduction()?)?
        }
        "huber_loss" => x()?.try_huber_loss(target()?, args.float_or("delta", 1.0)?, args.reduction()?)?,
        "bce_with_logits" => x()?.try_bce_with_logits(target()?, args.reduction()?)?,
        _ => return Err(Problem::Unknown),
    }))
}
