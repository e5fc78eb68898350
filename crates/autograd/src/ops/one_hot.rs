//! Class numbers as indicator vectors.

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{Array, DType, Error, ErrorKind, Layout, exec};

use super::gather::index_arg;
use crate::Tensor;
use crate::faces::faces;

faces! {
    /// A new last dim of `num_classes`, with 1 at the position each element names and 0 elsewhere, as `i64`. -1 takes one
    /// more than the largest element. Panics if an element is outside `0..num_classes`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[2i64, 0], [2]);
    /// assert_eq!(x.one_hot(3).to_vec::<i64>(), [0, 0, 1, 1, 0, 0]);
    /// ```
    pub fn one_hot | try_one_hot(&self, num_classes: i64) -> Tensor {
        let index = index_arg("one_hot", self)?;
        let n = match num_classes {
            -1 if index.numel() > 0 => index.try_max()?.try_item::<i64>()?.saturating_add(1).max(1),
            n => n,
        };
        if n <= 0 {
            return Err(Error::new(ErrorKind::Argument, "one_hot", format!("cannot make {num_classes} classes of sizes {:?}", self.sizes()))
                .hint("give the number of classes, at least 1"));
        }
        let mut sizes = self.sizes().to_vec();
        sizes.push(n as usize);
        let out = Array::zeros(Layout::contiguous(&sizes)?, DType::I64, self.device())?;
        let places = index.try_unsqueeze(-1)?;
        let ones = Tensor::try_full_on(places.sizes(), 1, DType::I64, self.device())?;
        exec::index_into("one_hot", IndexPass::Scatter, self.dim(), &out, ones.array(), places.array())?;
        Ok(Tensor::from_array(out))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("one_hot", || {
        [&[2, 3, 4][..], &[7], &[], &[0, 3], &[300]]
            .into_iter()
            .map(|sizes| {
                let mut result = sizes.to_vec();
                result.push(5);
                Sample::new(
                    format!("{sizes:?}"),
                    vec![Input::new(sizes, Domain::Index(0, 5))],
                    |t| t[0].try_one_hot(5),
                    move |r| {
                        Ref::from_fn(&result, |i| {
                            let (class, at) = i.split_last().map_or((0, &[][..]), |(c, at)| (*c, at));
                            f64::from(r[0].at(at) == class as f64)
                        })
                    },
                )
                .no_grad()
            })
            .collect()
    })
    .refusal("a class out of range", ErrorKind::Index, || Tensor::try_full([2], 3)?.try_one_hot(3))
    .refusal("a negative class", ErrorKind::Index, || Tensor::try_full([2], -1)?.try_one_hot(3))
    .refusal("floats", ErrorKind::DType, || Tensor::try_ones([2])?.try_one_hot(3))
}
