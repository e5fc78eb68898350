//! Softmax and its logarithm.

use stridegrad_core::{Layout, Result, exec, wrap_dim};

use super::amax::AMAX;
use super::elementwise::fused;
use super::mean::want_float;
use super::sum::SUM;
use crate::Tensor;
use crate::faces::faces;
use crate::graph::{Ctx, Recorder};

stridegrad_cpu::map_kernel! {
    static EXP_SHIFTED("softmax_exp") = |[x, m], []| (x - m).exp();
    static OVER_SUM("softmax") = |[t, s], []| t / s;
    static SOFTMAX_GRAD("softmax_backward") = |[g, y, s], []| y * (g - s);
    static PRODUCT("softmax_backward") = |[g, y], []| g * y;
    static LOG_OF_SUM("log_softmax_sum") = |[s], []| s.ln();
    static LOG_SOFTMAX("log_softmax") = |[x, m, log], []| x - m - log;
    static LOG_SOFTMAX_GRAD("log_softmax_backward") = |[g, y, s], []| g - y.exp() * s;
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Softmax,
    LogSoftmax,
}

/// Four passes: the largest value, exponentials relative to it, their sum, the result. A row of minus infinities, or
/// one with plus infinity, gives NaN.
fn softmax(form: Form, x: &Tensor, dim: i64) -> Result<Tensor> {
    let op = if form == Form::Softmax { "softmax" } else { "log_softmax" };
    want_float(op, x)?;
    let dim = wrap_dim(op, dim, x.dim())?;
    let mask: Vec<bool> = (0..x.dim()).map(|i| i == dim).collect();
    let mut rec = Recorder::new(op, &[x]);
    rec.save_output(0);
    // Half precision keeps its intermediate values in f32.
    let (dtype, wide) = (x.dtype(), x.dtype().compute_float());
    // PyTorch's result is row-major whatever the input's format.
    let layout = Layout::contiguous(x.sizes())?;
    let largest = exec::reduce(&AMAX, wide, wide, &mask, true, x.array())?;
    let terms = exec::map_with_layout(&EXP_SHIFTED, wide, &[], wide, layout, &[x.array(), &largest])?;
    let sum = exec::reduce(&SUM, wide, wide, &mask, true, &terms)?;
    let out = match form {
        Form::Softmax => exec::map_with_layout(&OVER_SUM, wide, &[], dtype, layout, &[&terms, &sum])?,
        Form::LogSoftmax => {
            let log = exec::map(&LOG_OF_SUM, wide, &[], wide, &[&sum])?;
            exec::map_with_layout(&LOG_SOFTMAX, wide, &[], dtype, layout, &[x.array(), &largest, &log])?
        }
    };
    rec.finish(out, move |ctx, g| {
        let y = ctx.output(0)?;
        Ok(vec![Some(match form {
            Form::Softmax => softmax_grad(ctx, g, &y, dim, &mask)?,
            Form::LogSoftmax => {
                let sum = sum_along(ctx, g, dim, &mask)?;
                fused(ctx, &LOG_SOFTMAX_GRAD, &[], &[g, &y, &sum], || g.try_sub(y.try_exp()?.try_mul(&sum)?))?
            }
        })])
    })
}

/// `y (g - sum(g y))`
fn softmax_grad(ctx: &Ctx<'_>, g: &Tensor, y: &Tensor, dim: usize, mask: &[bool]) -> Result<Tensor> {
    if ctx.create_graph {
        let sum = sum_along(ctx, &g.try_mul(y)?, dim, mask)?;
        return y.try_mul(g.try_sub(&sum)?);
    }
    let wide = g.dtype().compute_float();
    let products = exec::map(&PRODUCT, wide, &[], wide, &[g.array(), y.array()])?;
    let sum = exec::reduce(&SUM, wide, wide, mask, true, &products)?;
    let out = exec::map(&SOFTMAX_GRAD, wide, &[], g.dtype(), &[g.array(), y.array(), &sum])?;
    Ok(Tensor::from_array(out))
}

/// The sum along `dim`, kept with size 1; in `f32` for half precision unless it will be differentiated.
fn sum_along(ctx: &Ctx<'_>, x: &Tensor, dim: usize, mask: &[bool]) -> Result<Tensor> {
    if x.dim() == 0 {
        return Ok(x.clone());
    }
    if ctx.create_graph {
        return x.try_sum_dims(dim, true);
    }
    let wide = x.dtype().compute_float();
    Ok(Tensor::from_array(exec::reduce(&SUM, wide, wide, mask, true, x.array())?))
}

faces! {
    /// `e^self / sum(e^self)` along `dim`, computed so that nothing overflows. The result is row-major. Integers are
    /// refused; saves its result for backward.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32, 1000.0], [2]);
    /// assert_eq!(x.softmax(0).to_vec::<f32>(), [0.5, 0.5]);
    /// ```
    pub fn softmax | try_softmax(&self, dim: i64) -> Tensor {
        softmax(Form::Softmax, self, dim)
    }

    /// `self - ln(sum(e^self))` along `dim`, the logarithm of [`Tensor::softmax`], accurate where that is tiny.
    pub fn log_softmax | try_log_softmax(&self, dim: i64) -> Tensor {
        softmax(Form::LogSoftmax, self, dim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let cases: [(&[usize], i64); 9] = [
        (&[2, 3, 4, 5], 1),
        (&[2, 3, 4, 5], -1),
        (&[3, 4], 0),
        (&[3, 4], 1),
        (&[7], 0),
        (&[], 0),
        (&[2, 0, 3], 2),
        (&[70, 300], 0),
        (&[300, 70], 1),
    ];
    // Of ratios, without the shift.
    fn reference(x: &Ref, dim: i64) -> Ref {
        if x.sizes.is_empty() {
            return Ref::new(&[], vec![1.0]);
        }
        let d = if dim < 0 { x.sizes.len() - 1 } else { dim as usize };
        Ref::from_fn(&x.sizes, |i| {
            let mut at = i.to_vec();
            let ratio = (0..x.sizes[d]).map(|k| {
                at[d] = k;
                (x.at(&at) - x.at(i)).exp()
            });
            1.0 / ratio.sum::<f64>()
        })
    }
    OpSpec::new("softmax", || {
        let mut all = Vec::new();
        for (sizes, dim) in cases {
            let input = || vec![Input::new(sizes, Domain::Any)];
            let pair = [
                Sample::new(
                    format!("softmax {sizes:?} dim {dim}"),
                    input(),
                    move |t| t[0].try_softmax(dim),
                    move |r| reference(&r[0], dim),
                )
                .row_major(),
                Sample::new(
                    format!("log_softmax {sizes:?} dim {dim}"),
                    input(),
                    move |t| t[0].try_log_softmax(dim),
                    move |r| {
                        let y = reference(&r[0], dim);
                        Ref::new(&y.sizes, y.data.iter().map(|v| v.ln()).collect())
                    },
                )
                .row_major(),
            ];
            let large = sizes.iter().product::<usize>() > 1000;
            all.extend(pair.into_iter().map(|s| if large { s.no_grad() } else { s }));
        }
        all
    })
    .refusal("integers", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], 1)?.try_softmax(0))
}
