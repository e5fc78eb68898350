//! The mean over dims.

use stridegrad_core::{Error, ErrorKind, IntoDims, Result, exec, wrap_dims};

use super::sum::{SUM, spread};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::map_kernel! {
    /// A sum over the count.
    pub(crate) static OVER("mean") = |[x], [n]| x / n;
}

/// How many elements a reduction over these dims combines.
pub(crate) fn count(x: &Tensor, dims: &[bool]) -> usize {
    x.sizes().iter().zip(dims).filter(|(_, d)| **d).map(|(&n, _)| n).product()
}

/// Refuses integers and bools, which have no mean and the like.
pub(crate) fn want_float(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dtype().is_floating() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, op, format!("expected a floating-point tensor, but got {}", x.dtype()))
        .hint("convert it with to_dtype()"))
}

pub(crate) fn mean(x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    want_float("mean", x)?;
    let rec = Recorder::new("mean", &[x]);
    let n = count(x, dims) as f64;
    // A half-precision sum may overflow where the mean does not.
    let wide = x.dtype().compute_float();
    let sum = exec::reduce(&SUM, wide, wide, dims, keepdim, x.array())?;
    let out = exec::map(&OVER, wide, &[n.into()], x.dtype(), &[&sum])?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| {
        Ok(vec![Some(spread(&g.try_div(n)?, &mask, keepdim)?.try_expand(ctx.sizes(0))?)])
    })
}

faces! {
    /// The mean of all elements, a 0-dim tensor. An empty tensor gives NaN; integers are refused.
    pub fn mean | try_mean(&self) -> Tensor {
        mean(self, &vec![true; self.dim()], false)
    }

    /// The mean over `dims` (negative ones count from the end), which are kept with size 1 if `keepdim`. An empty list
    /// reduces nothing.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(6.0).view([2, 3]);
    /// assert_eq!(x.mean_dims(0, false).to_vec::<f32>(), [1.5, 2.5, 3.5]);
    /// ```
    pub fn mean_dims | try_mean_dims(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        mean(self, &wrap_dims("mean", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("mean", || {
        reduction_samples(
            Domain::Any,
            |x, dims, keepdim| x.try_mean_dims(dims, keepdim),
            |v| v.iter().sum::<f64>() / v.len() as f64,
        )
    })
    .refusal("integers", ErrorKind::DType, || Tensor::try_full([2], 1)?.try_mean())
    .refusal("a dim out of range", ErrorKind::Dim, || Tensor::try_ones([2])?.try_mean_dims(1, false))
}
