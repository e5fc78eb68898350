//! Whether any or all elements are true.

use stridegrad_core::kernel::ReduceKernel;
use stridegrad_core::{DType, IntoDims, Result, exec, wrap_dims};

use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::reduce_kernel! {
    static ANY("any", identity: 0.0, int: 0) = |a, b| a.max(b);
    static ALL("all", identity: 1.0, int: 1) = |a, b| a.min(b);
}

fn truth(kernel: &ReduceKernel, x: &Tensor, dims: &[bool], keepdim: bool) -> Result<Tensor> {
    let x = x.detach().try_to_dtype(DType::Bool)?;
    Ok(Tensor::from_array(exec::reduce(kernel, DType::Bool, DType::Bool, dims, keepdim, x.array())?))
}

faces! {
    /// Whether any element is true (not 0), a 0-dim `bool`; false for an empty tensor.
    pub fn any | try_any(&self) -> Tensor {
        truth(&ANY, self, &vec![true; self.dim()], false)
    }

    /// Whether any element over `dims` is true, as bools; the dims are kept with size 1 if `keepdim`.
    pub fn any_dims | try_any_dims(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        truth(&ANY, self, &wrap_dims("any", &dims.into_dims(), self.dim())?, keepdim)
    }

    /// Whether all elements are true (not 0), a 0-dim `bool`; true for an empty tensor.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert!(Tensor::ones([3]).gt(0.0).all().item::<bool>());
    /// ```
    pub fn all | try_all(&self) -> Tensor {
        truth(&ALL, self, &vec![true; self.dim()], false)
    }

    /// Whether all elements over `dims` are true, as bools; the dims are kept with size 1 if `keepdim`.
    pub fn all_dims | try_all_dims(&self, dims: impl IntoDims, keepdim: bool) -> Tensor {
        truth(&ALL, self, &wrap_dims("all", &dims.into_dims(), self.dim())?, keepdim)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("any", || {
        let any = |v: &[f64]| f64::from(v.iter().any(|&x| x != 0.0));
        let all = |v: &[f64]| f64::from(v.iter().all(|&x| x != 0.0));
        let mut samples = Vec::new();
        for domain in [Domain::Mask, Domain::Index(-1, 2), Domain::Any] {
            samples.extend(reduction_samples(domain, |x, d, k| x.try_any_dims(d, k), any));
            samples.extend(reduction_samples(domain, |x, d, k| x.try_all_dims(d, k), all));
        }
        for sizes in [&[2, 3, 4][..], &[7], &[], &[2, 0]] {
            let every: Vec<usize> = (0..sizes.len()).collect();
            let input = || vec![Input::new(sizes, Domain::Mask)];
            let dims = every.clone();
            let some = move |r: &[Ref]| reduce_ref(&r[0], &dims, false, &any);
            samples.push(Sample::new(format!("any {sizes:?}"), input(), |t| t[0].try_any(), some));
            let of_all = move |r: &[Ref]| reduce_ref(&r[0], &every, false, &all);
            samples.push(Sample::new(format!("all {sizes:?}"), input(), |t| t[0].try_all(), of_all));
        }
        samples.into_iter().map(|s| s.no_grad().result(DType::Bool)).collect()
    })
}
