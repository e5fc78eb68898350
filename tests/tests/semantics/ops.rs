//! The ops of the step language, as calls of ours.

use serde_json::Value;
use stridegrad::nn::{Conv2d, Forward};
use stridegrad_autograd::{
    AvgPool2dOptions, BackwardOptions, BatchNormOptions, Conv2dOptions, CrossEntropyOptions,
    MaxPool2dOptions, NllLossOptions, PadMode, Padding, Reduction, Tensor, grad,
};
use stridegrad_core::{Device, Error, ErrorKind, Generator, MemoryFormat, Result};

use crate::language::{Args, ints};

/// The results of `op`, or its refusal; `None` for an op that this runner does not know.
pub fn run(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    let families =
        [views, copies, elementwise, reductions, joining_and_indexing, images, losses, in_place, gradients];
    families.iter().find_map(|family| family(op, x, a))
}

fn one(r: Result<Tensor>) -> Option<Result<Vec<Tensor>>> {
    Some(r.map(|t| vec![t]))
}

/// An op without results: it writes its first operand, or only has effects.
fn none<T>(r: Result<T>) -> Option<Result<Vec<Tensor>>> {
    Some(r.map(|_| Vec::new()))
}

fn views(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    one(match op {
        "view" => x[0].try_view(a.ints("shape")),
        "reshape" => x[0].try_reshape(a.ints("shape")),
        "flatten" => x[0].try_flatten(a.int("start", 0), a.int("end", -1)),
        "ravel" => x[0].try_ravel(),
        "permute" => x[0].try_permute(a.ints("dims")),
        "transpose" => x[0].try_transpose(a.int("a", 0), a.int("b", 0)),
        "t" => x[0].try_t(),
        "movedim" => x[0].try_movedim(a.ints("src"), a.ints("dst")),
        "expand" => x[0].try_expand(a.ints("shape")),
        "unsqueeze" => x[0].try_unsqueeze(a.int("dim", 0)),
        "squeeze" => x[0].try_squeeze_dims(a.ints("dim")),
        "slice" => x[0].try_slice(a.int("dim", 0), a.opt_int("start"), a.opt_int("end"), a.int("step", 1)),
        "select" => x[0].try_select(a.int("dim", 0), a.int("index", 0)),
        "narrow" => x[0].try_narrow(a.int("dim", 0), a.int("start", 0), a.int("length", 0)),
        "unfold" => x[0].try_unfold(a.int("dim", 0), a.int("size", 0), a.int("step", 0)),
        "diagonal" => x[0].try_diagonal(a.int("offset", 0), a.int("dim1", 0), a.int("dim2", 1)),
        "as_strided" => {
            let offset = a.opt_int("offset").map(|o| o as usize);
            x[0].try_as_strided(a.ints("size"), a.ints("stride"), offset)
        }
        "view_dtype" => x[0].try_view_dtype(a.dtype("to")),
        "detach" => Ok(x[0].detach()),
        "split" => return Some(x[0].try_split_sizes(a.ints("sizes"), a.int("dim", 0))),
        "chunk" => return Some(x[0].try_chunk(a.int("n", 0), a.int("dim", 0))),
        "unbind" => return Some(x[0].try_unbind(a.int("dim", 0))),
        _ => return None,
    })
}

fn copies(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    one(match op {
        "contiguous" => x[0].try_contiguous(),
        "contiguous_cl" => x[0].try_contiguous_in(MemoryFormat::ChannelsLast),
        "to_cl" => x[0].try_to_format(MemoryFormat::ChannelsLast),
        "clone" => x[0].try_copy(),
        "clone_contiguous" => x[0].try_copy_in_format(MemoryFormat::Contiguous),
        "zeros_like" => x[0].try_zeros_like(),
        "cast" => x[0].try_to_dtype(a.dtype("to")),
        _ => return None,
    })
}

fn elementwise(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    one(match op {
        "add" => x[0].try_add(&x[1]),
        "sub" => x[0].try_sub(&x[1]),
        "mul" => x[0].try_mul(&x[1]),
        "div" => x[0].try_div(&x[1]),
        "maximum" => x[0].try_maximum(&x[1]),
        "pow" => x[0].try_pow(&x[1]),
        "logical_and" => x[0].try_logical_and(&x[1]),
        "where" => x[0].try_where_(&x[1], &x[2]),
        "add_scalar" => x[0].try_add(a.scalar("s")),
        "mul_scalar" => x[0].try_mul(a.scalar("s")),
        "powf" => x[0].try_pow(a.scalar("p")),
        "clamp" => x[0].try_clamp(a.float("min", f64::NAN), a.float("max", f64::NAN)),
        "abs" => x[0].try_abs(),
        "neg" => x[0].try_neg(),
        "exp" => x[0].try_exp(),
        "log" => x[0].try_log(),
        "sqrt" => x[0].try_sqrt(),
        "square" => x[0].try_square(),
        "sign" => x[0].try_sign(),
        "floor" => x[0].try_floor(),
        "round" => x[0].try_round(),
        "sigmoid" => x[0].try_sigmoid(),
        "relu" => x[0].try_relu(),
        "elu" => x[0].try_elu(1.0),
        "leaky_relu" => x[0].try_leaky_relu(a.float("slope", f64::NAN)),
        "softplus" => x[0].try_softplus(),
        "logsigmoid" => x[0].try_logsigmoid(),
        "relu6" => x[0].try_relu6(),
        "hardtanh" => x[0].try_hardtanh(-1.0, 1.0),
        _ => return None,
    })
}

fn reductions(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    let keepdim = || a.flag("keepdim", false);
    let correction = || a.int("correction", 1);
    // `dims` absent: all of them.
    let dims = || a.opt_ints("dims");
    let all = || (0..x[0].dim() as i64).collect::<Vec<_>>();
    one(match op {
        "sum" => dims().map_or_else(|| x[0].try_sum(), |dims| x[0].try_sum_dims(dims, keepdim())),
        "mean" => dims().map_or_else(|| x[0].try_mean(), |dims| x[0].try_mean_dims(dims, keepdim())),
        "amax" => x[0].try_amax(dims().unwrap_or_else(all), keepdim()),
        "amin" => x[0].try_amin(dims().unwrap_or_else(all), keepdim()),
        "var" => x[0].try_var(correction()),
        "norm" => x[0].try_norm(2.0),
        "max_all" => x[0].try_max(),
        "max_dim" => {
            return Some(x[0].try_max_dim(a.int("dim", 0), keepdim()).map(|(v, i)| vec![v, i]));
        }
        "argmax" => x[0].try_argmax(a.opt_int("dim"), keepdim()),
        "softmax" => x[0].try_softmax(a.int("dim", 0)),
        "log_softmax" => x[0].try_log_softmax(a.int("dim", 0)),
        _ => return None,
    })
}

fn joining_and_indexing(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    one(match op {
        "cat" => Tensor::try_cat(x, a.int("dim", 0)),
        "stack" => Tensor::try_stack(x, a.int("dim", 0)),
        "index_select" => x[0].try_index_select(a.int("dim", 0), &x[1]),
        "repeat" => x[0].try_repeat(a.ints("reps")),
        "flip" => x[0].try_flip(a.ints("dims")),
        "roll" => x[0].try_roll(a.ints("shift"), a.ints("dim")),
        "pad" => {
            let pairs = a.get("pad").and_then(Value::as_array).into_iter().flatten();
            x[0].try_pad(pairs.flat_map(ints).collect::<Vec<_>>(), pad_mode(a))
        }
        _ => return None,
    })
}

fn losses(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    let reduction = || match a.text("reduction") {
        None | Some("mean") => Reduction::Mean,
        Some("sum") => Reduction::Sum,
        Some("none") => Reduction::None,
        Some(other) => panic!("unknown reduction {other}"),
    };
    one(match op {
        "cross_entropy" => {
            let mut options = CrossEntropyOptions::default();
            options.weight = x.get(2).cloned();
            options.reduction = reduction();
            options.label_smoothing = a.float("label_smoothing", options.label_smoothing);
            options.ignore_index = a.int("ignore_index", options.ignore_index);
            x[0].try_cross_entropy_with(&x[1], options)
        }
        "nll_loss" => {
            let mut options = NllLossOptions::default();
            options.weight = x.get(2).cloned();
            options.reduction = reduction();
            options.ignore_index = a.int("ignore_index", options.ignore_index);
            x[0].try_nll_loss_with(&x[1], options)
        }
        "mse_loss" => x[0].try_mse_loss(&x[1], reduction()),
        "dropout" => x[0].try_dropout(a.float("p", f64::NAN), a.flag("train", true), &Generator::new(1)),
        _ => return None,
    })
}

fn pad_mode(a: &Args) -> PadMode {
    match a.text("mode") {
        None | Some("zeros" | "constant") => PadMode::Constant(a.float("value", 0.0).into()),
        Some("reflect") => PadMode::Reflect,
        Some("replicate") => PadMode::Replicate,
        Some("circular") => PadMode::Circular,
        Some(other) => panic!("unknown mode {other}"),
    }
}

/// Numbers that our types cannot take, negative ones here, are refused before there is anything to call.
fn unsigned(what: &str, v: i64) -> Result<usize> {
    usize::try_from(v)
        .map_err(|_| Error::new(ErrorKind::Argument, "test", format!("{what} of {v} has no such type")))
}

fn pair(a: &Args, name: &str) -> Result<Option<[usize; 2]>> {
    let Some([h, w]) = a.opt_pair(name) else { return Ok(None) };
    Ok(Some([unsigned(name, h)?, unsigned(name, w)?]))
}

fn images(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    one(match op {
        "matmul" => x[0].try_matmul(&x[1]),
        "max_pool2d" => max_pool2d_options(a).and_then(|options| x[0].try_max_pool2d(options)),
        "max_pool2d_indices" => {
            let both = max_pool2d_options(a).and_then(|o| x[0].try_max_pool2d_with_indices(o));
            return Some(both.map(|(y, i)| vec![y, i]));
        }
        "avg_pool2d" => avg_pool2d_options(a).and_then(|options| x[0].try_avg_pool2d(options)),
        "adaptive_avg_pool2d" => {
            pair(a, "out").and_then(|out| x[0].try_adaptive_avg_pool2d(out.expect("out")))
        }
        "adaptive_max_pool2d" => {
            pair(a, "out").and_then(|out| x[0].try_adaptive_max_pool2d(out.expect("out")))
        }
        // The running statistics start from 0 and 1.
        "batch_norm_train" => {
            let channels = [x[0].sizes()[1]];
            let dtype = x[0].dtype();
            let running = |start: f64| Tensor::full_on(channels, start, dtype, Device::CPU);
            let (mean, var) = (running(0.0), running(1.0));
            let options = BatchNormOptions::training().momentum(a.float("momentum", 0.1));
            let y = x[0].try_batch_norm(Some(&mean), Some(&var), x.get(1), x.get(2), options);
            return Some(y.map(|y| vec![y, mean, var]));
        }
        "batch_norm_eval" => {
            let (mean, var) = (Some(&x[1]), Some(&x[2]));
            x[0].try_batch_norm(mean, var, x.get(3), x.get(4), BatchNormOptions::eval())
        }
        "conv2d_padded" => conv2d_options(a).map(|options| {
            let layer = Conv2d { weight: x[1].clone(), bias: None, options, padding_mode: pad_mode(a) };
            layer.forward(&x[0])
        }),
        "conv2d" => conv2d_options(a).and_then(|options| x[0].try_conv2d(&x[1], x.get(2), options)),
        _ => return None,
    })
}

fn max_pool2d_options(a: &Args) -> Result<MaxPool2dOptions> {
    let mut options = MaxPool2dOptions::new(pair(a, "k")?.expect("k"));
    options.stride = pair(a, "stride")?.unwrap_or(options.stride);
    options.padding = pair(a, "padding")?.unwrap_or(options.padding);
    options.dilation = pair(a, "dilation")?.unwrap_or(options.dilation);
    options.ceil_mode = a.flag("ceil", options.ceil_mode);
    Ok(options)
}

fn avg_pool2d_options(a: &Args) -> Result<AvgPool2dOptions> {
    let mut options = AvgPool2dOptions::new(pair(a, "k")?.expect("k"));
    options.stride = pair(a, "stride")?.unwrap_or(options.stride);
    options.padding = pair(a, "padding")?.unwrap_or(options.padding);
    options.ceil_mode = a.flag("ceil", options.ceil_mode);
    options.count_include_pad = a.flag("count_include_pad", options.count_include_pad);
    options.divisor_override = a.opt_int("divisor");
    Ok(options)
}

fn conv2d_options(a: &Args) -> Result<Conv2dOptions> {
    let mut options = Conv2dOptions::new();
    options.stride = pair(a, "stride")?.unwrap_or(options.stride);
    options.dilation = pair(a, "dilation")?.unwrap_or(options.dilation);
    options.groups = unsigned("groups", a.int("groups", 1))?;
    options.padding = match a.text("padding") {
        Some("same") => Padding::Same,
        Some("valid") => Padding::Valid,
        Some(other) => {
            let text = format!("padding of {other:?} has no such type");
            return Err(Error::new(ErrorKind::Argument, "test", text));
        }
        None => pair(a, "padding")?.map_or(options.padding, Padding::Explicit),
    };
    Ok(options)
}

fn in_place(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    none(match op {
        "fill_" => x[0].try_fill_(a.scalar("value")),
        "copy_" => x[0].try_copy_(&x[1]),
        "add_" => x[0].try_add_(&x[1]),
        "sub_" => x[0].try_sub_(&x[1]),
        "mul_" => x[0].try_mul_(&x[1]),
        "add_scalar_" => x[0].try_add_(a.scalar("s")),
        "mul_scalar_" => x[0].try_mul_(a.scalar("s")),
        _ => return None,
    })
}

fn gradients(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    match op {
        // Without a seed, ones.
        "backward" => {
            let seed = x.get(1).cloned().map_or_else(|| x[0].detach().try_ones_like(), Ok);
            none(seed.and_then(|seed| x[0].try_backward_with(Some(&seed), BackwardOptions::default())))
        }
        "grad" => {
            let options =
                BackwardOptions { create_graph: a.flag("create_graph", false), ..Default::default() };
            Some(x[0].detach().try_ones_like().and_then(|ones| {
                let all = grad(&[&x[0]], &[&x[1]], Some(&[&ones]), options)?;
                Ok(all.into_iter().flatten().collect())
            }))
        }
        _ => None,
    }
}
