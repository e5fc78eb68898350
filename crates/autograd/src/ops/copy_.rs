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

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[2, 3, 4, 5], &[2, 3, 4, 5]),
        (&[2, 3, 4], &[3, 1]),
        (&[3, 4], &[]),
        (&[], &[]),
        (&[2, 0, 3], &[3]),
        (&[131, 1031], &[1031]),
    ];
    OpSpec::new("copy_", || {
        shapes
            .into_iter()
            .map(|(to, from)| {
                let s = Sample::new(
                    format!("{from:?} into {to:?}"),
                    vec![Input::new(to, Domain::Any), Input::new(from, Domain::Any)],
                    |t| t[0].try_copy()?.try_copy_(&t[1]),
                    |r| Ref::from_fn(&r[0].sizes, |i| r[1].broadcast_at(i)),
                )
                .in_place(|x, others| x.try_copy_(&others[0]).map(drop))
                .layout_like(0)
                .numbers();
                if to == [131, 1031] { s.no_grad() } else { s }
            })
            .collect()
    })
    .refusal("a source that does not broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_copy_(&Tensor::try_ones([2])?)
    })
    .refusal("a source of higher rank", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([3])?.try_copy_(&Tensor::try_ones([2, 3])?)
    })
    .refusal("an expanded target", stridegrad_core::ErrorKind::Overlap, || {
        Tensor::try_ones([1])?.try_expand([3])?.try_copy_(&Tensor::try_ones([3])?)
    })
}
