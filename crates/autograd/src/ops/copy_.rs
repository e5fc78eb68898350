//! Writing a tensor's values into another.

use stridegrad_core::exec;

use crate::Tensor;
use crate::faces::faces;
use crate::inplace::in_place;

faces! {
    /// Writes `source` into this tensor: broadcast to its sizes, converted to its dtype. Returns the tensor itself.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let b = Tensor::zeros([4]);
    /// let y = Tensor::ones([2]).requires_grad_(true);
    /// b.narrow(0, 1, 2).copy_(&y.mul(3.0));
    /// b.sum().backward();
    /// assert_eq!(y.grad().unwrap().to_vec::<f32>(), [3.0, 3.0]);
    /// ```
    pub fn copy_ | try_copy_(&self, source: &Tensor) -> Tensor {
        if source.is_same(self) {
            return Ok(self.clone());
        }
        in_place("copy_", self, &[source], |_| Ok(()),
            |out| exec::copy_into(out, source.array()),
            |ctx, g| {
                let gs = if ctx.needs(1) { ctx.reduce_to(1, g.clone())? } else { None };
                Ok(vec![None, gs])
            })?;
        Ok(self.clone())
    }
}
