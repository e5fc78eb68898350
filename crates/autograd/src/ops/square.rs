//! The square.

use super::elementwise::{Save, fused, unary_as};
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static SQUARE("square") = |[x], []| x * x;
    static SQUARE_GRAD("square_backward") = |[g, x], []| g * (x + x);
}

faces! {
    /// `self * self`, elementwise, in the tensor's own dtype (a bool gives `i64`).
    pub fn square | try_square(&self) -> Tensor {
        use stridegrad_core::DType;
        let dtype = if self.dtype() == DType::Bool { DType::I64 } else { self.dtype() };
        unary_as(&SQUARE, self, &[], dtype, Save::Input, |ctx, g| {
            let x = ctx.input(0)?;
            fused(ctx, &SQUARE_GRAD, &[], &[g, &x], || g.try_mul(&x)?.try_mul(2.0))
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("square", || {
        unary_samples(Domain::Any, |x| x.try_square(), |x| x * x).into_iter().map(Sample::numbers).collect()
    })
}
