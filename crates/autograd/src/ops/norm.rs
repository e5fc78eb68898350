//! Vector norms.

use stridegrad_core::{Error, ErrorKind, IntoDims, Result, exec, wrap_dims};

use super::mean::want_float;
use super::sum::{SUM, spread};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::map_kernel! {
    static SQUARE("norm") = |[x], []| x * x;
    static ROOT("norm") = |[x], []| x.sqrt();
}

fn norm(x: &Tensor, p: f64, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    want_float("norm", x)?;
    let named = || (0..dims.len()).filter(|&i| dims[i]).map(|i| i as i64).collect::<Vec<i64>>();
    match p {
        1.0 => x.try_abs()?.try_sum_dims(named(), keepdim),
        2.0 => euclidean(x, dims, keepdim),
        f64::INFINITY => x.try_abs()?.try_amax(named(), keepdim),
        _ => {
            Err(Error::new(ErrorKind::Unsupported, "norm", format!("the norm of order {p} is not supported"))
                .hint("orders are 1, 2 and infinity"))
        }
    }
}

fn euclidean(x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    let mut rec = Recorder::new("norm", &[x]);
    rec.save_input(0);
    rec.save_output(0);
    let wide = x.dtype().compute_float();
    let squares = exec::map(&SQUARE, wide, &[], wide, &[x.array()])?;
    let sum = exec::reduce(&SUM, wide, wide, dims, keepdim, &squares)?;
    let out = exec::map(&ROOT, wide, &[], x.dtype(), &[&sum])?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| {
        let y = ctx.output(0)?;
        let scale = g.try_div(&y)?.try_masked_fill(&y.try_eq(0.0)?, 0.0)?;
        Ok(vec![Some(ctx.input(0)?.try_mul(&spread(&scale, &mask, keepdim)?)?)])
    })
}

faces! {
    /// The norm of order `p` (1, 2 or infinity) of all elements as one vector, a 0-dim tensor. The gradient of the
    /// zero vector is 0. Integers are refused.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[3.0f32, 4.0], [2]).norm(2.0).item::<f32>(), 5.0);
    /// ```
    pub fn norm | try_norm(&self, p: f64) -> Tensor {
        norm(self, p, &vec![true; self.dim()], false)
    }

    /// The norm of order `p` over `dims`, which are kept with size 1 if `keepdim`; see [`Tensor::norm`].
    pub fn norm_dims | try_norm_dims(&self, p: f64, dims: impl IntoDims, keepdim: bool) -> Tensor {
        norm(self, p, &wrap_dims("norm", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("norm", || {
        let mut all = reduction_samples(
            Domain::AwayFromZero,
            |x, d, k| x.try_norm_dims(2.0, d, k),
            |v| v.iter().fold(0.0, |h: f64, &x| h.hypot(x)),
        );
        all.extend(reduction_samples(
            Domain::AwayFromZero,
            |x, d, k| x.try_norm_dims(1.0, d, k),
            |v| v.iter().map(|x| x.abs()).sum(),
        ));
        all
    })
    .refusal("another order", ErrorKind::Unsupported, || Tensor::try_ones([2])?.try_norm(3.0))
    .refusal("integers", ErrorKind::DType, || Tensor::try_full([2], 1)?.try_norm(2.0))
}
