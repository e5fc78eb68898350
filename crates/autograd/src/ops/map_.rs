//! An elementwise kernel of the caller's own, in place: what optimizers are made of.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{Error, ErrorKind, Scalar, exec};

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Writes `kernel(operands, params)` into this tensor, elementwise; operands broadcast to its sizes, and this
    /// tensor may be one of them. Kernels are declared with [`map_kernel!`](crate::map_kernel).
    ///
    /// Autograd does not follow it: refused where a tensor that takes part requires grad, except under `no_grad`.
    pub fn map_ | try_map_(&self, kernel: &'static MapKernel, params: &[f64], operands: &[&Tensor]) -> () {
        if crate::is_grad_enabled() && operands.iter().copied().chain([self]).any(Tensor::requires_grad) {
            return Err(Error::new(ErrorKind::InPlace, kernel.name, "autograd does not follow map_")
                .hint("call it under no_grad, or on detach()ed tensors"));
        }
        let params: Vec<Scalar> = params.iter().map(|&p| Scalar::Float(p)).collect();
        let arrays: Vec<_> = operands.iter().map(|t| t.array()).collect();
        exec::map_into(kernel, self.dtype(), &params, self.array(), &arrays)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    stridegrad_cpu::map_kernel! {
        static AXPY("axpy") = |[x, y], [a]| x + a * y;
    }
    let shapes: [(&[usize], &[usize]); 4] =
        [(&[2, 3, 4, 5], &[2, 3, 4, 5]), (&[3, 4], &[4]), (&[], &[]), (&[131, 1031], &[131, 1031])];
    OpSpec::new("map_", || {
        shapes
            .into_iter()
            .map(|(x, y)| {
                let axpy = |x: &Tensor, y: &Tensor| x.try_map_(&AXPY, &[0.5], &[x, y]);
                Sample::new(
                    format!("{x:?} {y:?}"),
                    vec![Input::new(x, Domain::Any), Input::new(y, Domain::Any)],
                    move |t| {
                        let x = t[0].try_copy()?;
                        axpy(&x, &t[1])?;
                        Ok(x)
                    },
                    |r| Ref::from_fn(&r[0].sizes, |i| r[0].at(i) + 0.5 * r[1].broadcast_at(i)),
                )
                .in_place(move |x, others| axpy(x, &others[0]))
                .layout_like(0)
                .no_grad()
            })
            .collect()
    })
    .refusal("a tensor that requires grad", ErrorKind::InPlace, || {
        let x = Tensor::try_ones([2])?;
        x.try_map_(&AXPY, &[0.5], &[&x, &Tensor::try_ones([2])?.try_requires_grad_(true)?])?;
        Ok(x)
    })
}
