//! Positions of the largest and smallest values.

use stridegrad_core::kernel::Extreme;
use stridegrad_core::{Result, exec, wrap_dim};

use super::amax::not_empty;
use super::elementwise::no_bool;
use crate::Tensor;
use crate::faces::faces;

fn arg(op: &'static str, which: Extreme, x: &Tensor, dim: Option<i64>, keepdim: bool) -> Result<Tensor> {
    no_bool(op, x.dtype(), "convert it with to_dtype()")?;
    let x = x.detach();
    let Some(dim) = dim else {
        not_empty(op, &x, &vec![true; x.dim()])?;
        let flat = super::view::reshape(op, &x, &[-1])?;
        let (index, _) = exec::arg_reduce(op, which, 0, false, flat.array())?;
        let index = Tensor::from_array(index);
        return if keepdim { index.try_view(vec![1i64; x.dim()]) } else { Ok(index) };
    };
    let dim = wrap_dim(op, dim, x.dim())?;
    if x.dim() == 0 {
        return arg(op, which, &x, None, keepdim);
    }
    Ok(Tensor::from_array(exec::arg_reduce(op, which, dim, keepdim, x.array())?.0))
}

faces! {
    /// The position of the largest value along `dim`, `i64`: of equal ones the first, of NaNs too. With `None`, the
    /// position in the row-major sequence of all elements.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 5.0, 5.0, 4.0], [2, 2]);
    /// assert_eq!(x.argmax(1, false).to_vec::<i64>(), [1, 0]);
    /// assert_eq!(x.argmax(None, false).item::<i64>(), 1);
    /// ```
    pub fn argmax | try_argmax(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Tensor {
        arg("argmax", Extreme::Max, self, dim.into(), keepdim)
    }

    /// The position of the smallest value; otherwise as [`Tensor::argmax`].
    pub fn argmin | try_argmin(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Tensor {
        arg("argmin", Extreme::Min, self, dim.into(), keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    type Run = fn(&Tensor, Option<i64>, bool) -> Result<Tensor>;
    fn samples(name: &str, run: Run, better: fn(&f64, &f64) -> bool, domain: Domain) -> Vec<Sample> {
        let first =
            move |v: &[f64]| (1..v.len()).fold(0, |b, i| if better(&v[i], &v[b]) { i } else { b }) as f64;
        let mut all = Vec::new();
        for sizes in [&[2, 3, 4, 5][..], &[70, 300], &[7], &[]] {
            for keepdim in [false, true] {
                let input = || vec![Input::new(sizes, domain)];
                let every: Vec<usize> = (0..sizes.len()).collect();
                all.push(Sample::new(
                    format!("{name} {sizes:?} keepdim {keepdim}"),
                    input(),
                    move |t| run(&t[0], None, keepdim),
                    move |r| reduce_ref(&r[0], &every, keepdim, &first),
                ));
                for dim in 0..sizes.len() {
                    all.push(Sample::new(
                        format!("{name} {sizes:?} dim {dim} keepdim {keepdim}"),
                        input(),
                        move |t| run(&t[0], Some(dim as i64), keepdim),
                        move |r| reduce_ref(&r[0], &[dim], keepdim, &first),
                    ));
                }
            }
        }
        all
    }
    OpSpec::new("argmax", || {
        let mut all = Vec::new();
        // Few values, many ties.
        for domain in [Domain::Distinct, Domain::Index(0, 5)] {
            all.extend(samples("argmax", |x, d, k| x.try_argmax(d, k), |a, b| a > b, domain));
            all.extend(samples("argmin", |x, d, k| x.try_argmin(d, k), |a, b| a < b, domain));
        }
        all.into_iter().map(|s| s.no_grad().result(stridegrad_core::DType::I64)).collect()
    })
    .refusal("an empty tensor", stridegrad_core::ErrorKind::Index, || {
        Tensor::try_ones([0])?.try_argmax(None, false)
    })
    .refusal("a bool", stridegrad_core::ErrorKind::DType, || {
        Tensor::try_full([2], true)?.try_argmax(0, false)
    })
}
