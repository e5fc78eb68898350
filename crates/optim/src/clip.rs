//! Keeping gradients small.

use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{DType, Result, bail};

const OP: &str = "clip_grad_norm";

/// Scales the gradients of `params` so that the norm of all of them together is at most `max_norm`, and returns the
/// norm they had (PyTorch's `clip_grad_norm_`).
///
/// The factor is `max_norm / (norm + 1e-6)` where that is below 1. Parameters without gradient are passed over. A
/// norm that is infinite or NaN makes the gradients 0 or NaN, as in PyTorch: look at the result, or call
/// [`try_clip_grad_norm`], which refuses it.
///
/// # Panics
/// If `max_norm` is negative or NaN.
#[track_caller]
pub fn clip_grad_norm(params: &[Tensor], max_norm: f64) -> f64 {
    match clip(params, max_norm, false) {
        Ok(norm) => norm,
        Err(e) => e.at(std::panic::Location::caller()).raise(),
    }
}

/// As [`clip_grad_norm`], but an infinite or NaN norm is an error, and the gradients stay as they are.
///
/// # Errors
/// `Argument` for such a norm or a negative `max_norm`.
pub fn try_clip_grad_norm(params: &[Tensor], max_norm: f64) -> Result<f64> {
    clip(params, max_norm, true)
}

fn clip(params: &[Tensor], max_norm: f64, finite: bool) -> Result<f64> {
    if max_norm.is_nan() || max_norm < 0.0 {
        bail!(Argument, OP, "invalid max_norm: {max_norm}");
    }
    let grads: Vec<Tensor> = params.iter().filter_map(Tensor::grad).collect();
    no_grad(|| {
        let norm = norm(&grads)?;
        if finite && !norm.is_finite() {
            bail!(Argument, OP, "the norm of the gradients is {norm}, so they cannot be scaled");
        }
        let factor = max_norm / (norm + 1e-6);
        // A NaN scales too, so that it shows.
        if factor < 1.0 || factor.is_nan() {
            for g in &grads {
                g.try_mul_(factor)?;
            }
        }
        Ok(norm)
    })
}

fn norm(grads: &[Tensor]) -> Result<f64> {
    let mut squares = 0.0;
    for g in grads {
        // In at least f32: the squares of halves overflow.
        let g = if g.dtype() == DType::F64 { g.detach() } else { g.detach().try_to_dtype(DType::F32)? };
        squares += g.try_mul(&g)?.try_sum()?.try_item_f64()?;
    }
    Ok(squares.sqrt())
}
