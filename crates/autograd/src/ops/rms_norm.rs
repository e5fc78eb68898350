//! Division by the root mean square of the last dims.

use stridegrad_core::{IntoDims, bail};

use super::mean::want_float;
use crate::Tensor;
use crate::create::sizes_arg;
use crate::faces::faces;

faces! {
    /// `self / sqrt(mean(self^2) + eps) * weight` over the last dims, whose sizes are `normalized_shape` (the weight's too).
    ///
    /// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[3.0f32, -3.0], [2]);
    /// assert_eq!(x.rms_norm([2], None, 0.0).to_vec::<f32>(), [1.0, -1.0]);
    /// ```
    pub fn rms_norm | try_rms_norm(&self, normalized_shape: impl IntoDims, weight: Option<&Tensor>, eps: f64) -> Tensor {
        let op = "rms_norm";
        let sizes = sizes_arg(op, normalized_shape)?;
        want_float(op, self)?;
        if sizes.is_empty() || !self.sizes().ends_with(&sizes) {
            bail!(Shape, op, "given normalized_shape={sizes:?}, expected input with shape [*, ..] ending in it, but got input of size {:?}", self.sizes());
        }
        if let Some(w) = weight {
            want_float(op, w)?;
            if w.sizes() != sizes {
                bail!(Shape, op, "expected weight to be of same shape as normalized_shape {sizes:?}, but got {:?}", w.sizes());
            }
        }
        // In the wider dtype, rounded once.
        let x = self.try_to_dtype(self.dtype().compute_float())?;
        let dims: Vec<i64> = (1..=sizes.len() as i64).map(|d| -d).collect();
        let scale = x.try_square()?.try_mean_dims(dims, true)?.try_add(eps)?.try_rsqrt()?;
        let y = x.try_mul(scale)?;
        match weight {
            Some(w) => y.try_mul(w)?.try_to_dtype(self.dtype()),
            None => y.try_to_dtype(self.dtype()),
        }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    OpSpec::new("rms_norm", || {
        let mut all = Vec::new();
        let cases: [(&[usize], usize); 4] = [(&[2, 3, 4, 5], 1), (&[2, 3, 4], 2), (&[7], 1), (&[70, 130], 1)];
        for (sizes, over) in cases {
            for weight in [false, true] {
                let last = &sizes[sizes.len() - over..];
                let mut inputs = vec![Input::new(sizes, Domain::Any)];
                inputs.extend(weight.then(|| Input::new(last, Domain::Any)));
                let s = Sample::new(
                    format!("{sizes:?} over {over} weight {weight}"),
                    inputs,
                    move |t| t[0].try_rms_norm(last, t.get(1), 1e-5),
                    move |r| {
                        let n = last.iter().product::<usize>();
                        let rows = r[0].data.chunks(n).flat_map(|row| {
                            let square = row.iter().map(|v| v * v).sum::<f64>() / n as f64;
                            row.iter().map(move |v| v / (square + 1e-5).sqrt())
                        });
                        let weight = |i: usize| r.get(1).map_or(1.0, |w| w.data[i % n]);
                        Ref::new(&r[0].sizes, rows.enumerate().map(|(i, v)| v * weight(i)).collect())
                    },
                )
                .tolerance(4.0);
                all.push(if sizes == [70, 130] { s.no_grad() } else { s });
            }
        }
        all
    })
    .refusal("other sizes", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_rms_norm([2], None, 1e-5))
    .refusal("integers", ErrorKind::DType, || Tensor::try_full([2, 3], 1)?.try_rms_norm([3], None, 1e-5))
    .refusal("a weight of other sizes", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_rms_norm([3], Some(&Tensor::try_ones([2])?), 1e-5)
    })
}
