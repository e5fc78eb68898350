//! The sum over dims.

use stridegrad_core::{DType, IntoDims, Result, exec, wrap_dims};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::reduce_kernel! {
    pub(crate) static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
}

/// Sums over the dims of a mask; integers and bools give `i64`.
pub(crate) fn sum(x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    let rec = Recorder::new("sum", &[x]);
    let dtype = if x.dtype().is_floating() { x.dtype() } else { DType::I64 };
    let out = exec::reduce(&SUM, dtype, dtype, dims, keepdim, x.array())?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| Ok(vec![Some(spread(g, &mask, keepdim)?.try_expand(ctx.sizes(0))?)]))
}

/// A reduction's gradient with its reduced dims back, of size 1.
pub(crate) fn spread(g: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    if keepdim {
        return Ok(g.clone());
    }
    let mut g = g.clone();
    for (i, _) in dims.iter().enumerate().filter(|(_, d)| **d) {
        g = g.try_unsqueeze(i as i64)?;
    }
    Ok(g)
}

faces! {
    /// The sum of all elements, a 0-dim tensor. Integers and bools give `i64`; an empty tensor gives 0.
    pub fn sum | try_sum(&self) -> Tensor {
        sum(self, &vec![true; self.dim()], false)
    }

    /// The sum over `dims` (negative ones count from the end), which are kept with size 1 if `keepdim`.
    ///
    /// An empty list of dims sums over nothing, as NumPy's `axis=()` does; PyTorch's `sum(dim=())` sums over
    /// everything, which is [`Tensor::sum`] here.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(6.0).view([2, 3]);
    /// assert_eq!(x.sum_dims([-1], true).sizes(), [2, 1]);
    /// assert_eq!(x.sum_dims(0, false).to_vec::<f32>(), [3.0, 5.0, 7.0]);
    /// ```
    pub fn sum_dims | try_sum_dims(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        sum(self, &wrap_dims("sum", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("sum", || {
        reduction_samples(
            Domain::Any,
            |x, dims, keepdim| x.try_sum_dims(dims, keepdim),
            |values| values.iter().sum(),
        )
        .into_iter()
        .chain([&[2, 3, 4][..], &[7], &[], &[2, 0]].map(|sizes| {
            Sample::new(
                format!("all of {sizes:?}"),
                vec![Input::new(sizes, Domain::Any)],
                |t| t[0].try_sum(),
                |r| Ref::new(&[], vec![r[0].data.iter().sum()]),
            )
        }))
        .collect()
    })
    .refusal("a dim twice", stridegrad_core::ErrorKind::Dim, || {
        Tensor::try_ones([2, 3])?.try_sum_dims([0, -2], false)
    })
}
