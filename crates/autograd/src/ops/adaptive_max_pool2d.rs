//! Maximum pooling to given sizes.

use stridegrad_core::{DType, Result, bail};

use super::cat::cat_in;
use super::pair::IntoPair;
use super::pooling::{batched, check_images};
use crate::Tensor;
use crate::faces::faces;

const OP: &str = "adaptive_max_pool2d";

/// The largest value of each of `outputs` stretches of `dim`.
fn stretches(x: &Tensor, dim: i64, outputs: usize) -> Result<Tensor> {
    let size = x.sizes()[dim as usize];
    if outputs.checked_add(1).and_then(|n| n.checked_mul(size)).is_none() {
        bail!(Overflow, OP, "{outputs} outputs of {size} positions do not fit");
    }
    if outputs == 0 {
        return x.try_narrow(dim, 0, 0);
    }
    let stretch = |i: usize| {
        let (start, end) = (i * size / outputs, ((i + 1) * size).div_ceil(outputs));
        Ok(x.try_narrow(dim, start as i64, (end - start) as i64)?.try_max_dim(dim, true)?.0)
    };
    let all = (0..outputs).map(stretch).collect::<Result<Vec<_>>>()?;
    cat_in(OP, &all.iter().collect::<Vec<_>>(), dim, x.suggested_format())
}

faces! {
    /// The largest values of images (N, C, H, W), or of one image (C, H, W), in as many windows as give the height and
    /// width asked for: output `i` of `o` is that of `floor(i L / o) .. ceil((i + 1) L / o)`.
    ///
    /// Of equal values the first in a window counts, row by row; the gradient goes to that element alone.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(5.0).view([1, 1, 1, 5]);
    /// assert_eq!(x.adaptive_max_pool2d([1, 3]).to_vec::<f32>(), [1.0, 3.0, 4.0]);
    /// ```
    pub fn adaptive_max_pool2d | try_adaptive_max_pool2d(&self, output_size: impl IntoPair) -> Tensor {
        let [p, q] = output_size.into_pair();
        if self.dtype() == DType::Bool {
            bail!(DType, OP, "max pooling of bool tensors is not supported");
        }
        batched(OP, self, |x| {
            check_images(OP, x)?;
            // Along rows first: of equal values, that leaves the first row's first.
            stretches(&stretches(x, 3, q)?, 2, p)?.try_contiguous_in(x.suggested_format())
        })
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let cases: [(&[usize], [usize; 2]); 7] = [
        (&[2, 3, 4, 4], [2, 2]),
        (&[2, 3, 5, 7], [3, 2]),
        (&[2, 3, 4, 4], [1, 1]),
        (&[1, 2, 2, 3], [3, 5]),
        (&[1, 2, 3, 3], [0, 2]),
        (&[0, 2, 3, 3], [2, 2]),
        (&[3, 5, 4], [2, 3]),
    ];
    OpSpec::new(OP, || {
        let case = |(sizes, [p, q]): (&'static [usize], [usize; 2])| {
            let (rank, mut result) = (sizes.len(), sizes.to_vec());
            result[rank - 2..].copy_from_slice(&[p, q]);
            Sample::new(
                format!("{sizes:?} to {p}x{q}"),
                vec![Input::new(sizes, Domain::Distinct)],
                move |t| t[0].try_adaptive_max_pool2d([p, q]),
                move |r| {
                    Ref::from_fn(&result, |i| {
                        let range = |k: usize, out: usize| {
                            let (at, size) = (i[rank - 2 + k], sizes[rank - 2 + k]);
                            at * size / out..((at + 1) * size).div_ceil(out)
                        };
                        let mut largest = f64::NEG_INFINITY;
                        for h in range(0, p) {
                            for w in range(1, q) {
                                let at: Vec<usize> = i[..rank - 2].iter().copied().chain([h, w]).collect();
                                largest = largest.max(r[0].at(&at));
                            }
                        }
                        largest
                    })
                },
            )
            .numbers()
            .channels_last_if(&[0])
        };
        cases.into_iter().map(case).collect()
    })
    .refusal("rank 2", ErrorKind::Shape, || Tensor::try_ones([4, 4])?.try_adaptive_max_pool2d(2))
    .refusal("no pixels", ErrorKind::Shape, || Tensor::try_ones([1, 1, 0, 4])?.try_adaptive_max_pool2d(2))
    .refusal("a bool", ErrorKind::DType, || Tensor::try_full([1, 1, 4, 4], true)?.try_adaptive_max_pool2d(2))
}
