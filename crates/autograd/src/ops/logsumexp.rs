//! The logarithm of a sum of exponentials.

use stridegrad_core::{IntoDims, Result, exec, wrap_dims};

use super::amax::AMAX;
use super::elementwise::{float_of, fused};
use super::sum::{SUM, spread};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::map_kernel! {
    // An infinite shift would make NaN of infinities.
    static FINITE("logsumexp_shift") = |[m], []| E::select(m.abs().eq(E::lit(f64::INFINITY)), E::lit(0.0), m);
    static EXP_SHIFTED("logsumexp_exp") = |[x, m], []| (x - m).exp();
    static LOG_SHIFTED("logsumexp") = |[s, m], []| s.ln() + m;
    static SOFTMAX_OF("logsumexp_backward") = |[g, x, y], []| g * (x - y).exp();
}

fn logsumexp(x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    let op = "logsumexp";
    let dtype = float_of(x.dtype());
    let x = if x.dtype() == dtype { x.clone() } else { x.try_to_dtype(dtype)? };
    let mut rec = Recorder::new(op, &[&x]);
    rec.save_input(0);
    rec.save_output(0);
    let wide = dtype.compute_float();
    let mut shift = exec::reduce(&AMAX, wide, wide, dims, true, x.array())?;
    shift = exec::map(&FINITE, wide, &[], wide, &[&shift])?;
    let terms = exec::map(&EXP_SHIFTED, wide, &[], wide, &[x.array(), &shift])?;
    let sum = exec::reduce(&SUM, wide, wide, dims, true, &terms)?;
    let out = Tensor::from_array(exec::map(&LOG_SHIFTED, wide, &[], dtype, &[&sum, &shift])?);
    let out = if keepdim { out } else { drop_dims(&out, dims)? };
    let mask = dims.to_vec();
    rec.finish(out.array().clone(), move |ctx, g| {
        let (g, x) = (spread(g, &mask, keepdim)?, ctx.input(0)?);
        let y = spread(&ctx.output(0)?, &mask, keepdim)?;
        Ok(vec![Some(fused(ctx, &SOFTMAX_OF, &[], &[&g, &x, &y], || g.try_mul(&x.try_sub(&y)?.try_exp()?))?)])
    })
}

/// Without the dims of a mask, which have size 1.
fn drop_dims(x: &Tensor, dims: &[bool]) -> Result<Tensor> {
    let named: Vec<i64> = (0..dims.len()).filter(|&i| dims[i]).map(|i| i as i64).collect();
    x.try_squeeze_dims(named)
}

faces! {
    /// `ln(sum(e^self))` over `dims`, which are kept with size 1 if `keepdim`, computed so that nothing overflows.
    /// Integers give `f32`. Over nothing, or over minus infinities alone, it is minus infinity.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1000.0f32, 1000.0], [2]);
    /// assert!((x.logsumexp(0, false).item::<f32>() - 1000.6931).abs() < 1e-3);
    /// ```
    pub fn logsumexp | try_logsumexp(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        logsumexp(self, &wrap_dims("logsumexp", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("logsumexp", || {
        reduction_samples(
            Domain::Any,
            |x, dims, keepdim| x.try_logsumexp(dims, keepdim),
            |v| v.iter().map(|x| x.exp()).sum::<f64>().ln(),
        )
    })
    .refusal("a dim out of range", stridegrad_core::ErrorKind::Dim, || {
        Tensor::try_ones([2])?.try_logsumexp(1, false)
    })
}
