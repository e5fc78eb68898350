//! The angle of a point.

use super::elementwise::{binary, float_of, promoted};
use crate::faces::faces;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static ATAN2("atan2") = |[y, x], []| y.binary(stridegrad_core::Binary::Atan2, x);
}

faces! {
    /// The angle in radians of the point `(other, self)`, in [-pi, pi], broadcast and promoted; integers give `f32`.
    /// The gradient at the origin is NaN, as in PyTorch.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let y = Tensor::from_slice(&[1.0f64, 0.0], [2]);
    /// assert_eq!(y.atan2(&Tensor::zeros([2])).to_vec::<f64>()[1], 0.0);
    /// ```
    pub fn atan2 | try_atan2(&self, other: impl Into<Operand>) -> Tensor {
        let (a, b) = (Operand::from(self), other.into());
        let dtype = float_of(promoted(&[&a, &b]));
        binary(&ATAN2, &a, &b, dtype, dtype,
            |rec| {
                if rec.any() {
                    rec.save_input(0);
                    rec.save_input(1);
                }
            },
            |ctx, g| {
                let (y, x) = (ctx.input(0)?, ctx.input(1)?);
                // g / (y^2 + x^2), to be multiplied by x and by -y.
                let scaled = g.try_div(y.try_square()?.try_add(x.try_square()?)?)?;
                Ok([
                    ctx.needs(0).then(|| scaled.try_mul(&x)).transpose()?,
                    ctx.needs(1).then(|| scaled.try_mul(&y)?.try_neg()).transpose()?,
                ])
            })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("atan2", || {
        binary_samples(Domain::AwayFromZero, Domain::AwayFromZero, |a, b| a.try_atan2(b), f64::atan2)
    })
    .refusal("shapes that do not broadcast", stridegrad_core::ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_atan2(&Tensor::try_ones([4])?)
    })
}
