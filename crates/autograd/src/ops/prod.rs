//! The product over dims.

use stridegrad_core::kernel::Scan;
use stridegrad_core::{DType, IntoDims, Result, exec, wrap_dims};

use super::sum::spread;
use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::reduce_kernel! {
    static PROD("prod", identity: 1.0, int: 1) = |a, b| a * b;
}

fn prod(x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    let mut rec = Recorder::new("prod", &[x]);
    rec.save_input(0);
    rec.save_output(0);
    let dtype = if x.dtype().is_floating() { x.dtype() } else { DType::I64 };
    let out = exec::reduce(&PROD, dtype, dtype, dims, keepdim, x.array())?;
    let mask = dims.to_vec();
    rec.finish(out, move |ctx, g| {
        let x = ctx.input(0)?;
        let g = spread(g, &mask, keepdim)?;
        if !ctx.create_graph {
            return Ok(vec![Some(g.try_mul(&others(&x, &mask)?)?)]);
        }
        // Two forms that may be differentiated again: by division, and where that fails, one product an element.
        let zeros = x.detach().try_eq(0.0)?.try_any()?.try_item::<bool>()?;
        let grad = match zeros {
            false => g.try_mul(&spread(&ctx.output(0)?, &mask, keepdim)?)?.try_div(&x)?,
            true => g.try_mul(&others_one_by_one(&x, &mask)?)?,
        };
        Ok(vec![Some(grad)])
    })
}

/// The groups of a reduction as the rows of a matrix, and the way back.
struct Rows {
    /// The kept dims, then the reduced ones.
    order: Vec<i64>,
    sizes: Vec<usize>,
    matrix: [i64; 2],
}

impl Rows {
    fn of(x: &Tensor, dims: &[bool]) -> Rows {
        let pick = |reduced: bool| (0..dims.len()).filter(move |&i| dims[i] == reduced);
        let order: Vec<i64> = pick(false).chain(pick(true)).map(|i| i as i64).collect();
        let sizes = order.iter().map(|&i| x.sizes()[i as usize]).collect();
        let product = |reduced| pick(reduced).map(|i| x.sizes()[i] as i64).product();
        Rows { order, sizes, matrix: [product(false), product(true)] }
    }

    fn gather(&self, x: &Tensor) -> Result<Tensor> {
        x.try_permute(&self.order)?.try_reshape(self.matrix)
    }

    fn back(&self, rows: &Tensor) -> Result<Tensor> {
        let mut inverse = vec![0i64; self.order.len()];
        for (k, &i) in self.order.iter().enumerate() {
            inverse[i as usize] = k as i64;
        }
        rows.try_reshape(&self.sizes)?.try_permute(inverse)
    }
}

/// For every element, the product of the others of its group: what lies before it times what lies after it. Exact
/// with any number of zeros.
fn others(x: &Tensor, dims: &[bool]) -> Result<Tensor> {
    let rows = Rows::of(x, dims);
    let m = rows.gather(&x.detach())?;
    let n = rows.matrix[1];
    if m.numel() == 0 {
        return x.try_ones_like();
    }
    let before = |m: &Tensor| -> Result<Tensor> {
        let running = Tensor::from_array(exec::scan("prod", Scan::Prod, 1, m.array())?);
        let shifted = Tensor::try_full_on(rows.matrix, 1.0, m.dtype(), m.device())?;
        shifted.try_narrow(1, 1, n - 1)?.try_copy_(&running.try_narrow(1, 0, n - 1)?)?;
        Ok(shifted)
    };
    let after = before(&m.try_reversed(1)?)?.try_reversed(1)?;
    rows.back(&before(&m)?.try_mul(&after)?)
}

/// As [`others`], of ops: the group repeated once an element, with a one in the element's place.
fn others_one_by_one(x: &Tensor, dims: &[bool]) -> Result<Tensor> {
    let rows = Rows::of(x, dims);
    let [k, n] = rows.matrix;
    let repeated = rows.gather(x)?.try_unsqueeze(1)?.try_expand([k, n, n])?;
    let own = Tensor::try_eye(n as usize, n as usize)?.try_to_device(x.device())?.try_ne(0.0)?;
    rows.back(&repeated.try_masked_fill(&own, 1.0)?.try_prod_dims(2, false)?)
}

faces! {
    /// The product of all elements, a 0-dim tensor. Integers and bools give `i64`; an empty tensor gives 1.
    pub fn prod | try_prod(&self) -> Tensor {
        prod(self, &vec![true; self.dim()], false)
    }

    /// The product over `dims`, which are kept with size 1 if `keepdim`. The gradient is exact where elements are 0.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[2.0f32, 0.0, 3.0], [3]).requires_grad_(true);
    /// x.prod_dims(0, false).backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 6.0, 0.0]);
    /// ```
    pub fn prod_dims | try_prod_dims(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        prod(self, &wrap_dims("prod", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("prod", || {
        let run = |x: &Tensor, dims: &[i64], keepdim| x.try_prod_dims(dims, keepdim);
        let of = |v: &[f64]| v.iter().product();
        // Near 1, so that long products keep their digits; and with zeros, up to several a group.
        let mut all = reduction_samples(Domain::Between(0.98, 1.02), run, of);
        all.push(Sample::new(
            "zeros",
            vec![Input::new(&[4, 5], Domain::Any)],
            |t| t[0].try_masked_fill(&t[0].detach().try_lt(0.3)?, 0.0)?.try_prod_dims(1, false),
            |r| {
                reduce_ref(&r[0], &[1], false, &|v| {
                    v.iter().map(|&x| if x < 0.3 { 0.0 } else { x }).product()
                })
            },
        ));
        for sizes in [&[2, 3, 4][..], &[7], &[], &[2, 0]] {
            all.push(Sample::new(
                format!("all of {sizes:?}"),
                vec![Input::new(sizes, Domain::AwayFromZero)],
                |t| t[0].try_prod(),
                |r| Ref::new(&[], vec![r[0].data.iter().product()]),
            ));
        }
        all
    })
    .refusal("a dim twice", stridegrad_core::ErrorKind::Dim, || {
        Tensor::try_ones([2, 3])?.try_prod_dims([1, -1], false)
    })
}
