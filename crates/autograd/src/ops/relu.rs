//! The rectified linear unit.

use stridegrad_core::{DType, Error, ErrorKind};

use super::elementwise::{Save, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    // NaN and -0 pass through, as in PyTorch.
    static RELU("relu") = |[x], []| E::select(x.lt(E::lit(0.0)), E::lit(0.0), x);
    static RELU_GRAD("relu_backward") = |[g, y], []| E::select(y.le(E::lit(0.0)), E::lit(0.0), g);
}

faces! {
    /// `max(self, 0)`, elementwise; NaN stays NaN; the gradient at 0 is 0. Saves its result for backward.
    pub fn relu | try_relu(&self) -> Tensor {
        if self.dtype() == DType::Bool {
            return Err(Error::new(ErrorKind::DType, "relu", "relu of a bool tensor is not supported"));
        }
        unary_as(&RELU, self, &[], self.dtype(), Save::Output, |ctx, g| relu_grad(g, &ctx.output(0)?))
    }
}

/// `g` where `y` is positive (or NaN), else 0.
fn relu_grad(g: &Tensor, y: &Tensor) -> stridegrad_core::Result<Tensor> {
    let mut rec = crate::graph::Recorder::new(RELU_GRAD.name, &[g, y]);
    rec.save_input(1);
    let out = stridegrad_core::exec::map(&RELU_GRAD, g.dtype(), &[], g.dtype(), &[g.array(), y.array()])?;
    // Piecewise linear: nothing flows to `y`.
    rec.finish(out, |ctx, gg| {
        Ok(vec![ctx.needs(0).then(|| relu_grad(gg, &ctx.input(1)?)).transpose()?, None])
    })
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("relu", || unary_samples(Domain::AwayFromZero, |x| x.try_relu(), |x| x.max(0.0)))
}
