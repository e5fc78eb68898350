//! Which elements are NaN, infinite, or neither.

use super::elementwise::predicate;
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static ISNAN("isnan") = |[x], []| E::from_mask(x.is_nan());
    static ISINF("isinf") = |[x], []| E::from_mask(x.abs().eq(E::lit(f64::INFINITY)));
    static ISPOSINF("isposinf") = |[x], []| E::from_mask(x.eq(E::lit(f64::INFINITY)));
    static ISNEGINF("isneginf") = |[x], []| E::from_mask(x.eq(E::lit(f64::NEG_INFINITY)));
    // No integer is infinite or NaN.
    static IS_NUMBER("isfinite") = |[x], []| E::from_mask(x.eq(x));
    static ISFINITE("isfinite") = |[x], []| E::from_mask(x.abs().lt(E::lit(f64::INFINITY)));
}

faces! {
    /// Whether each element is NaN, as bools; no integer is.
    pub fn isnan | try_isnan(&self) -> Tensor {
        predicate(&ISNAN, self)
    }

    /// Whether each element is plus or minus infinity, as bools; no integer is.
    pub fn isinf | try_isinf(&self) -> Tensor {
        predicate(if self.dtype().is_floating() { &ISINF } else { &ISNAN }, self)
    }

    /// Whether each element is plus infinity, as bools; no integer is.
    pub fn isposinf | try_isposinf(&self) -> Tensor {
        predicate(if self.dtype().is_floating() { &ISPOSINF } else { &ISNAN }, self)
    }

    /// Whether each element is minus infinity, as bools; no integer is.
    pub fn isneginf | try_isneginf(&self) -> Tensor {
        predicate(if self.dtype().is_floating() { &ISNEGINF } else { &ISNAN }, self)
    }

    /// Whether each element is neither NaN nor infinite, as bools; every integer is.
    pub fn isfinite | try_isfinite(&self) -> Tensor {
        predicate(if self.dtype().is_floating() { &ISFINITE } else { &IS_NUMBER }, self)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("isnan", || {
        // 1/0, -1/0 and 0/0 beside numbers, from small integers.
        let special = |x: &Tensor| x.try_div(x.try_abs()?.try_sub(1)?);
        let value = |x: f64| x / (x.abs() - 1.0);
        let range = Domain::Index(-1, 4);
        let mut all =
            unary_samples(range, move |x| special(x)?.try_isnan(), move |x| f64::from(value(x).is_nan()));
        all.extend(unary_samples(
            range,
            move |x| special(x)?.try_isinf(),
            move |x| f64::from(value(x).is_infinite()),
        ));
        all.extend(unary_samples(
            range,
            move |x| special(x)?.try_isposinf(),
            move |x| f64::from(value(x) == f64::INFINITY),
        ));
        all.extend(unary_samples(
            range,
            move |x| special(x)?.try_isneginf(),
            move |x| f64::from(value(x) == f64::NEG_INFINITY),
        ));
        all.extend(unary_samples(
            range,
            move |x| special(x)?.try_isfinite(),
            move |x| f64::from(value(x).is_finite()),
        ));
        all.extend(unary_samples(Domain::Any, |x| x.try_isfinite(), |_| 1.0));
        all.into_iter().map(|s| s.numbers().no_grad().result(stridegrad_core::DType::Bool)).collect()
    })
}
