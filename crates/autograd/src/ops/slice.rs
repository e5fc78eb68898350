//! Ranges of a dim: `slice` and `narrow`.

use crate::Tensor;
use crate::faces::faces;

faces! {
    /// Elements `start..end` of `dim`, every `step`-th: a view. Bounds are Python's: negative ones count from the
    /// end, and both are clamped. A negative step walks backwards, as in NumPy (PyTorch refuses it).
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(5.0);
    /// assert_eq!(x.slice(0, Some(1), None, 2).to_vec::<f32>(), [1.0, 3.0]);
    /// assert_eq!(x.slice(0, None, None, -1).to_vec::<f32>(), [4.0, 3.0, 2.0, 1.0, 0.0]);
    /// ```
    pub fn slice | try_slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Tensor {
        self.make_view("slice", &move |l| l.slice(dim, start, end, step))
    }

    /// Elements `start..start + length` of `dim`: a view. Out of range is refused, never clamped.
    pub fn narrow | try_narrow(&self, dim: i64, start: i64, length: i64) -> Tensor {
        self.make_view("narrow", &move |l| l.narrow(dim, start, length))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::{ErrorKind, Result};

    use crate::spec::*;
    // The sizes of the result, and where dim `dim` starts and how it steps.
    let sample = |name: &str,
                  sizes: &[usize],
                  dim: usize,
                  (length, start, step): (usize, i64, i64),
                  run: fn(&Tensor) -> Result<Tensor>| {
        Sample::new(
            format!("{name} of {sizes:?}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| run(&t[0]),
            move |r| {
                let mut to = r[0].sizes.clone();
                to[dim] = length;
                r[0].rearranged(&to, |i| {
                    let mut from = i.to_vec();
                    from[dim] = (start + step * i[dim] as i64) as usize;
                    from
                })
            },
        )
        .numbers()
        .view()
    };
    OpSpec::new("slice", || {
        vec![
            sample("[:, 1::2]", &[2, 5, 3], 1, (2, 1, 2), |x| x.try_slice(1, Some(1), None, 2)),
            sample("[..., ::-1]", &[2, 3, 4, 5], 3, (5, 4, -1), |x| x.try_slice(-1, None, None, -1)),
            sample("[-100:100]", &[3, 4], 0, (3, 0, 1), |x| x.try_slice(0, Some(-100), Some(100), 1)),
            sample("[4:0:-2]", &[6], 0, (2, 4, -2), |x| x.try_slice(0, Some(4), Some(0), -2)),
            sample("[:, 3:1]", &[2, 4], 1, (0, 3, 1), |x| x.try_slice(1, Some(3), Some(1), 1)),
            sample("narrow(1, 1, 2)", &[2, 4, 3], 1, (2, 1, 1), |x| x.try_narrow(1, 1, 2)),
            sample("narrow(-1, -2, 2)", &[3, 4], 1, (2, 2, 1), |x| x.try_narrow(-1, -2, 2)),
            sample("narrow(0, 3, 0)", &[3, 4], 0, (0, 3, 1), |x| x.try_narrow(0, 3, 0)),
        ]
    })
    .refusal("step 0", ErrorKind::Argument, || Tensor::try_ones([2, 3])?.try_slice(0, None, None, 0))
    .refusal("beyond the end", ErrorKind::Index, || Tensor::try_ones([2, 3])?.try_narrow(1, 2, 2))
    .refusal("a negative length", ErrorKind::Argument, || Tensor::try_ones([2, 3])?.try_narrow(1, 0, -1))
    .refusal("a 0-dim tensor", ErrorKind::Dim, || Tensor::try_ones(())?.try_slice(0, None, None, 1))
}
