//! Joining tensors: `cat` and `stack`.

use std::borrow::Borrow;

use stridegrad_core::{
    Array, DType, Error, ErrorKind, Layout, MemoryFormat, Result, TypeArg, exec, result_type, wrap_dim,
};

use crate::Tensor;
use crate::faces::static_faces;
use crate::graph::{BackwardFn, Recorder};

fn refuse(op: &'static str, kind: ErrorKind, message: String) -> Error {
    Error::new(kind, op, message)
}

/// The promoted dtype of some tensors.
fn dtype_of(parts: &[&Tensor]) -> DType {
    result_type(&parts.iter().map(|t| t.type_arg()).collect::<Vec<TypeArg>>())
}

fn cat(op: &'static str, parts: &[&Tensor], dim: i64) -> Result<Tensor> {
    let format = match parts.iter().all(|t| t.suggested_format() == MemoryFormat::ChannelsLast) {
        true => MemoryFormat::ChannelsLast,
        false => MemoryFormat::Contiguous,
    };
    cat_in(op, parts, dim, format)
}

/// As [`Tensor::cat`], with a result in `format`.
pub(crate) fn cat_in(op: &'static str, parts: &[&Tensor], dim: i64, format: MemoryFormat) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(refuse(op, ErrorKind::Argument, "expected a non-empty list of tensors".into()));
    };
    if let Some(k) = parts.iter().position(|t| t.dim() == 0) {
        return Err(refuse(
            op,
            ErrorKind::Dim,
            format!("zero-dimensional tensor (at position {k}) cannot be concatenated"),
        )
        .hint("stack() joins 0-dim tensors"));
    }
    let dim = wrap_dim(op, dim, first.dim())?;
    let mut total = 0usize;
    for (k, t) in parts.iter().enumerate() {
        let fits =
            t.dim() == first.dim() && (0..t.dim()).all(|i| i == dim || t.sizes()[i] == first.sizes()[i]);
        if !fits {
            return Err(refuse(
                op,
                ErrorKind::Shape,
                format!(
                    "sizes of tensors must match except in dimension {dim}: tensor 0 has {:?}, tensor {k} has {:?}",
                    first.sizes(),
                    t.sizes()
                ),
            ));
        }
        total = total
            .checked_add(t.sizes()[dim])
            .ok_or_else(|| refuse(op, ErrorKind::Overflow, "the joined dimension is too long".into()))?;
    }
    let mut sizes = first.sizes().to_vec();
    sizes[dim] = total;
    let layout = Layout::contiguous(&sizes)?.in_format(format)?;
    let rec = Recorder::new(op, parts);
    let arrays: Vec<&Array> = parts.iter().map(|t| t.array()).collect();
    let out = exec::cat(op, dim, layout, dtype_of(parts), &arrays)?;
    let lengths: Vec<i64> = parts.iter().map(|t| t.sizes()[dim] as i64).collect();
    let backward: BackwardFn = Box::new(move |ctx, grads| {
        let Some(g) = &grads[0] else { return Ok(vec![None; lengths.len()]) };
        let mut start = 0;
        let mut all = Vec::with_capacity(lengths.len());
        for (i, &length) in lengths.iter().enumerate() {
            // A view of the gradient: nothing is copied.
            let piece = ctx.needs(i).then(|| g.try_narrow(dim as i64, start, length)).transpose()?;
            all.push(piece.map_or(Ok(None), |p| ctx.reduce_to(i, p))?);
            start += length;
        }
        Ok(all)
    });
    Ok(rec.finish_many(vec![out], backward)?.remove(0))
}

static_faces! {
    /// The tensors one after another along `dim`, promoted to one dtype. Sizes must agree in the other dims.
    ///
    /// The result is channels-last if all of them are, else row-major.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let (a, b) = (Tensor::ones([2, 1]), Tensor::zeros([2, 2]));
    /// assert_eq!(Tensor::cat(&[a, b], 1).to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    /// ```
    pub fn cat | try_cat(tensors: &[impl Borrow<Tensor>], dim: i64) -> Tensor {
        cat("cat", &tensors.iter().map(Borrow::borrow).collect::<Vec<_>>(), dim)
    }

    /// Tensors of equal sizes along a new dim, before place `dim` (negative: counted from the end of the result).
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let a = Tensor::arange(3.0);
    /// assert_eq!(Tensor::stack(&[&a, &a], 1).sizes(), [3, 2]);
    /// ```
    pub fn stack | try_stack(tensors: &[impl Borrow<Tensor>], dim: i64) -> Tensor {
        let parts: Vec<&Tensor> = tensors.iter().map(Borrow::borrow).collect();
        let Some(first) = parts.first() else {
            return Err(refuse("stack", ErrorKind::Argument, "expected a non-empty list of tensors".into()));
        };
        if let Some(k) = parts.iter().position(|t| t.sizes() != first.sizes()) {
            return Err(refuse("stack", ErrorKind::Shape, format!(
                "expected tensors of equal sizes: tensor 0 has {:?}, tensor {k} has {:?}", first.sizes(), parts[k].sizes())));
        }
        let dim = wrap_dim("stack", dim, first.dim() + 1)?;
        // Joined along the dim that the new one stands before, then split: so the parts keep their format.
        if dim < first.dim() {
            let joined = cat("stack", &parts, dim as i64)?;
            return joined.try_unflatten(dim as i64, [parts.len(), first.sizes()[dim]]);
        }
        let parts = parts.iter().map(|t| t.try_unsqueeze(dim as i64)).collect::<Result<Vec<_>>>()?;
        cat("stack", &parts.iter().collect::<Vec<_>>(), dim as i64)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    fn joined(r: &[Ref], dim: usize) -> Ref {
        let mut sizes = r[0].sizes.clone();
        sizes[dim] = r.iter().map(|p| p.sizes[dim]).sum();
        Ref::from_fn(&sizes, |i| {
            let mut at = i.to_vec();
            for part in r {
                if at[dim] < part.sizes[dim] {
                    return part.at(&at);
                }
                at[dim] -= part.sizes[dim];
            }
            unreachable!("an index within the sum of the sizes")
        })
    }
    // Channels-last if all are.
    fn format(parts: &[Layout], sizes: &[usize]) -> Result<Layout> {
        let last = parts.iter().all(|l| l.suggested_format() == MemoryFormat::ChannelsLast);
        let format = if last { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
        Layout::contiguous(sizes)?.in_format(format)
    }
    let cats: [(&[&[usize]], usize); 6] = [
        (&[&[2, 3, 4, 5], &[2, 1, 4, 5], &[2, 2, 4, 5]], 1),
        (&[&[2, 3, 4, 5], &[1, 3, 4, 5]], 0),
        (&[&[3, 4], &[3, 2]], 1),
        (&[&[3, 4], &[0, 4], &[2, 4]], 0),
        (&[&[7]], 0),
        (&[&[70, 300], &[70, 301]], 1),
    ];
    OpSpec::new("cat", || {
        let mut all = Vec::new();
        for (parts, dim) in cats {
            let inputs = parts.iter().map(|s| Input::new(s, Domain::Any)).collect();
            let run = move |t: &[Tensor]| Tensor::try_cat(t, dim as i64);
            let s = Sample::new(format!("cat {parts:?} dim {dim}"), inputs, run, move |r| joined(r, dim))
                .layout_by(format);
            all.push(if parts[0] == [70, 300] { s.no_grad().numbers() } else { s.numbers() });
        }
        for (sizes, dim) in [(&[2, 3, 4, 5][..], 0), (&[2, 3, 4, 5], 2), (&[3, 4], -1), (&[3], 0), (&[], 0)] {
            let at = if dim < 0 { sizes.len() } else { dim as usize };
            all.push(
                Sample::new(
                    format!("stack {sizes:?} dim {dim}"),
                    vec![Input::new(sizes, Domain::Any); 3],
                    move |t| Tensor::try_stack(t, dim),
                    move |r| {
                        let unsqueezed: Vec<Ref> = r
                            .iter()
                            .map(|p| {
                                let mut sizes = p.sizes.clone();
                                sizes.insert(at, 1);
                                Ref::new(&sizes, p.data.clone())
                            })
                            .collect();
                        joined(&unsqueezed, at)
                    },
                )
                .numbers()
                .layout_by(move |parts, sizes| {
                    // Joined along the dim that the new one stands before, then split.
                    if at + 1 == sizes.len() {
                        return Layout::contiguous(sizes);
                    }
                    let mut joined = sizes.to_vec();
                    let n = joined.remove(at);
                    joined[at] *= n;
                    format(parts, &joined)?.unflatten(at as i64, &[n as i64, sizes[at + 1] as i64])
                }),
            );
        }
        all
    })
    .refusal("nothing", ErrorKind::Argument, || Tensor::try_cat(&Vec::<Tensor>::new(), 0))
    .refusal("sizes that differ elsewhere", ErrorKind::Shape, || {
        Tensor::try_cat(&[Tensor::try_ones([2, 3])?, Tensor::try_ones([2, 4])?], 0)
    })
    .refusal("0-dim tensors", ErrorKind::Dim, || Tensor::try_cat(&[Tensor::try_ones(())?], 0))
    .refusal("a stack of different sizes", ErrorKind::Shape, || {
        Tensor::try_stack(&[Tensor::try_ones([2])?, Tensor::try_ones([3])?], 0)
    })
}
