//! Other sizes over the same elements: `view`, `reshape`, `flatten`, `ravel`, `unflatten`, `view_dtype`.

use stridegrad_core::{DType, Error, ErrorKind, IntoDims, Layout, Result, infer_sizes};

use super::contiguous::materialize;
use crate::Tensor;
use crate::faces::faces;

fn view(x: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let sizes = sizes.to_vec();
    x.make_view("view", &move |l| l.view(&sizes))
}

/// A view where the strides allow it, else a row-major copy: counted by the audit.
pub(crate) fn reshape(op: &'static str, x: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let wanted = infer_sizes(op, sizes, x.numel())?;
    let sizes: Vec<i64> = wanted.iter().map(|&s| s as i64).collect();
    if x.layout().try_view(&wanted).is_some() {
        return view(x, &sizes);
    }
    let reason = "the strides cannot express the new sizes";
    view(&materialize(x, Layout::contiguous(x.sizes())?, op, reason)?, &sizes)
}

fn flat_sizes(x: &Tensor, start: i64, end: i64) -> Result<Vec<i64>> {
    Ok(x.layout().flatten_sizes(start, end)?.iter().map(|&s| s as i64).collect())
}

impl Tensor {
    /// In words, whether `sizes` are a view of this tensor: the view's strides, or the dims where its own break.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let t = Tensor::arange(24.0).view([2, 3, 4]);
    /// let merged = t.permute([1, 2, 0]).explain_view([12, 2]);
    /// assert_eq!(merged, "sizes [12, 2] are a view of sizes [3, 4, 2] with strides [4, 1, 12]: strides [1, 12]");
    /// assert!(t.permute([0, 2, 1]).explain_view([2, 12]).contains("which do not lie one after the other in memory"));
    /// ```
    pub fn explain_view(&self, sizes: impl IntoDims) -> String {
        match self.layout().view(&sizes.into_dims()) {
            Ok(view) => format!(
                "sizes {:?} are a view of sizes {:?} with strides {:?}: strides {:?}",
                view.sizes(),
                self.sizes(),
                self.strides(),
                view.strides()
            ),
            Err(e) => e.to_string(),
        }
    }
}

faces! {
    /// The same elements with other sizes, without a copy; one size may be -1. Refused where the strides cannot
    /// express it: the error names the dim where they break.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let t = Tensor::arange(24.0).view([2, 3, 4]);
    /// let y = t.permute([1, 2, 0]).view([12, 2]);
    /// assert!(y.shares_storage(&t) && y.strides() == [1, 12]);
    /// ```
    pub fn view | try_view(&self, sizes: impl IntoDims) -> Tensor {
        view(self, &sizes.into_dims())
    }

    /// The same elements with other sizes: a view where the strides allow it, else a row-major copy.
    pub fn reshape | try_reshape(&self, sizes: impl IntoDims) -> Tensor {
        reshape("reshape", self, &sizes.into_dims())
    }

    /// Dims `start` to `end`, both included, made one: a view where the strides allow it (PyTorch's convention;
    /// NumPy's `flatten` always copies). A 0-dim tensor gives one of size 1.
    pub fn flatten | try_flatten(&self, start: i64, end: i64) -> Tensor {
        reshape("flatten", self, &flat_sizes(self, start, end)?)
    }

    /// All elements in one dim: a view where the strides allow it, else a row-major copy.
    pub fn ravel | try_ravel(&self) -> Tensor {
        reshape("ravel", self, &[self.numel() as i64])
    }

    /// Dim `dim` split into several, one of which may be -1; always a view.
    pub fn unflatten | try_unflatten(&self, dim: i64, sizes: impl IntoDims) -> Tensor {
        let sizes = sizes.into_dims();
        self.make_view("unflatten", &move |l| l.unflatten(dim, &sizes))
    }

    /// The same bytes read as another dtype, by PyTorch's rules: the last dim grows or shrinks where the element
    /// sizes differ. Refused for a tensor that requires grad.
    pub fn view_dtype | try_view_dtype(&self, dtype: DType) -> Tensor {
        if self.requires_grad() && dtype != self.dtype() {
            return Err(Error::new(ErrorKind::Autograd, "view_dtype", "bits reinterpreted as another dtype have no gradient")
                .hint("use detach() first, or convert the values with to_dtype()"));
        }
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        Ok(Tensor::from_array(self.array().bitcast(dtype)?))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let split = |from: &[usize], to: &'static [usize]| {
        Sample::new(
            format!("{from:?} as {to:?}"),
            vec![Input::new(from, Domain::Any)],
            move |t| t[0].try_view(to),
            move |r| Ref::new(to, r[0].data.clone()),
        )
        .numbers()
        .view()
    };
    let merge = |name: &str, from: &[usize], to: &'static [usize], run: fn(&Tensor) -> Result<Tensor>| {
        Sample::new(
            format!("{name} {from:?} to {to:?}"),
            vec![Input::new(from, Domain::Any)],
            move |t| run(&t[0]),
            move |r| Ref::new(to, r[0].data.clone()),
        )
        .may_alias()
    };
    OpSpec::new("view", || {
        vec![
            split(&[2, 3, 4], &[2, 3, 2, 2]),
            split(&[6], &[2, 1, 3]),
            split(&[4, 6], &[2, 2, 1, 3, 2]),
            split(&[], &[1, 1]),
            split(&[1], &[]),
            split(&[2, 0, 3], &[2, 0, 1, 3]),
            Sample::new(
                "unflatten [2, 6] at 1 as [3, -1]",
                vec![Input::new(&[2, 6], Domain::Any)],
                |t| t[0].try_unflatten(1, [3, -1]),
                |r| Ref::new(&[2, 3, 2], r[0].data.clone()),
            )
            .view(),
            merge("reshape", &[2, 3, 4], &[4, 6], |x| x.try_reshape([4, -1])),
            merge("reshape", &[2, 3, 4, 5], &[6, 20], |x| x.try_reshape([6, 20])),
            merge("flatten", &[2, 3, 4, 5], &[2, 60], |x| x.try_flatten(1, -1)),
            merge("flatten", &[], &[1], |x| x.try_flatten(0, -1)),
            merge("ravel", &[3, 4], &[12], Tensor::try_ravel),
            Sample::new(
                "view_dtype there and back",
                vec![Input::new(&[2, 3, 4], Domain::Any)],
                |t| {
                    let bits = match t[0].dtype().size() {
                        8 => DType::I64,
                        4 => DType::I32,
                        _ => DType::I16,
                    };
                    t[0].detach().try_view_dtype(bits)?.try_view_dtype(t[0].dtype())
                },
                |r| r[0].clone(),
            )
            .no_grad()
            .view(),
        ]
    })
    .refusal("another number of elements", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_view([5, 5]))
    .refusal("two sizes to be inferred", ErrorKind::Shape, || Tensor::try_ones([2, 3])?.try_view([-1, -1]))
    .refusal("dims that do not merge", ErrorKind::NotViewable, || {
        Tensor::try_ones([2, 3])?.try_t()?.try_view(6)
    })
    .refusal("bits of a tensor that requires grad", ErrorKind::Autograd, || {
        Tensor::try_ones([2])?.try_requires_grad_(true)?.try_view_dtype(DType::I32)
    })
}
