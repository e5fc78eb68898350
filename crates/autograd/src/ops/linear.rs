//! The affine map of a linear layer.

use stridegrad_core::{Result, bail, exec};

use super::add::ADD;
use super::matmul::{check_dtypes, product, rows};
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

const OP: &str = "linear";

/// `x` of sizes (rows, in) as one node: the bias goes onto the product while it is near.
fn affine(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = [Some(x), Some(weight), bias].into_iter().flatten().collect();
    let mut rec = Recorder::new(OP, &inputs);
    if rec.needs(0) {
        rec.save_input(1);
    }
    if rec.needs(1) {
        rec.save_input(0);
    }
    let transposed = weight.array().with_layout(weight.layout().t()?)?;
    let mut out = exec::gemm(x.array(), &transposed, None)?;
    if let Some(b) = bias {
        out = exec::map_donated(&ADD, x.dtype(), &[], x.dtype(), out, &[b.array()])?;
    }
    let (like_x, like_w) = (*x.layout(), *weight.layout());
    rec.finish(out, move |ctx, g| {
        let mut grads = vec![None, None, None];
        if ctx.needs(0) {
            grads[0] = Some(product(g, &ctx.input(1)?, Some(&like_x))?);
        }
        if ctx.needs(1) {
            grads[1] = Some(product(&g.try_t()?, &ctx.input(0)?, Some(&like_w))?);
        }
        if ctx.wanted.len() > 2 && ctx.needs(2) {
            grads[2] = Some(g.try_sum_dims(0, false)?);
        }
        Ok(grads)
    })
}

faces! {
    /// `self @ weight.t() + bias`: the last dim goes from `in` to `out` features, the others stay.
    ///
    /// `weight` is (out, in), `bias` (out). Operands may have any strides; the result is row-major.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let w = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    /// let y = Tensor::ones([4, 2]).linear(&w, Some(&Tensor::ones([3])));
    /// assert_eq!(y.select(0, 0).to_vec::<f32>(), [4.0, 8.0, 12.0]);
    /// ```
    pub fn linear | try_linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let &[out, inner] = weight.sizes() else {
            bail!(Shape, OP, "expected a weight of sizes (out, in), got {:?}", weight.sizes());
        };
        let Some((&last, lead)) = self.sizes().split_last() else {
            bail!(Shape, OP, "both arguments to linear need to be at least 1D, but they are 0D and 2D");
        };
        check_dtypes(OP, self, weight)?;
        if last != inner {
            bail!(Shape, OP, "an input of sizes {:?} has {last} features, a weight of sizes [{out}, {inner}] takes {inner}", self.sizes());
        }
        if let Some(b) = bias {
            check_dtypes(OP, self, b)?;
            if b.sizes() != [out] {
                bail!(Shape, OP, "expected a bias of sizes [{out}] for a weight of sizes [{out}, {inner}], got {:?}", b.sizes());
            }
        }
        match rows(self) {
            Some(_) if self.dim() == 2 => affine(self, weight, bias),
            Some(sizes) => affine(&self.try_view(sizes)?, weight, bias)?.try_view([lead, &[out]].concat()),
            // The leading dims do not merge: a batched product reads them where they lie.
            None => {
                let y = self.try_matmul(&weight.try_t()?)?;
                if let Some(b) = bias { y.try_add(b) } else { Ok(y) }
            }
        }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let reference = |r: &[Ref]| {
        let (x, w) = (&r[0], &r[1]);
        let n = x.sizes.len();
        let sizes = [&x.sizes[..n - 1], &w.sizes[..1]].concat();
        Ref::from_fn(&sizes, |index| {
            let mut at = index.to_vec();
            let o = index[n - 1];
            let sum: f64 = (0..w.sizes[1])
                .map(|i| {
                    at[n - 1] = i;
                    x.at(&at) * w.at(&[o, i])
                })
                .sum();
            sum + r.get(2).map_or(0.0, |b| b.at(&[o]))
        })
    };
    OpSpec::new(OP, || {
        let shapes: [(&[usize], &[usize]); 6] = [
            (&[3, 4], &[5, 4]),
            (&[4], &[2, 4]),
            (&[2, 3, 4], &[5, 4]),
            (&[0, 4], &[3, 4]),
            (&[2, 0], &[3, 0]),
            (&[70, 130], &[40, 130]),
        ];
        let mut all = Vec::new();
        for (x, w) in shapes {
            for bias in [true, false] {
                let mut inputs = vec![Input::new(x, Domain::Any), Input::new(w, Domain::Any)];
                if bias {
                    inputs.push(Input::new(&w[..1], Domain::Any));
                }
                let s = Sample::new(
                    format!("{x:?} {w:?} bias {bias}"),
                    inputs,
                    |t| t[0].try_linear(&t[1], t.get(2)),
                    reference,
                )
                .row_major()
                .tolerance(4.0);
                all.push(if x == [70, 130] { s.no_grad() } else { s });
            }
        }
        all
    })
    .refusal("features that do not fit", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_linear(&Tensor::try_ones([4, 2])?, None)
    })
    .refusal("a bias of another length", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_linear(&Tensor::try_ones([4, 3])?, Some(&Tensor::try_ones([3])?))
    })
}
