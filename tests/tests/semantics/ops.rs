//! The ops of the step language, as calls of ours.

use stridegrad_autograd::{BackwardOptions, Tensor, grad};
use stridegrad_core::{MemoryFormat, Result};

use crate::language::Args;

/// The results of `op`, or its refusal; `None` for an op that this runner does not know.
pub fn run(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    let families = [views, copies, elementwise, reductions, in_place, gradients];
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
        "add_scalar" => x[0].try_add(a.scalar("s")),
        "mul_scalar" => x[0].try_mul(a.scalar("s")),
        "neg" => x[0].try_neg(),
        "exp" => x[0].try_exp(),
        "relu" => x[0].try_relu(),
        _ => return None,
    })
}

fn reductions(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    let keepdim = a.flag("keepdim", false);
    let dims = a.opt_ints("dims");
    one(match (op, dims) {
        ("sum", None) => x[0].try_sum(),
        ("sum", Some(dims)) => x[0].try_sum_dims(dims, keepdim),
        _ => return None,
    })
}

fn in_place(op: &str, x: &[Tensor], a: &Args) -> Option<Result<Vec<Tensor>>> {
    none(match op {
        "fill_" => x[0].try_fill_(a.scalar("value")),
        "copy_" => x[0].try_copy_(&x[1]),
        "add_" => x[0].try_add_(&x[1]),
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
