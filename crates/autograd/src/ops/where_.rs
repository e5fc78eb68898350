//! A choice between two tensors.

use stridegrad_core::{DType, Error, ErrorKind, Result, exec};

use super::elementwise::{device_of, promoted};
use crate::faces::faces;
use crate::graph::Recorder;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static WHERE("where") = |[c, a, b], []| E::select(c.ne(E::lit(0.0)), a, b);
}

/// `a` where `cond` holds, else `b`, in `dtype`.
pub(crate) fn select(
    op: &'static str,
    cond: &Tensor,
    a: &Operand,
    b: &Operand,
    dtype: DType,
) -> Result<Tensor> {
    if cond.dtype() != DType::Bool {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("expected a condition of bools, but got {}", cond.dtype()),
        )
        .hint("make one with a comparison, ne(0) for instance"));
    }
    let device = device_of(&[&cond.into()]);
    let (a, b) = (a.resolve(dtype, device)?, b.resolve(dtype, device)?);
    let mut rec = Recorder::new(op, &[&a, &b]);
    rec.save_extra(cond.array());
    let out = exec::map(&WHERE, dtype, &[], dtype, &[cond.array(), a.array(), b.array()])?;
    rec.finish(out, |ctx, g| {
        let cond = ctx.extra(0)?;
        let zero = Operand::from(0.0);
        let ga = ctx.needs(0).then(|| select("where", &cond, &g.into(), &zero, g.dtype())).transpose()?;
        let gb = ctx.needs(1).then(|| select("where", &cond, &zero, &g.into(), g.dtype())).transpose()?;
        let fit = |i, g: Option<Tensor>| g.map_or(Ok(None), |g| ctx.reduce_to(i, g));
        Ok(vec![fit(0, ga)?, fit(1, gb)?])
    })
}

faces! {
    /// `a` where this tensor of bools holds, else `b`: `cond.where_(a, b)`, or `Tensor::where_(&cond, a, b)`. All three
    /// are broadcast, `a` and `b` promoted.
    ///
    /// The side not taken gets a gradient of 0, which does not undo what its own computation makes of it: a NaN or an
    /// infinity there comes back as NaN.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 2.0], [2]);
    /// assert_eq!(x.gt(0.0).where_(&x, 0.0).to_vec::<f32>(), [0.0, 2.0]);
    /// ```
    pub fn where_ | try_where_(&self, a: impl Into<Operand>, b: impl Into<Operand>) -> Tensor {
        let (a, b) = (a.into(), b.into());
        select("where", self, &a, &b, promoted(&[&a, &b]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let shapes: [[&[usize]; 3]; 6] = [
        [&[2, 3, 4, 5], &[2, 3, 4, 5], &[2, 3, 4, 5]],
        [&[3, 1], &[2, 3, 4], &[4]],
        [&[2, 3, 4], &[], &[3, 1]],
        [&[], &[], &[]],
        [&[2, 0, 3], &[1, 3], &[3]],
        [&[131, 1031], &[131, 1031], &[1031]],
    ];
    OpSpec::new("where_", || {
        let samples = shapes.into_iter().map(|[c, a, b]| {
            let sizes: Vec<usize> = [c, a, b].into_iter().max_by_key(|s| s.len()).unwrap_or(&[]).to_vec();
            let inputs =
                vec![Input::new(c, Domain::Mask), Input::new(a, Domain::Any), Input::new(b, Domain::Any)];
            let s = Sample::new(
                format!("{c:?} {a:?} {b:?}"),
                inputs,
                |t| t[0].try_where_(&t[1], &t[2]),
                move |r| {
                    Ref::from_fn(&sizes, |i| {
                        if r[0].broadcast_at(i) != 0.0 { r[1].broadcast_at(i) } else { r[2].broadcast_at(i) }
                    })
                },
            );
            if c == [131, 1031] { s.no_grad() } else { s }
        });
        samples.map(Sample::numbers).collect()
    })
    .refusal("a condition of numbers", ErrorKind::DType, || Tensor::try_ones([2])?.try_where_(1.0, 2.0))
}
