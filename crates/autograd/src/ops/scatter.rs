//! Elements written to places along a dim.

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{Array, DType, Layout, Result, exec};

use super::gather::{gather, index_arg, index_dim, part_of};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

/// `x` with `src` written to the places of `index` along `dim`; the last write to a place wins.
pub(crate) fn scatter(
    op: &'static str,
    x: &Tensor,
    dim: usize,
    index: &Tensor,
    src: &Tensor,
) -> Result<Tensor> {
    let mut rec = Recorder::new(op, &[x, src]);
    rec.save_extra(index.array());
    let out = exec::copy_to(x.array(), Layout::contiguous(x.sizes())?, x.dtype())?;
    exec::index_into(op, IndexPass::Scatter, dim, &out, src.array(), index.array())?;
    rec.finish(out, move |ctx, g| {
        let index = ctx.extra(0)?;
        let gx = match ctx.needs(0) {
            true => {
                let zeros = Tensor::try_full_on(index.sizes(), 0.0, g.dtype(), g.device())?;
                Some(scatter("scatter", g, dim, &index, &zeros)?)
            }
            false => None,
        };
        let gs = match ctx.needs(1) {
            true => Some(gather(g, dim, &index)?.try_mul(&winners(ctx.sizes(0), dim, &index)?)?),
            false => None,
        };
        Ok(vec![gx, gs])
    })
}

/// Which elements of a source are still there after all were written.
fn winners(sizes: &[usize], dim: usize, index: &Tensor) -> Result<Tensor> {
    let ids =
        Tensor::try_arange(index.numel() as i64)?.try_view(index.sizes())?.try_to_device(index.device())?;
    let out = Array::zeros(Layout::contiguous(sizes)?, DType::I64, index.device())?;
    exec::index_into("scatter", IndexPass::Scatter, dim, &out, ids.array(), index.array())?;
    gather(&Tensor::from_array(out), dim, index)?.try_eq(&ids)
}

faces! {
    /// This tensor with `out[index[i][j][k]][j][k] = src[i][j][k]` (for `dim` 0); where places repeat, the last write in
    /// row-major order wins and alone gets a gradient. `index` may be smaller than `src`, whose rest is then left out.
    /// The result is row-major.
    ///
    /// Panics if an index lies outside `0..size`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let index = Tensor::from_slice(&[2i64, 0], [2]);
    /// let src = Tensor::from_slice(&[1.0f32, 2.0], [2]);
    /// assert_eq!(Tensor::zeros([3]).scatter(0, &index, &src).to_vec::<f32>(), [2.0, 0.0, 1.0]);
    /// ```
    pub fn scatter | try_scatter(&self, dim: i64, index: &Tensor, src: &Tensor) -> Tensor {
        let op = "scatter";
        let (d, index) = (index_dim(op, self, dim)?, index_arg(op, index)?);
        scatter(op, self, d, &index, &part_of(op, src, &index)?)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    let cases: [(&[usize], usize, &[usize]); 6] = [
        (&[2, 3, 4], 1, &[2, 5, 4]),
        (&[2, 3, 4], 2, &[1, 2, 3]),
        (&[7], 0, &[9]),
        (&[3, 4], 0, &[0, 4]),
        (&[3, 4], 1, &[2, 3]),
        (&[70, 300], 1, &[70, 301]),
    ];
    OpSpec::new("scatter", || {
        let samples = cases.into_iter().map(|(sizes, dim, index)| {
            let larger: Vec<usize> = index.iter().map(|n| n + 1).collect();
            let s = Sample::new(
                format!("{sizes:?} {index:?} dim {dim}"),
                vec![
                    Input::new(sizes, Domain::Any),
                    Input::new(index, Domain::Index(0, sizes[dim] as i64)),
                    Input::new(&larger, Domain::Any),
                ],
                move |t| t[0].try_scatter(dim as i64, &t[1], &t[2]),
                move |r| {
                    let mut out = r[0].clone();
                    Ref::from_fn(index, |i| {
                        let mut at = i.to_vec();
                        at[dim] = r[1].at(i) as usize;
                        let place = out.flat(&at);
                        out.data[place] = r[2].at(i);
                        0.0
                    });
                    out
                },
            )
            .row_major();
            if sizes == [70, 300] { s.no_grad() } else { s }
        });
        samples.collect()
    })
    .refusal("an index out of range", ErrorKind::Index, || {
        Tensor::try_ones([2])?.try_scatter(0, &Tensor::try_full([1], 2)?, &Tensor::try_ones([1])?)
    })
    .refusal("a source of another dtype", ErrorKind::DType, || {
        Tensor::try_ones([2])?.try_scatter(0, &Tensor::try_full([1], 0)?, &Tensor::try_full([1], 1)?)
    })
    .refusal("a source that is too small", ErrorKind::Shape, || {
        Tensor::try_ones([2])?.try_scatter(0, &Tensor::try_full([2], 0)?, &Tensor::try_ones([1])?)
    })
}
