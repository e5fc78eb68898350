//! Sub-tensors picked along a dim, and its adjoint `index_add`.

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{Array, Layout, Result, exec};

use super::gather::{index_arg, index_dim};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;
use crate::inplace::in_place;

/// Sub-tensors along `dim`, one an element of `index`.
pub(crate) fn index_select(x: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    let mut rec = Recorder::new("index_select", &[x]);
    rec.save_extra(index.array());
    let mut sizes = x.sizes().to_vec();
    sizes[dim] = index.numel();
    let out = exec::index("index_select", IndexPass::Select, dim, &sizes, x.array(), index.array())?;
    rec.finish(out, move |ctx, g| Ok(vec![Some(index_add_zeros(ctx.sizes(0), dim, &ctx.extra(0)?, g)?)]))
}

/// Zeros of `sizes` with the sub-tensors of `src` added at `index` along `dim`: the adjoint of [`index_select`].
fn index_add_zeros(sizes: &[usize], dim: usize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let mut rec = Recorder::new("index_add", &[src]);
    rec.save_extra(index.array());
    let out = Array::zeros(Layout::contiguous(sizes)?, src.dtype(), src.device())?;
    exec::index_into("index_add", IndexPass::Add, dim, &out, src.array(), index.array())?;
    rec.finish(out, move |ctx, g| Ok(vec![Some(index_select(g, dim, &ctx.extra(0)?)?)]))
}

/// A 1-dim index; a 0-dim one counts as one of a single element.
fn line(op: &'static str, index: &Tensor) -> Result<Tensor> {
    let index = index_arg(op, index)?;
    if index.dim() == 0 { index.try_unsqueeze(0) } else { Ok(index) }
}

faces! {
    /// The sub-tensors at the positions `index` (1-dim, `i64` or `i32`) of `dim`, in that order. The result is row-major.
    ///
    /// Panics if an index lies outside `0..size`. The gradient adds up where a position was picked repeatedly.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(6.0).view([3, 2]);
    /// let index = Tensor::from_slice(&[2i64, 0], [2]);
    /// assert_eq!(x.index_select(0, &index).to_vec::<f32>(), [4.0, 5.0, 0.0, 1.0]);
    /// ```
    pub fn index_select | try_index_select(&self, dim: i64, index: &Tensor) -> Tensor {
        index_select(self, index_dim("index_select", self, dim)?, &line("index_select", index)?)
    }

    /// This tensor with the sub-tensors of `src` added at the positions `index` of `dim`: the adjoint of
    /// [`Tensor::index_select`]. Panics if an index lies outside `0..size`.
    pub fn index_add | try_index_add(&self, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let op = "index_add";
        let (d, index) = (index_dim(op, self, dim)?, line(op, index)?);
        let mut rec = Recorder::new(op, &[self, src]);
        rec.save_extra(index.array());
        let out = exec::copy_to(self.array(), Layout::contiguous(self.sizes())?, self.dtype())?;
        exec::index_into(op, IndexPass::Add, d, &out, src.array(), index.array())?;
        rec.finish(out, move |ctx, g| {
            let gs = ctx.needs(1).then(|| index_select(g, d, &ctx.extra(0)?)).transpose()?;
            Ok(vec![Some(g.clone()), gs])
        })
    }

    /// As [`Tensor::index_add`], in place.
    pub fn index_add_ | try_index_add_(&self, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let op = "index_add_";
        let (d, index) = (index_dim(op, self, dim)?, line(op, index)?);
        in_place(op, self, &[src],
            |rec| { rec.save_extra(index.array()); Ok(()) },
            |out| exec::index_into(op, IndexPass::Add, d, out, src.array(), index.array()),
            move |ctx, g| {
                let gs = ctx.needs(1).then(|| index_select(g, d, &ctx.extra(0)?)).transpose()?;
                Ok(vec![Some(g.clone()), gs])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let cases: [(&[usize], usize, usize); 6] = [
        (&[2, 3, 4, 5], 1, 5),
        (&[2, 3, 4], 0, 3),
        (&[2, 3, 4], 2, 2),
        (&[7], 0, 0),
        (&[7], 0, 9),
        (&[70, 300], 0, 80),
    ];
    OpSpec::new("index_select", || {
        let mut all = Vec::new();
        for (sizes, dim, n) in cases {
            let mut picked = sizes.to_vec();
            picked[dim] = n;
            let picks = Input::new(&[n], Domain::Index(0, sizes[dim] as i64));
            let at = move |i: &[usize], r: &Ref| {
                let mut at = i.to_vec();
                at[dim] = r.data[i[dim]] as usize;
                at
            };
            let sizes_of_result = picked.clone();
            let select = Sample::new(
                format!("index_select {sizes:?} dim {dim} of {n}"),
                vec![Input::new(sizes, Domain::Any), picks.clone()],
                move |t| t[0].try_index_select(dim as i64, &t[1]),
                move |r| Ref::from_fn(&sizes_of_result, |i| r[0].at(&at(i, &r[1]))),
            )
            .row_major();
            let add = Sample::new(
                format!("index_add {sizes:?} dim {dim} of {n}"),
                vec![Input::new(sizes, Domain::Any), picks, Input::new(&picked, Domain::Any)],
                move |t| t[0].try_index_add(dim as i64, &t[1], &t[2]),
                move |r| {
                    let mut out = r[0].clone();
                    Ref::from_fn(&r[2].sizes, |i| {
                        let place = out.flat(&at(i, &r[1]));
                        out.data[place] += r[2].at(i);
                        0.0
                    });
                    out
                },
            )
            .in_place(move |x, others| x.try_index_add_(dim as i64, &others[0], &others[1]).map(drop))
            .row_major()
            .tolerance(2.0);
            let large = sizes.iter().product::<usize>() > 1000;
            all.extend([select, add].map(|s| if large { s.no_grad().tolerance(4.0) } else { s }));
        }
        all
    })
    .refusal("an index out of range", ErrorKind::Index, || {
        Tensor::try_ones([2])?.try_index_select(0, &Tensor::try_full([1], 2)?)
    })
    .refusal("an index with two dims", ErrorKind::Shape, || {
        Tensor::try_ones([2])?.try_index_select(0, &Tensor::try_full([1, 1], 0)?)
    })
}
