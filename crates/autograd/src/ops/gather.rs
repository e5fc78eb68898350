//! Elements picked along a dim, and its adjoint `scatter_add`.

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{Array, DType, Error, ErrorKind, Layout, Result, exec, wrap_dim};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;
use crate::inplace::in_place;

/// An index of `i64`; `i32` is converted.
pub(crate) fn index_arg(op: &'static str, index: &Tensor) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 => Ok(index.detach()),
        DType::I32 => index.try_to_dtype(DType::I64),
        other => {
            Err(Error::new(ErrorKind::DType, op, format!("expected an index of i64 or i32, but got {other}"))
                .hint("convert it with to_dtype(DType::I64)"))
        }
    }
}

/// The dim, of a tensor that has dims.
pub(crate) fn index_dim(op: &'static str, x: &Tensor, dim: i64) -> Result<usize> {
    if x.dim() == 0 {
        return Err(Error::new(ErrorKind::Dim, op, "a 0-dim tensor has no dim to index")
            .hint("unsqueeze(0) gives it one"));
    }
    wrap_dim(op, dim, x.dim())
}

/// Values picked along `dim`, one an element of `index`.
pub(crate) fn gather(x: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    let mut rec = Recorder::new("gather", &[x]);
    rec.save_extra(index.array());
    let out = exec::index("gather", IndexPass::Gather, dim, index.sizes(), x.array(), index.array())?;
    rec.finish(out, move |ctx, g| Ok(vec![Some(scatter_zeros(ctx.sizes(0), dim, &ctx.extra(0)?, g)?)]))
}

/// Zeros of `sizes` with `src` added at the places of `index` along `dim`: the adjoint of [`gather`].
pub(crate) fn scatter_zeros(sizes: &[usize], dim: usize, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    let mut rec = Recorder::new("scatter_add", &[src]);
    rec.save_extra(index.array());
    let out = Array::zeros(Layout::contiguous(sizes)?, src.dtype(), src.device())?;
    exec::index_into("scatter_add", IndexPass::ScatterAdd, dim, &out, src.array(), index.array())?;
    rec.finish(out, move |ctx, g| Ok(vec![Some(gather(g, dim, &ctx.extra(0)?)?)]))
}

/// The part of `src` that an index of smaller sizes speaks of.
pub(crate) fn part_of(op: &'static str, src: &Tensor, index: &Tensor) -> Result<Tensor> {
    let fits = src.dim() == index.dim() && index.sizes().iter().zip(src.sizes()).all(|(i, s)| i <= s);
    if !fits {
        return Err(Error::new(
            ErrorKind::Shape,
            op,
            format!("an index of sizes {:?} does not fit a source of sizes {:?}", index.sizes(), src.sizes()),
        ));
    }
    let mut part = src.clone();
    for (d, &n) in index.sizes().iter().enumerate().filter(|(d, n)| **n != src.sizes()[*d]) {
        part = part.try_narrow(d as i64, 0, n as i64)?;
    }
    Ok(part)
}

faces! {
    /// `out[i][j][k] = self[index[i][j][k]][j][k]` (for `dim` 0): one element a place of `index`, which has this
    /// tensor's rank and is no larger than it but along `dim`. The result has the index's sizes and is row-major.
    ///
    /// Panics if an index lies outside `0..size`. The gradient adds up where an element was picked repeatedly.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// let index = Tensor::from_slice(&[0i64, 0, 1, 0], [2, 2]);
    /// assert_eq!(x.gather(1, &index).to_vec::<f32>(), [1.0, 1.0, 4.0, 3.0]);
    /// ```
    pub fn gather | try_gather(&self, dim: i64, index: &Tensor) -> Tensor {
        gather(self, index_dim("gather", self, dim)?, &index_arg("gather", index)?)
    }

    /// This tensor with `out[index[i][j][k]][j][k] += src[i][j][k]` (for `dim` 0): the adjoint of [`Tensor::gather`].
    /// `index` may be smaller than `src`, whose rest is then left out.
    ///
    /// Panics if an index lies outside `0..size`.
    pub fn scatter_add | try_scatter_add(&self, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let op = "scatter_add";
        let (d, index) = (index_dim(op, self, dim)?, index_arg(op, index)?);
        let src = part_of(op, src, &index)?;
        let mut rec = Recorder::new(op, &[self, &src]);
        rec.save_extra(index.array());
        let out = exec::copy_to(self.array(), Layout::contiguous(self.sizes())?, self.dtype())?;
        exec::index_into(op, IndexPass::ScatterAdd, d, &out, src.array(), index.array())?;
        rec.finish(out, move |ctx, g| {
            let gs = ctx.needs(1).then(|| gather(g, d, &ctx.extra(0)?)).transpose()?;
            Ok(vec![Some(g.clone()), gs])
        })
    }

    /// As [`Tensor::scatter_add`], in place.
    pub fn scatter_add_ | try_scatter_add_(&self, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let op = "scatter_add_";
        let (d, index) = (index_dim(op, self, dim)?, index_arg(op, index)?);
        let src = part_of(op, src, &index)?;
        in_place(op, self, &[&src],
            |rec| { rec.save_extra(index.array()); Ok(()) },
            |out| exec::index_into(op, IndexPass::ScatterAdd, d, out, src.array(), index.array()),
            move |ctx, g| {
                let gs = ctx.needs(1).then(|| gather(g, d, &ctx.extra(0)?)).transpose()?;
                Ok(vec![Some(g.clone()), gs])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let cases: [(&[usize], usize, &[usize]); 7] = [
        (&[2, 3, 4], 1, &[2, 5, 4]),
        (&[2, 3, 4], 2, &[1, 2, 6]),
        (&[2, 3, 4, 5], 0, &[3, 3, 4, 5]),
        (&[7], 0, &[9]),
        (&[3, 4], 0, &[0, 4]),
        (&[3, 4], 1, &[2, 3]),
        (&[70, 300], 1, &[70, 301]),
    ];
    OpSpec::new("gather", || {
        let mut all = Vec::new();
        for (sizes, dim, index) in cases {
            let picks = Input::new(index, Domain::Index(0, sizes[dim] as i64));
            let at = move |i: &[usize], r: &Ref| {
                let mut at = i.to_vec();
                at[dim] = r.at(i) as usize;
                at
            };
            let gather = Sample::new(
                format!("gather {sizes:?} {index:?} dim {dim}"),
                vec![Input::new(sizes, Domain::Any), picks.clone()],
                move |t| t[0].try_gather(dim as i64, &t[1]),
                move |r| Ref::from_fn(index, |i| r[0].at(&at(i, &r[1]))),
            )
            .row_major();
            let larger: Vec<usize> = index.iter().map(|n| n + 1).collect();
            let scatter = Sample::new(
                format!("scatter_add {sizes:?} {index:?} dim {dim}"),
                vec![Input::new(sizes, Domain::Any), picks, Input::new(&larger, Domain::Any)],
                move |t| t[0].try_scatter_add(dim as i64, &t[1], &t[2]),
                move |r| {
                    let mut out = r[0].clone();
                    Ref::from_fn(index, |i| {
                        let place = out.flat(&at(i, &r[1]));
                        out.data[place] += r[2].at(i);
                        0.0
                    });
                    out
                },
            )
            .in_place(move |x, others| x.try_scatter_add_(dim as i64, &others[0], &others[1]).map(drop))
            .row_major()
            .tolerance(2.0);
            let large = sizes.iter().product::<usize>() > 1000;
            all.extend([gather, scatter].map(|s| if large { s.no_grad().tolerance(4.0) } else { s }));
        }
        all
    })
    .refusal("an index out of range", ErrorKind::Index, || {
        Tensor::try_ones([2])?.try_gather(0, &Tensor::try_full([1], 2)?)
    })
    .refusal("a negative index", ErrorKind::Index, || {
        Tensor::try_ones([2])?.try_gather(0, &Tensor::try_full([1], -1)?)
    })
    .refusal("an index of floats", ErrorKind::DType, || {
        Tensor::try_ones([2])?.try_gather(0, &Tensor::try_ones([1])?)
    })
    .refusal("an index of another rank", ErrorKind::Shape, || {
        Tensor::try_ones([2, 2])?.try_gather(0, &Tensor::try_full([1], 0)?)
    })
}
