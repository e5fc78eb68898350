//! The lower and upper triangle of matrices.

use stridegrad_core::kernel::MapKernel;
use stridegrad_core::{Error, ErrorKind, Layout, Result, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

stridegrad_cpu::map_kernel! {
    static TRIL("tril") = |[x, row, column], [k]| E::select((column - row).le(k), x, E::lit(0.0));
    static TRIU("triu") = |[x, row, column], [k]| E::select((column - row).ge(k), x, E::lit(0.0));
}

/// The places of a triangle kept, the others 0.
fn triangle(kernel: &'static MapKernel, x: &Tensor, k: i64) -> Result<Tensor> {
    let &[.., rows, columns] = x.sizes() else {
        return Err(Error::new(
            ErrorKind::Shape,
            kernel.name,
            format!("expected a tensor with at least 2 dims, but got sizes {:?}", x.sizes()),
        ));
    };
    let count = |n: usize| Tensor::try_arange(n as i64)?.try_to_device(x.device());
    let (row, column) = (count(rows)?.try_unsqueeze(1)?, count(columns)?);
    // Beyond the matrix, further diagonals are all alike.
    let k = k.clamp(-(rows as i64) - 1, columns as i64 + 1);
    let rec = Recorder::new(kernel.name, &[x]);
    let ins = [x.array(), row.array(), column.array()];
    let out = exec::map_with_layout(
        kernel,
        x.dtype(),
        &[k.into()],
        x.dtype(),
        Layout::contiguous(x.sizes())?,
        &ins,
    )?;
    rec.finish(out, move |_, g| Ok(vec![Some(triangle(kernel, g, k)?)]))
}

faces! {
    /// The elements of each matrix (the last two dims) on and below the `k`-th diagonal, the others 0. `k` 0 is the main
    /// diagonal, positive ones lie above it. The result is row-major.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::ones([2, 2]).tril(0).to_vec::<f32>(), [1.0, 0.0, 1.0, 1.0]);
    /// ```
    pub fn tril | try_tril(&self, k: i64) -> Tensor {
        triangle(&TRIL, self, k)
    }

    /// The elements of each matrix on and above the `k`-th diagonal, the others 0; see [`Tensor::tril`].
    pub fn triu | try_triu(&self, k: i64) -> Tensor {
        triangle(&TRIU, self, k)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("tril", || {
        let mut all = Vec::new();
        for (sizes, k) in [
            (&[3, 4][..], 0),
            (&[3, 4], 1),
            (&[4, 3], -1),
            (&[2, 3, 4, 5], 1),
            (&[3, 3], i64::MAX),
            (&[3, 3], i64::MIN),
            (&[0, 3], 0),
            (&[131, 1031], 5),
        ] {
            let keep = move |lower: bool, i: &[usize]| {
                let (row, column) = (i[i.len() - 2] as i128, i[i.len() - 1] as i128);
                if lower { column - row <= k as i128 } else { column - row >= k as i128 }
            };
            for lower in [true, false] {
                let name = if lower { "tril" } else { "triu" };
                let s = Sample::new(
                    format!("{name} {sizes:?} k {k}"),
                    vec![Input::new(sizes, Domain::Any)],
                    move |t| if lower { t[0].try_tril(k) } else { t[0].try_triu(k) },
                    move |r| Ref::from_fn(sizes, |i| if keep(lower, i) { r[0].at(i) } else { 0.0 }),
                )
                .numbers()
                .row_major();
                all.push(if sizes[0] > 100 { s.no_grad() } else { s });
            }
        }
        all
    })
    .refusal("one dim", ErrorKind::Shape, || Tensor::try_ones([3])?.try_tril(0))
}
