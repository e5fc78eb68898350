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
