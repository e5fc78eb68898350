//! Running products.

use stridegrad_core::kernel::Scan;
use stridegrad_core::{DType, Result, exec, wrap_dim};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

/// The gradient where no element is zero: each product over the element, summed from it on.
fn by_division(x: &Tensor, y: &Tensor, g: &Tensor, dim: i64) -> Result<Tensor> {
    g.try_mul(y)?.try_reversed(dim)?.try_cumsum(dim)?.try_reversed(dim)?.try_div(x)
}

/// The gradient in general: for each element the running products without it, row by row of a matrix.
fn one_by_one(x: &Tensor, g: &Tensor, dim: i64) -> Result<Tensor> {
    let (x, g) = (x.try_movedim(dim, -1)?, g.try_movedim(dim, -1)?);
    let n = x.sizes().last().copied().unwrap_or(1);
    let mut square = x.sizes().to_vec();
    square.push(n);
    let own = Tensor::try_eye(n, n)?.try_to_device(x.device())?.try_ne(0.0)?;
    let products = x.try_unsqueeze(-2)?.try_expand(square)?.try_masked_fill(&own, 1.0)?.try_cumprod(-1)?;
    // Product k contains element i from k = i on.
    products.try_triu(0)?.try_mul(g.try_unsqueeze(-2)?)?.try_sum_dims([-1], false)?.try_movedim(-1, dim)
}

faces! {
    /// The running product along `dim`; integers and bools give `i64`. The gradient is exact with any number of zeros.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i32, 2, 3], [3]).cumprod(0).to_vec::<i64>(), [1, 2, 6]);
    /// ```
    pub fn cumprod | try_cumprod(&self, dim: i64) -> Tensor {
        let d = wrap_dim("cumprod", dim, self.dim())?;
        let x = if self.dtype().is_floating() { self.clone() } else { self.try_to_dtype(DType::I64)? };
        if x.dim() == 0 {
            return x.try_copy();
        }
        let mut rec = Recorder::new("cumprod", &[&x]);
        rec.save_input(0);
        rec.save_output(0);
        let out = exec::scan("cumprod", Scan::Prod, d, x.array())?;
        rec.finish(out, move |ctx, g| {
            let x = ctx.input(0)?;
            let zeros = x.numel() > 0 && x.detach().try_eq(0.0)?.try_any()?.try_item::<bool>()?;
            Ok(vec![Some(match zeros {
                false => by_division(&x, &ctx.output(0)?, g, d as i64)?,
                true => one_by_one(&x, g, d as i64)?,
            })])
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("cumprod", || {
        let mut all = Vec::new();
        let cases: [(&[usize], i64); 6] =
            [(&[2, 3, 4], 1), (&[2, 3, 4, 3], -1), (&[3, 4], 0), (&[7], 0), (&[], 0), (&[2, 0, 3], 1)];
        // With zeros among the values, and without.
        for zeros in [false, true] {
            for (sizes, dim) in cases {
                let run = move |t: &[Tensor]| match zeros {
                    true => t[0].try_mul(&t[1])?.try_cumprod(dim),
                    false => t[0].try_cumprod(dim),
                };
                let mut inputs = vec![Input::new(sizes, Domain::AwayFromZero)];
                inputs.extend(zeros.then(|| Input::new(sizes, Domain::Mask)));
                let reference = move |r: &[Ref]| {
                    let mask = |i: &[usize]| if zeros { r[1].at(i) } else { 1.0 };
                    let x = Ref::from_fn(sizes, |i| r[0].at(i) * mask(i));
                    let d = if dim < 0 { sizes.len() - 1 } else { dim as usize };
                    let upto = |i: &[usize]| {
                        let mut at = i.to_vec();
                        (0..=i[d])
                            .map(|k| {
                                at[d] = k;
                                x.at(&at)
                            })
                            .product()
                    };
                    if sizes.is_empty() { x } else { Ref::from_fn(sizes, upto) }
                };
                let s = Sample::new(format!("{sizes:?} dim {dim} zeros {zeros}"), inputs, run, reference)
                    .tolerance(4.0);
                all.push(s.row_major());
            }
        }
        all
    })
    .refusal("a dim out of range", stridegrad_core::ErrorKind::Dim, || Tensor::try_ones([2])?.try_cumprod(1))
}
