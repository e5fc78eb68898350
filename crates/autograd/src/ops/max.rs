//! The largest and smallest values: of all elements, and along one dim with their positions.

use stridegrad_core::kernel::Extreme;
use stridegrad_core::{Result, exec, wrap_dim};

use super::amax::{AMAX, AMIN, extreme};
use super::gather::scatter_zeros;
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

fn along(op: &'static str, which: Extreme, x: &Tensor, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let dim = wrap_dim(op, dim, x.dim())?;
    if x.dim() == 0 {
        return along(op, which, &x.try_unsqueeze(0)?, 0, false);
    }
    let mut rec = Recorder::new(op, &[x]);
    let (index, value) = exec::arg_reduce(op, which, dim, keepdim, x.array())?;
    rec.save_extra(&index);
    let mut outs = rec.finish_many(
        vec![value, index],
        Box::new(move |ctx, grads| {
            let Some(g) = &grads[0] else { return Ok(vec![None]) };
            let (mut g, mut index) = (g.clone(), ctx.extra(0)?);
            if !keepdim {
                (g, index) = (g.try_unsqueeze(dim as i64)?, index.try_unsqueeze(dim as i64)?);
            }
            Ok(vec![Some(scatter_zeros(ctx.sizes(0), dim, &index, &g)?)])
        }),
    )?;
    let index = outs.remove(1);
    Ok((outs.remove(0), index))
}

faces! {
    /// The largest element, a 0-dim tensor; NaN if there is one. Refused for an empty tensor. Equal largest elements
    /// share the gradient evenly.
    pub fn max | try_max(&self) -> Tensor {
        extreme("max", &AMAX, self, &vec![true; self.dim()], false)
    }

    /// The smallest element, a 0-dim tensor; otherwise as [`Tensor::max`].
    pub fn min | try_min(&self) -> Tensor {
        extreme("min", &AMIN, self, &vec![true; self.dim()], false)
    }

    /// The largest values along `dim` and their positions (`i64`): of equal ones the first, which gets the gradient.
    /// A NaN is the largest.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 5.0, 4.0, 3.0, 2.0], [2, 3]);
    /// let (values, indices) = x.max_dim(1, false);
    /// assert_eq!((values.to_vec::<f32>(), indices.to_vec::<i64>()), (vec![5.0, 4.0], vec![1, 0]));
    /// ```
    pub fn max_dim | try_max_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        along("max_dim", Extreme::Max, self, dim, keepdim)
    }

    /// The smallest values along `dim` and their positions (`i64`); otherwise as [`Tensor::max_dim`].
    pub fn min_dim | try_min_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        along("min_dim", Extreme::Min, self, dim, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::DType;

    use crate::spec::*;
    OpSpec::new("max", || {
        let mut all = Vec::new();
        for sizes in [&[2, 3, 4, 5][..], &[3, 4], &[7], &[]] {
            let dims: Vec<usize> = (0..sizes.len()).collect();
            let every = dims.clone();
            let largest = |v: &[f64]| v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let smallest = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
            let input = || vec![Input::new(sizes, Domain::Distinct)];
            all.push(Sample::new(
                format!("max {sizes:?}"),
                input(),
                |t| t[0].try_max(),
                move |r| reduce_ref(&r[0], &every, false, &largest),
            ));
            all.push(Sample::new(
                format!("min {sizes:?}"),
                input(),
                |t| t[0].try_min(),
                move |r| reduce_ref(&r[0], &dims, false, &smallest),
            ));
            for (dim, keepdim) in (0..sizes.len()).flat_map(|d| [(d, false), (d, true)]) {
                let position = |v: &[f64], m: f64| v.iter().position(|&x| x == m).unwrap_or(0) as f64;
                all.push(Sample::many(
                    format!("max {sizes:?} dim {dim} keepdim {keepdim}"),
                    input(),
                    move |t| t[0].try_max_dim(dim as i64, keepdim).map(|(v, i)| vec![v, i]),
                    move |r| {
                        vec![
                            reduce_ref(&r[0], &[dim], keepdim, &largest),
                            reduce_ref(&r[0], &[dim], keepdim, &|v| position(v, largest(v))),
                        ]
                    },
                ));
                all.push(Sample::many(
                    format!("min {sizes:?} dim {dim} keepdim {keepdim}"),
                    input(),
                    move |t| t[0].try_min_dim(dim as i64, keepdim).map(|(v, i)| vec![v, i]),
                    move |r| {
                        vec![
                            reduce_ref(&r[0], &[dim], keepdim, &smallest),
                            reduce_ref(&r[0], &[dim], keepdim, &|v| position(v, smallest(v))),
                        ]
                    },
                ));
            }
        }
        let positions = |k, dtype| if k == 1 { DType::I64 } else { dtype };
        all.into_iter().map(|s| s.result_dtype(positions)).collect()
    })
    .refusal("an empty tensor", stridegrad_core::ErrorKind::Index, || Tensor::try_ones([0])?.try_max())
    .refusal("an empty dim", stridegrad_core::ErrorKind::Index, || {
        Ok(Tensor::try_ones([0, 3])?.try_max_dim(0, false)?.0)
    })
}
