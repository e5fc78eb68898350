//! Limiting values to an interval.

use stridegrad_core::{Error, ErrorKind, Result, Scalar};

use super::elementwise::{Save, linear, no_bool, promoted, unary_as};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    // NaN passes through, and so does a NaN bound; the upper bound wins over a lower one beyond it.
    static CLAMP("clamp") = |[x], [low, high]| x.max(low).min(high);
    // A bound that is not there is infinite: at infinity itself the gradient then passes.
    static CLAMP_GRAD("clamp_backward") = |[g, x], [low, high]| {
        let above = E::or(x.gt(low), low.eq(E::lit(f64::NEG_INFINITY)));
        let below = E::or(x.lt(high), high.eq(E::lit(f64::INFINITY)));
        E::select(E::and(above, below), g, E::lit(0.0))
    };
}

/// A bound of [`Tensor::clamp`]: a number, or `None` for no bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound(Option<Scalar>);

impl From<Option<Scalar>> for Bound {
    fn from(v: Option<Scalar>) -> Bound {
        Bound(v)
    }
}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for Bound { fn from(v: $t) -> Bound { Bound(Some(v.into())) } }
    )*};
}
from!(f64, f32, i64, i32, usize, Scalar);

fn clamp(x: &Tensor, min: Bound, max: Bound) -> Result<Tensor> {
    if min.0.or(max.0).is_none() {
        return Err(Error::new(ErrorKind::Argument, "clamp", "at least one of min and max must be a number"));
    }
    no_bool("clamp", x.dtype(), "convert it with to_dtype()")?;
    let given: Vec<Operand> = [min.0, max.0].into_iter().flatten().map(Operand::Scalar).collect();
    let dtype = promoted(&std::iter::once(&x.into()).chain(&given).collect::<Vec<_>>());
    let params = match dtype.is_floating() {
        true => {
            [min.0.unwrap_or(Scalar::Float(f64::NEG_INFINITY)), max.0.unwrap_or(Scalar::Float(f64::INFINITY))]
        }
        false => [min.0.unwrap_or(Scalar::Int(i64::MIN)), max.0.unwrap_or(Scalar::Int(i64::MAX))],
    };
    unary_as(&CLAMP, x, &params, dtype, Save::Input, move |ctx, g| {
        linear(&CLAMP_GRAD, &params, g, &[&ctx.input(0)?])
    })
}

faces! {
    /// Values below `min` replaced by it, values above `max` by that; `None` stands for no bound. If `min` is
    /// above `max`, everything becomes `max`; NaN stays, and a NaN bound makes everything NaN. Integers with a
    /// floating bound give `f32`.
    ///
    /// The gradient is 1 strictly inside the interval and 0 outside; **at a bound it is 0**, as in PyTorch since 2.14.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[-1.0f32, 0.5, 3.0], [3]);
    /// assert_eq!(x.clamp(0.0, 1.0).to_vec::<f32>(), [0.0, 0.5, 1.0]);
    /// assert_eq!(x.clamp(None, 1.0).to_vec::<f32>(), [-1.0, 0.5, 1.0]);
    /// ```
    pub fn clamp | try_clamp(&self, min: impl Into<Bound>, max: impl Into<Bound>) -> Tensor {
        clamp(self, min.into(), max.into())
    }

    /// Values below `min` replaced by it; see [`Tensor::clamp`].
    pub fn clamp_min | try_clamp_min(&self, min: impl Into<Scalar>) -> Tensor {
        clamp(self, Bound(Some(min.into())), Bound(None))
    }

    /// Values above `max` replaced by it; see [`Tensor::clamp`].
    pub fn clamp_max | try_clamp_max(&self, max: impl Into<Scalar>) -> Tensor {
        clamp(self, Bound(None), Bound(Some(max.into())))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("clamp", || {
        // Gradients are checked off the bounds: -0.1 and 2.5 are no values of the domain.
        let mut all = unary_samples(Domain::AwayFromZero, |x| x.try_clamp(-0.1, 2.5), |x| x.max(-0.1));
        all.extend(unary_samples(Domain::AwayFromZero, |x| x.try_clamp(None, 0.1), |x| x.min(0.1)));
        all.extend(unary_samples(Domain::AwayFromZero, |x| x.try_clamp_min(-0.1), |x| x.max(-0.1)));
        all.extend(unary_samples(Domain::AwayFromZero, |x| x.try_clamp_max(0.1), |x| x.min(0.1)));
        all.extend(
            unary_samples(Domain::Any, |x| x.try_clamp(-1, 1), |x| x.clamp(-1.0, 1.0))
                .into_iter()
                .map(|s| s.numbers().no_grad()),
        );
        all
    })
    .refusal("no bound", ErrorKind::Argument, || Tensor::try_ones([2])?.try_clamp(None, None))
    .refusal("a bool", ErrorKind::DType, || Tensor::try_full([2], true)?.try_clamp(0, 1))
}
