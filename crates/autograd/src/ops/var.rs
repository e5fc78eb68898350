//! Variance and standard deviation.

use stridegrad_core::{IntoDims, Result, exec, wrap_dims};

use super::elementwise::fused;
use super::mean::{OVER, count, want_float};
use super::sum::{SUM, spread};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::{Ctx, Recorder};

stridegrad_cpu::map_kernel! {
    static SQUARED_DISTANCE("var") = |[x, mean], []| (x - mean) * (x - mean);
    static ROOT_OVER("std") = |[x], [n]| (x / n).sqrt();
    static VAR_GRAD("var_backward") = |[g, x, mean], []| g * (x - mean);
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    Var,
    Std,
}

/// The mean squared distance from the mean, over `n - correction`; in two passes, so that nothing cancels.
fn var(which: Spread, x: &Tensor, dims: &[bool], correction: i64, keepdim: bool) -> Result<Tensor> {
    let op = if which == Spread::Var { "var" } else { "std" };
    want_float(op, x)?;
    let mut rec = Recorder::new(op, &[x]);
    rec.save_input(0);
    if which == Spread::Std {
        rec.save_output(0);
    }
    let n = count(x, dims) as f64;
    let freedom = (n - correction as f64).max(0.0);
    let wide = x.dtype().compute_float();
    let sum = exec::reduce(&SUM, wide, wide, dims, true, x.array())?;
    let mean = exec::map(&OVER, wide, &[n.into()], wide, &[&sum])?;
    rec.save_extra(&mean);
    let squares = exec::map(&SQUARED_DISTANCE, wide, &[], wide, &[x.array(), &mean])?;
    let total = exec::reduce(&SUM, wide, wide, dims, keepdim, &squares)?;
    let last = if which == Spread::Var { &OVER } else { &ROOT_OVER };
    let out = exec::map(last, wide, &[freedom.into()], x.dtype(), &[&total])?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| {
        let g = match which {
            Spread::Var => g.clone(),
            // d sqrt(v) = dv / (2 sqrt(v)), and 0 where everything is equal.
            Spread::Std => {
                let s = ctx.output(0)?;
                let flat = s.try_eq(0.0)?;
                // 1 in its place, so that no division by 0 hides under the mask and shows in the second derivative.
                let s = s.try_masked_fill(&flat, 1.0)?;
                g.try_div(&s.try_mul(2.0)?)?.try_masked_fill(&flat, 0.0)?
            }
        };
        Ok(vec![Some(var_grad(ctx, &spread(&g, &mask, keepdim)?.try_mul(2.0 / freedom)?, &mask)?)])
    })
}

/// `g (x - mean)`, for `g` with size 1 where the reduction was.
fn var_grad(ctx: &Ctx<'_>, g: &Tensor, dims: &[bool]) -> Result<Tensor> {
    let (x, mean) = (ctx.input(0)?, ctx.extra(0)?);
    fused(ctx, &VAR_GRAD, &[], &[g, &x, &mean], || g.try_mul(&x.try_sub(super::mean::mean(&x, dims, true)?)?))
}

faces! {
    /// The variance of all elements over `numel - correction`: 1 for the unbiased estimate (PyTorch's default), 0 for
    /// the population's. NaN where that is no positive number. Integers are refused.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0], [2]);
    /// assert_eq!((x.var(1).item::<f32>(), x.var(0).item::<f32>()), (2.0, 1.0));
    /// ```
    pub fn var | try_var(&self, correction: i64) -> Tensor {
        var(Spread::Var, self, &vec![true; self.dim()], correction, false)
    }

    /// The variance over `dims`, which are kept with size 1 if `keepdim`; see [`Tensor::var`].
    pub fn var_dims | try_var_dims(&self, dims: impl IntoDims, correction: i64, keepdim: bool) -> Tensor {
        var(Spread::Var, self, &wrap_dims("var", &dims.into_dims(), self.dim())?, correction, keepdim)
    }

    /// The standard deviation of all elements: the root of [`Tensor::var`]. Its gradient is 0 where all are equal.
    pub fn std | try_std(&self, correction: i64) -> Tensor {
        var(Spread::Std, self, &vec![true; self.dim()], correction, false)
    }

    /// The standard deviation over `dims`, which are kept with size 1 if `keepdim`; see [`Tensor::std`].
    pub fn std_dims | try_std_dims(&self, dims: impl IntoDims, correction: i64, keepdim: bool) -> Tensor {
        var(Spread::Std, self, &wrap_dims("std", &dims.into_dims(), self.dim())?, correction, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    fn reference(v: &[f64], correction: f64) -> f64 {
        // From the sums alone, without the mean.
        let n = v.len() as f64;
        let (s, q) = v.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        (q - s * s / n) / (n - correction)
    }
    OpSpec::new("var", || {
        let mut all =
            reduction_samples(Domain::Any, |x, d, k| x.try_var_dims(d, 1, k), |v| reference(v, 1.0));
        all.extend(reduction_samples(Domain::Any, |x, d, k| x.try_var_dims(d, 0, k), |v| reference(v, 0.0)));
        all.extend(reduction_samples(
            Domain::Distinct,
            |x, d, k| x.try_std_dims(d, 1, k),
            |v| reference(v, 1.0).sqrt(),
        ));
        for sizes in [&[2, 3, 4][..], &[7]] {
            all.push(Sample::new(
                format!("std of all of {sizes:?}"),
                vec![Input::new(sizes, Domain::Distinct)],
                |t| t[0].try_std(1),
                |r| Ref::new(&[], vec![reference(&r[0].data, 1.0).sqrt()]),
            ));
        }
        all
    })
    .refusal("integers", stridegrad_core::ErrorKind::DType, || Tensor::try_full([2], 1)?.try_var(1))
}
