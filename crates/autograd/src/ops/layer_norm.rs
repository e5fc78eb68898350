//! Normalisation over the last dims.

use stridegrad_core::{Array, IntoDims, Layout, Result, bail, exec};

use super::mean::{OVER, count, want_float};
use super::sum::SUM;
use crate::Tensor;
use crate::create::sizes_arg;
use crate::faces::faces;
use crate::graph::{Ctx, Recorder};

const OP: &str = "layer_norm";

stridegrad_cpu::map_kernel! {
    static SQUARED_DEVIATION("layer_norm_var") = |[x, mean], []| (x - mean) * (x - mean);
    static INV_STD("layer_norm_inv_std") = |[s], [n, eps]| E::lit(1.0) / (s / n + eps).sqrt();
    static NORMAL("layer_norm") = |[x, mean, inv_std], []| (x - mean) * inv_std;
    static WEIGHTED("layer_norm") = |[x, mean, inv_std, w], []| (x - mean) * inv_std * w;
    static AFFINE("layer_norm") = |[x, mean, inv_std, w, b], []| (x - mean) * inv_std * w + b;
    static SHIFTED("layer_norm") = |[x, mean, inv_std, b], []| (x - mean) * inv_std + b;
    static GRAD("layer_norm_backward") = |[h, normal, inv_std, mean_h, slope], []| {
        (h - mean_h - normal * slope) * inv_std
    };
}

/// What backward knows.
struct Given {
    reduced: Vec<bool>,
    eps: f64,
    weight: bool,
    bias: bool,
}

impl Given {
    /// The gradients of input, weight and bias.
    fn gradients(&self, ctx: &Ctx<'_>, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let x = ctx.input(0)?;
        let n = count(&x, &self.reduced).max(1) as f64;
        let dims: Vec<i64> = (0..x.dim() as i64).filter(|&d| self.reduced[d as usize]).collect();
        let mean = |t: &Tensor| t.try_sum_dims(&dims, true)?.try_div(n);
        let (normal, inv_std) = match ctx.create_graph {
            // The statistics depend on the input: made anew, as part of the graph.
            true => {
                let deviation = x.try_sub(mean(&x)?)?;
                let inv_std = mean(&deviation.try_square()?)?.try_add(self.eps)?.try_rsqrt()?;
                (deviation.try_mul(&inv_std)?, inv_std)
            }
            false => {
                let (m, s) = (ctx.extra(0)?, ctx.extra(1)?);
                let wide = x.dtype().compute_float();
                let normal = exec::map(&NORMAL, wide, &[], wide, &[x.array(), m.array(), s.array()])?;
                (Tensor::from_array(normal), s)
            }
        };
        let gx = match ctx.needs(0) {
            true => {
                let h = if self.weight { g.try_mul(&ctx.input(1)?)? } else { g.clone() };
                let (mean_h, slope) = (mean(&h)?, mean(&h.try_mul(&normal)?)?);
                Some(match ctx.create_graph {
                    true => h.try_sub(mean_h)?.try_sub(normal.try_mul(slope)?)?.try_mul(&inv_std)?,
                    false => {
                        let ins = [&h, &normal, &inv_std, &mean_h, &slope].map(Tensor::array);
                        let layout = Layout::contiguous(x.sizes())?;
                        Tensor::from_array(exec::map_with_layout(
                            &GRAD,
                            x.dtype(),
                            &[],
                            x.dtype(),
                            layout,
                            &ins,
                        )?)
                    }
                })
            }
            false => None,
        };
        let mut grads = vec![gx.map_or(Ok(None), |g| ctx.reduce_to(0, g))?];
        if self.weight {
            let gw = ctx.needs(1).then(|| g.try_mul(&normal)).transpose()?;
            grads.push(gw.map_or(Ok(None), |g| ctx.reduce_to(1, g))?);
        }
        if self.bias {
            let i = grads.len();
            grads.push(if ctx.needs(i) { ctx.reduce_to(i, g.clone())? } else { None });
        }
        Ok(grads)
    }
}

fn layer_norm(
    x: &Tensor,
    sizes: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    want_float(OP, x)?;
    if sizes.is_empty() || !x.sizes().ends_with(sizes) {
        bail!(
            Shape,
            OP,
            "given normalized_shape={sizes:?}, expected input with shape [*, ..] ending in it, but got input of size {:?}",
            x.sizes()
        );
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        let Some(t) = t else { continue };
        want_float(OP, t)?;
        if t.sizes() != sizes {
            bail!(
                Shape,
                OP,
                "expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = {sizes:?}",
                t.sizes()
            );
        }
    }
    let inputs: Vec<&Tensor> = [Some(x), weight, bias].into_iter().flatten().collect();
    let mut rec = Recorder::new(OP, &inputs);
    rec.save_input(0);
    if weight.is_some() {
        rec.save_input(1);
    }
    let lead = x.dim() - sizes.len();
    let reduced: Vec<bool> = (0..x.dim()).map(|d| d >= lead).collect();
    let (n, wide, a) = (count(x, &reduced).max(1) as f64, x.dtype().compute_float(), x.array());
    let sum = exec::reduce(&SUM, wide, wide, &reduced, true, a)?;
    let mean = exec::map_donated(&OVER, wide, &[n.into()], wide, sum, &[])?;
    let squares = exec::map(&SQUARED_DEVIATION, wide, &[], wide, &[a, &mean])?;
    let squares = exec::reduce(&SUM, wide, wide, &reduced, true, &squares)?;
    let inv_std = exec::map_donated(&INV_STD, wide, &[n.into(), eps.into()], wide, squares, &[])?;
    let layout = Layout::contiguous(x.sizes())?;
    let (kernel, ins): (_, Vec<&Array>) = match (weight.map(Tensor::array), bias.map(Tensor::array)) {
        (Some(w), Some(b)) => (&AFFINE, vec![a, &mean, &inv_std, w, b]),
        (Some(w), None) => (&WEIGHTED, vec![a, &mean, &inv_std, w]),
        (None, Some(b)) => (&SHIFTED, vec![a, &mean, &inv_std, b]),
        (None, None) => (&NORMAL, vec![a, &mean, &inv_std]),
    };
    let out = exec::map_with_layout(kernel, wide, &[], x.dtype(), layout, &ins)?;
    rec.save_extra(&mean);
    rec.save_extra(&inv_std);
    let given = Given { reduced, eps, weight: weight.is_some(), bias: bias.is_some() };
    rec.finish(out, move |ctx, g| given.gradients(ctx, g))
}

faces! {
    /// `(self - mean) / sqrt(var + eps) * weight + bias` over the last dims, whose sizes are `normalized_shape`, with the
    /// biased variance. `weight` and `bias` have those sizes. The result is row-major.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 5.0, 9.0], [2, 2]);
    /// let y = x.layer_norm([2], None, None, 0.0);
    /// assert_eq!(y.to_vec::<f32>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn layer_norm | try_layer_norm(
        &self,
        normalized_shape: impl IntoDims,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64
    ) -> Tensor {
        layer_norm(self, &sizes_arg(OP, normalized_shape)?, weight, bias, eps)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    // Row by row.
    fn reference(r: &[Ref], over: usize, weight: bool, bias: bool) -> Ref {
        let x = &r[0];
        let n: usize = x.sizes[x.sizes.len() - over..].iter().product();
        let mut data = Vec::new();
        for row in x.data.chunks(n.max(1)) {
            let mean = row.iter().sum::<f64>() / n as f64;
            let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            data.extend(row.iter().enumerate().map(|(i, v)| {
                let y = (v - mean) / (var + 1e-5).sqrt();
                y * if weight { r[1].data[i] } else { 1.0 }
                    + if bias { r[1 + usize::from(weight)].data[i] } else { 0.0 }
            }));
        }
        Ref::new(&x.sizes, data)
    }
    OpSpec::new(OP, || {
        let mut all = Vec::new();
        let cases: [(&[usize], usize); 6] = [
            (&[2, 3, 4, 5], 1),
            (&[2, 3, 4], 2),
            (&[7], 1),
            (&[0, 3], 1),
            (&[2, 3, 4, 3], 3),
            (&[70, 130], 1),
        ];
        for (sizes, over) in cases {
            for (weight, bias) in [(true, true), (true, false), (false, true), (false, false)] {
                let last = &sizes[sizes.len() - over..];
                let mut inputs = vec![Input::new(sizes, Domain::Any)];
                inputs.extend(
                    (0..usize::from(weight) + usize::from(bias)).map(|_| Input::new(last, Domain::Any)),
                );
                let s = Sample::new(
                    format!("{sizes:?} over {over} weight {weight} bias {bias}"),
                    inputs,
                    move |t| {
                        let (w, b) = (weight.then(|| &t[1]), bias.then(|| &t[1 + usize::from(weight)]));
                        t[0].try_layer_norm(last, w, b, 1e-5)
                    },
                    move |r| reference(r, over, weight, bias),
                )
                .row_major()
                .tolerance(4.0);
                all.push(if sizes == [70, 130] { s.no_grad() } else { s });
            }
        }
        all
    })
    .refusal("other sizes", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_layer_norm([2], None, None, 1e-5)
    })
    .refusal("no dims", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_layer_norm((), None, None, 1e-5))
    .refusal("a weight of other sizes", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_layer_norm([3], Some(&Tensor::try_ones([2])?), None, 1e-5)
    })
    .refusal("integers", ErrorKind::DType, || {
        Tensor::try_full([2, 3], 1)?.try_layer_norm([3], None, None, 1e-5)
    })
}
