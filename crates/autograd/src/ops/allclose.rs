//! Equality of whole tensors: `equal`, `isclose`, `allclose`.

use stridegrad_core::{DType, exec};

use super::elementwise::promoted;
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ISCLOSE("isclose") = |[a, b], [rtol, atol]| {
        let near = (a - b).abs().le(atol + rtol * b.abs());
        let finite = (a - b).abs().lt(E::lit(f64::INFINITY));
        E::from_mask(E::or(a.eq(b), E::and(near, finite)))
    };
}

faces! {
    /// Whether both tensors have the same sizes and equal values; dtypes may differ. A NaN equals nothing.
    ///
    /// ```
    /// use stridegrad_autograd::tensor;
    /// assert!(tensor![1.0, 2.0].equal(&tensor![1, 2]));
    /// assert!(!tensor![1.0, 2.0].equal(&tensor![[1.0, 2.0]]));
    /// ```
    pub fn equal | try_equal(&self, other: &Tensor) -> bool {
        Ok(self.sizes() == other.sizes() && self.try_eq(other)?.try_all()?.try_item::<bool>()?)
    }

    /// Whether `|self - other| <= atol + rtol |other|`, elementwise, as bools; broadcast. An infinity is close to itself
    /// alone, a NaN to nothing.
    pub fn isclose | try_isclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Tensor {
        let dtype = promoted(&[&self.into(), &other.into()]);
        let compute = if dtype.is_floating() { dtype } else { DType::F64 };
        let ins = [self.array(), other.array()];
        Ok(Tensor::from_array(exec::map(&ISCLOSE, compute, &[rtol.into(), atol.into()], DType::Bool, &ins)?))
    }

    /// Whether all elements are close (see [`Tensor::isclose`]). PyTorch's and NumPy's defaults are `rtol` 1e-5 and
    /// `atol` 1e-8.
    ///
    /// ```
    /// use stridegrad_autograd::tensor;
    /// assert!(tensor![0.1 + 0.2].allclose(&tensor![0.3], 1e-5, 1e-8));
    /// ```
    pub fn allclose | try_allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> bool {
        self.try_isclose(other, rtol, atol)?.try_all()?.try_item::<bool>()
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("allclose", || {
        // Differences of 0, 1, 2, ... against tolerances between them.
        let small = Domain::Index(-3, 3);
        let close = |a: f64, b: f64| (a - b).abs() <= 0.75 + 0.5 * b.abs();
        let mut all = binary_samples(
            small,
            small,
            |a, b| a.try_isclose(b, 0.5, 0.75),
            move |a, b| f64::from(close(a, b)),
        );
        // Of two tensors, and of one with itself or moved a little.
        for shift in [None, Some(0), Some(1)] {
            let other = move |t: &[Tensor]| shift.map_or(Ok(t[1].clone()), |k| t[0].try_add(k));
            let pairs = move |r: &[Ref]| -> Vec<(f64, f64)> {
                let of = |(&a, &b): (&f64, &f64)| (a, shift.map_or(b, |k| a + f64::from(k)));
                r[0].data.iter().zip(&r[1].data).map(of).collect()
            };
            let whole = |v: bool| Ref::new(&[], vec![f64::from(v)]);
            let inputs = || vec![Input::new(&[2, 3, 4, 5], small), Input::new(&[2, 3, 4, 5], small)];
            all.push(Sample::new(
                format!("equal, shift {shift:?}"),
                inputs(),
                move |t| Tensor::try_full((), t[0].try_equal(&other(t)?)?),
                move |r| whole(pairs(r).iter().all(|(a, b)| a == b)),
            ));
            all.push(Sample::new(
                format!("allclose, shift {shift:?}"),
                inputs(),
                move |t| Tensor::try_full((), t[0].try_allclose(&other(t)?, 0.5, 0.75)?),
                move |r| whole(pairs(r).iter().all(|&(a, b)| close(a, b))),
            ));
        }
        all.into_iter().map(|s| s.no_grad().result(DType::Bool)).collect()
    })
}
