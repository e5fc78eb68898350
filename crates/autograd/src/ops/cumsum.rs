//! Running sums.

use stridegrad_core::kernel::Scan;
use stridegrad_core::{DType, exec, wrap_dim};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

faces! {
    /// The running sum along `dim`; integers and bools give `i64`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::from_slice(&[1i32, 2, 3], [3]).cumsum(0).to_vec::<i64>(), [1, 3, 6]);
    /// ```
    pub fn cumsum | try_cumsum(&self, dim: i64) -> Tensor {
        let d = wrap_dim("cumsum", dim, self.dim())?;
        let x = if self.dtype().is_floating() { self.clone() } else { self.try_to_dtype(DType::I64)? };
        if x.dim() == 0 {
            return x.try_copy();
        }
        let rec = Recorder::new("cumsum", &[&x]);
        let out = exec::scan("cumsum", Scan::Sum, d, x.array())?;
        // Element i reaches all sums from i on: the running sum from the other end.
        rec.finish(out, move |_, g| Ok(vec![Some(g.try_reversed(dim)?.try_cumsum(dim)?.try_reversed(dim)?)]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("cumsum", || {
        let cases: [(&[usize], i64); 8] = [
            (&[2, 3, 4, 5], 1),
            (&[2, 3, 4, 5], -1),
            (&[3, 4], 0),
            (&[7], 0),
            (&[], 0),
            (&[2, 0, 3], 1),
            (&[70, 300], 0),
            (&[70, 300], 1),
        ];
        let samples = cases.into_iter().map(|(sizes, dim)| {
            let s = Sample::new(
                format!("{sizes:?} dim {dim}"),
                vec![Input::new(sizes, Domain::Any)],
                move |t| t[0].try_cumsum(dim),
                move |r| {
                    let d = if dim < 0 { sizes.len() - 1 } else { dim as usize };
                    let upto = |i: &[usize]| {
                        let mut at = i.to_vec();
                        (0..=i[d])
                            .map(|k| {
                                at[d] = k;
                                r[0].at(&at)
                            })
                            .sum()
                    };
                    if sizes.is_empty() { r[0].clone() } else { Ref::from_fn(sizes, upto) }
                },
            )
            .row_major();
            if sizes.iter().product::<usize>() > 1000 { s.no_grad().tolerance(16.0) } else { s }
        });
        samples.collect()
    })
    .refusal("a dim out of range", stridegrad_core::ErrorKind::Dim, || Tensor::try_ones([2])?.try_cumsum(1))
}
