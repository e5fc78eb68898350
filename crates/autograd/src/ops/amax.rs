//! The largest and smallest values over dims.

use stridegrad_core::kernel::ReduceKernel;
use stridegrad_core::{DType, Error, ErrorKind, IntoDims, Result, exec, wrap_dims};

use super::elementwise::linear;
use super::sum::{SUM, spread};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::reduce_kernel! {
    pub(crate) static AMAX("amax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
    pub(crate) static AMIN("amin", identity: f64::INFINITY, int: i64::MAX) = |a, b| a.min(b);
}

stridegrad_cpu::map_kernel! {
    // Where the extreme is, NaN included.
    static TIES("ties") = |[x, y], []| E::from_mask(E::or(x.eq(y), E::and(x.is_nan(), y.is_nan())));
    static AT_TIES("at_ties") = |[g, x, y], []| {
        E::select(E::or(x.eq(y), E::and(x.is_nan(), y.is_nan())), g, E::lit(0.0))
    };
}

/// Refuses to reduce over a dim of size 0, which has no extreme.
pub(crate) fn not_empty(op: &'static str, x: &Tensor, dims: &[bool]) -> Result<()> {
    match (0..x.dim()).find(|&i| dims[i] && x.sizes()[i] == 0) {
        Some(i) => Err(Error::new(
            ErrorKind::Index,
            op,
            format!("expected reduction dim {i} of sizes {:?} to have non-zero size", x.sizes()),
        )),
        None => Ok(()),
    }
}

/// The extreme over the dims of a mask; equal ones share the gradient evenly.
pub(crate) fn extreme(
    op: &'static str,
    kernel: &ReduceKernel,
    x: &Tensor,
    dims: &[bool],
    keepdim: bool,
) -> Result<Tensor> {
    not_empty(op, x, dims)?;
    let mut rec = Recorder::new(op, &[x]);
    rec.save_input(0);
    rec.save_output(0);
    let out = exec::reduce(kernel, x.dtype(), x.dtype(), dims, keepdim, x.array())?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| {
        let (x, y) = (ctx.input(0)?, spread(&ctx.output(0)?, &mask, keepdim)?);
        let ties = exec::map(&TIES, x.dtype(), &[], DType::Bool, &[x.array(), y.array()])?;
        let count = exec::reduce(&SUM, DType::I64, DType::I64, &mask, true, &ties)?;
        let share = spread(g, &mask, keepdim)?.try_div(Tensor::from_array(count))?;
        Ok(vec![Some(linear(&AT_TIES, &[], &share, &[&x, &y])?)])
    })
}

faces! {
    /// The largest value over `dims`, which are kept with size 1 if `keepdim`; NaN if there is one. Refused over a dim
    /// of size 0. Equal largest values share the gradient evenly ([`Tensor::max_dim`] gives it to the first).
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 2.0, 4.0], [2, 2]);
    /// assert_eq!(x.amax(1, false).to_vec::<f32>(), [5.0, 4.0]);
    /// ```
    pub fn amax | try_amax(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        extreme("amax", &AMAX, self, &wrap_dims("amax", &dims.into_dims(), self.dim())?, keepdim)
    }

    /// The smallest value over `dims`; otherwise as [`Tensor::amax`].
    pub fn amin | try_amin(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        extreme("amin", &AMIN, self, &wrap_dims("amin", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("amax", || {
        let mut all = reduction_samples(
            Domain::Distinct,
            |x, dims, keepdim| x.try_amax(dims, keepdim),
            |v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        all.extend(reduction_samples(
            Domain::Distinct,
            |x, dims, keepdim| x.try_amin(dims, keepdim),
            |v| v.iter().copied().fold(f64::INFINITY, f64::min),
        ));
        all
    })
    .refusal("an empty dim", ErrorKind::Index, || Tensor::try_ones([0, 3])?.try_amax(0, false))
}
