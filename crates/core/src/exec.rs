//! Running kernels safely: checks, guards, output allocation, version bumps.
//!
//! Everything above the backends goes through here, so every invariant of [`crate::backend`] has one place where
//! it is established. Outputs are allocated uninitialised and handed out only when the kernel has succeeded.

use crate::array::Array;
use crate::backend::{Dst, Src};
use crate::guard::{Access, GuardSet, GuardWord, MAX_GUARDS};
use crate::kernel::*;
use crate::overlap::{Overlap, overlap, self_overlaps};
use crate::{
    CallerScope, Category, DType, Device, Error, ErrorKind, Layout, Offsets, Philox, Result, Scalar, audit,
    backend, bail, broadcast_sizes, checked_numel,
};

fn src(a: &Array) -> Src<'_> {
    Src { buffer: &a.storage().inner().buffer, layout: a.layout(), dtype: a.dtype() }
}

fn dst(a: &Array) -> Dst<'_> {
    Dst { buffer: &a.storage().inner().buffer, layout: a.layout(), dtype: a.dtype() }
}

fn word(a: &Array) -> &GuardWord {
    &a.storage().inner().guard
}

/// Guards for reading `reads` and writing `writes`. A fresh output that nobody else can see needs none.
fn guards<'a>(op: &'static str, reads: &[&'a Array], writes: &[&'a Array]) -> Result<GuardSet<'a>> {
    let reads = reads.iter().map(|a| (word(a), Access::Read));
    GuardSet::acquire(op, reads.chain(writes.iter().map(|a| (word(a), Access::Write))))
}

fn one_device(op: &'static str, arrays: &[&Array]) -> Result<Device> {
    let Some(first) = arrays.first() else { return Ok(Device::CPU) };
    if let Some(other) = arrays.iter().find(|a| a.device() != first.device()) {
        return Err(Error::new(
            ErrorKind::Device,
            op,
            format!("operands lie on {} and {}", first.device(), other.device()),
        )
        .hint("move one with to()"));
    }
    Ok(first.device())
}

/// Refuses a destination that overlaps itself, or an input elsewhere than element for element.
fn check_write(op: &'static str, out: &Array, ins: &[&Array]) -> Result<()> {
    if self_overlaps(out.layout()) {
        return Err(Error::new(
            ErrorKind::Overlap,
            op,
            format!(
                "more than one element of the written-to tensor (sizes {:?}, strides {:?}) refers to a single memory location",
                out.sizes(),
                out.layout().strides()
            ),
        )
        .hint("copy() it before writing"));
    }
    for a in ins.iter().filter(|a| a.storage().same(out.storage())) {
        let same_shape = a.sizes() == out.sizes() && a.dtype().size() == out.dtype().size();
        match overlap(out.layout(), out.dtype().size(), a.layout(), a.dtype().size()) {
            Overlap::None => {}
            Overlap::Same if same_shape => {}
            _ => {
                return Err(Error::new(
                    ErrorKind::Overlap,
                    op,
                    format!(
                        "the written-to tensor (sizes {:?}, strides {:?}, offset {}) and an input (sizes {:?}, strides {:?}, offset {}) share some memory locations at different positions",
                        out.sizes(), out.layout().strides(), out.layout().offset(),
                        a.sizes(), a.layout().strides(), a.layout().offset()
                    ),
                )
                .hint("copy() the input first"));
            }
        }
    }
    Ok(())
}

fn check_sizes(op: &'static str, what: &str, got: &[usize], want: &[usize]) -> Result<()> {
    if got != want {
        bail!(Shape, op, "{what} has sizes {got:?}, expected {want:?}");
    }
    Ok(())
}

fn check_broadcast(op: &'static str, out: &Array, ins: &[&Array]) -> Result<()> {
    for a in ins {
        let (o, s) = (out.sizes(), a.sizes());
        let fits = s.len() <= o.len() && s.iter().rev().zip(o.iter().rev()).all(|(&s, &o)| s == o || s == 1);
        if !fits {
            bail!(Shape, op, "output with shape {o:?} doesn't match the broadcast shape with {s:?}");
        }
    }
    Ok(())
}

/// The dtype a kernel computes in for operands and result of these dtypes: `f64`, `f32` or `i64`.
pub fn compute_dtype(dtype: DType) -> DType {
    match dtype.category() {
        Category::Floating => dtype.compute_float(),
        _ => DType::I64,
    }
}

/// An elementwise op on broadcast operands with a fresh result of dtype `out`; it computes in `compute`
/// (any dtype; see [`compute_dtype`]). The result's layout follows the operands' (PyTorch's TensorIterator).
pub fn map(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    out: DType,
    ins: &[&Array],
) -> Result<Array> {
    let device = one_device(kernel.name, ins)?;
    let layout = match ins {
        [a] => Layout::result_of(&[a.layout()], a.sizes())?,
        [a, b] if a.sizes() == b.sizes() => Layout::result_of(&[a.layout(), b.layout()], a.sizes())?,
        _ => {
            let shapes: Vec<&[usize]> = ins.iter().map(|a| a.sizes()).collect();
            let layouts: Vec<&Layout> = ins.iter().map(|a| a.layout()).collect();
            Layout::result_of(&layouts, &broadcast_sizes(kernel.name, &shapes)?)?
        }
    };
    let result = Array::uninit(layout, out, device)?;
    run_map(kernel, compute, params, &result, ins, &[])?;
    Ok(result)
}

/// An elementwise op whose result has a given fresh layout, to whose sizes the operands broadcast.
pub fn map_with_layout(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    out: DType,
    layout: Layout,
    ins: &[&Array],
) -> Result<Array> {
    let device = one_device(kernel.name, ins)?;
    let result = Array::uninit(layout, out, device)?;
    check_broadcast(kernel.name, &result, ins)?;
    run_map(kernel, compute, params, &result, ins, &[])?;
    Ok(result)
}

/// An elementwise op that writes into an existing array; operands broadcast to its sizes.
pub fn map_into(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    out: &Array,
    ins: &[&Array],
) -> Result<()> {
    one_device(kernel.name, &[&[out], ins].concat())?;
    check_broadcast(kernel.name, out, ins)?;
    check_write(kernel.name, out, ins)?;
    run_map(kernel, compute, params, out, ins, &[out])
}

/// An elementwise op whose first operand is `donor`, to whose sizes the others broadcast. If nobody else holds its
/// memory, and it has the dtype `out`, the result is written over it; else into a fresh array.
pub fn map_donated(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    out: DType,
    donor: Array,
    others: &[&Array],
) -> Result<Array> {
    let ins = [&[&donor], others].concat();
    one_device(kernel.name, &ins)?;
    check_broadcast(kernel.name, &donor, others)?;
    // An operand on the donor's storage would be a second handle to it.
    if donor.dtype() == out && donor.storage().is_unique() && !self_overlaps(donor.layout()) {
        run_map(kernel, compute, params, &donor, &ins, &[])?;
        return Ok(donor);
    }
    let result = Array::uninit(donor.layout().dense_like(), out, donor.device())?;
    run_map(kernel, compute, params, &result, &ins, &[])?;
    Ok(result)
}

fn run_map(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    out: &Array,
    ins: &[&Array],
    written: &[&Array],
) -> Result<()> {
    if ins.len() != kernel.inputs || params.len() != kernel.params {
        bail!(
            Argument,
            kernel.name,
            "{} operands and {} parameters given, the kernel takes {} and {}",
            ins.len(),
            params.len(),
            kernel.inputs,
            kernel.params
        );
    }
    let backend = backend::of(out.device())?;
    let _guards = guards(kernel.name, ins, written)?;
    written.iter().for_each(|w| w.storage().bump());
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let compute = compute_dtype(compute);
    match ins {
        [a] => backend.map(kernel, compute, params, dst(out), &[src(a)]),
        [a, b] => backend.map(kernel, compute, params, dst(out), &[src(a), src(b)]),
        [a, b, c] => backend.map(kernel, compute, params, dst(out), &[src(a), src(b), src(c)]),
        _ => backend.map(kernel, compute, params, dst(out), &ins.iter().map(|a| src(a)).collect::<Vec<_>>()),
    }
}

/// `value` everywhere, in a fresh array.
pub fn full(layout: Layout, value: Scalar, dtype: DType, device: Device) -> Result<Array> {
    let result = Array::uninit(layout, dtype, device)?;
    if result.layout().numel() > 0 {
        backend::of(device)?.fill(dst(&result), value)?;
    }
    Ok(result)
}

/// Writes `value` into every element; an array that overlaps itself is fine here.
pub fn fill(out: &Array, value: Scalar) -> Result<()> {
    let _guards = guards("fill_", &[], &[out])?;
    out.storage().bump();
    if out.layout().numel() == 0 {
        return Ok(());
    }
    backend::of(out.device())?.fill(dst(out), value)
}

/// A copy in a given fresh layout and dtype, as the user asked for.
pub fn copy_to(a: &Array, layout: Layout, dtype: DType) -> Result<Array> {
    check_sizes("copy", "the copy's layout", layout.sizes(), a.sizes())?;
    let result = Array::uninit(layout, dtype, a.device())?;
    let _guards = guards("copy", &[a], &[])?;
    if a.layout().numel() > 0 {
        backend::of(a.device())?.copy(dst(&result), src(a))?;
    }
    Ok(result)
}

/// Arrays one after another along `dim`, converted to `dtype`, in a fresh array of the given layout.
pub fn cat(op: &'static str, dim: usize, layout: Layout, dtype: DType, parts: &[&Array]) -> Result<Array> {
    let device = one_device(op, parts)?;
    // The windows must tile the result: that is what makes all of it initialised.
    let mut windows = Vec::with_capacity(parts.len());
    let mut start = 0usize;
    for a in parts {
        let fits = a.sizes().len() == layout.rank()
            && (0..layout.rank()).all(|i| i == dim || a.sizes()[i] == layout.size(i));
        if dim >= layout.rank() || !fits {
            bail!(
                Shape,
                op,
                "a part of sizes {:?} does not fit {:?} along dim {dim}",
                a.sizes(),
                layout.sizes()
            );
        }
        let length = a.sizes()[dim];
        windows.push(layout.narrow(dim as i64, start as i64, length as i64)?);
        start += length;
    }
    if dim >= layout.rank() || start != layout.size(dim) {
        bail!(Shape, op, "the parts do not fill {:?} along dim {dim}", layout.sizes());
    }
    let result = Array::uninit(layout, dtype, device)?;
    let backend = backend::of(device)?;
    // Nobody sees the result before it is complete, so that the parts need not be held all at once: there may be
    // more of them than guards.
    for (windows, parts) in windows.chunks(MAX_GUARDS).zip(parts.chunks(MAX_GUARDS)) {
        let _guards = guards(op, parts, &[])?;
        for (window, a) in windows.iter().zip(parts).filter(|(w, _)| w.numel() > 0) {
            let out = Dst { buffer: &result.storage().inner().buffer, layout: window, dtype };
            backend.copy(out, src(a))?;
        }
    }
    Ok(result)
}

/// A copy that the user did not ask for, because `op` cannot work on the strides as they are. The audit counts
/// and may forbid it.
pub fn materialize(a: &Array, layout: Layout, op: &'static str, reason: &'static str) -> Result<Array> {
    audit::note(op, reason, a.layout().numel() * a.dtype().size())?;
    copy_to(a, layout, a.dtype())
}

/// Copies `a` into `out`, broadcasting and converting; devices may differ.
pub fn copy_into(out: &Array, a: &Array) -> Result<()> {
    check_broadcast("copy_", out, &[a])?;
    check_write("copy_", out, &[a])?;
    if a.device() != out.device() {
        let staged = to_device(a, out.device())?;
        return copy_into(out, &staged);
    }
    let _guards = guards("copy_", &[a], &[out])?;
    out.storage().bump();
    if out.layout().numel() == 0 {
        return Ok(());
    }
    backend::of(out.device())?.copy(dst(out), src(a))
}

/// The same values on another device, with the same strides if they are dense, else in their order.
pub fn to_device(a: &Array, device: Device) -> Result<Array> {
    let dense = if a.layout().is_non_overlapping_and_dense() {
        a.clone()
    } else {
        copy_to(a, a.layout().dense_like(), a.dtype())?
    };
    let layout = dense.layout().with_offset(0)?;
    let lowest = dense.layout().span().map_or(0, |(lo, _)| lo);
    let mut bytes = vec![0u8; checked_numel("to", a.sizes())? * a.dtype().size()];
    read_bytes(&dense, lowest * a.dtype().size(), &mut bytes)?;
    let layout = if lowest == dense.layout().offset() { layout } else { a.layout().dense_like() };
    let result = Array::uninit(layout, a.dtype(), device)?;
    backend::of(device)?.write(&result.storage().inner().buffer, 0, &bytes)?;
    Ok(result)
}

/// Reads raw bytes of an array's storage.
pub(crate) fn read_bytes(a: &Array, offset: usize, out: &mut [u8]) -> Result<()> {
    let _guards = guards("read", &[a], &[])?;
    backend::of(a.device())?.read(&a.storage().inner().buffer, offset, out)
}

/// A reduction over the dims where `dims` holds. The result keeps reduced dims with size 1 if `keepdim`.
pub fn reduce(
    kernel: &ReduceKernel,
    compute: DType,
    out: DType,
    dims: &[bool],
    keepdim: bool,
    a: &Array,
) -> Result<Array> {
    if dims.len() != a.layout().rank() {
        bail!(Dim, kernel.name, "a mask of {} dims for an array of rank {}", dims.len(), a.layout().rank());
    }
    let kept = a.layout().reduce_result(dims, true);
    let result = Array::uninit(kept, out, a.device())?;
    {
        let _guards = guards(kernel.name, &[a], &[])?;
        if kept.numel() > 0 {
            backend::of(a.device())?.reduce(kernel, compute_dtype(compute), dims, dst(&result), src(a))?;
        }
    }
    if keepdim { Ok(result) } else { drop_dims(&result, dims) }
}

fn drop_dims(a: &Array, dims: &[bool]) -> Result<Array> {
    let keep = |i: &usize| !dims[*i];
    let sizes: Vec<usize> = (0..dims.len()).filter(keep).map(|i| a.sizes()[i]).collect();
    let strides: Vec<isize> = (0..dims.len()).filter(keep).map(|i| a.layout().strides()[i]).collect();
    a.with_layout(Layout::new(&sizes, &strides, a.layout().offset())?)
}

/// Positions (`i64`) and values of an extreme along `dim`.
pub fn arg_reduce(
    op: &'static str,
    which: Extreme,
    dim: usize,
    keepdim: bool,
    a: &Array,
) -> Result<(Array, Array)> {
    let Some(&n) = a.sizes().get(dim) else {
        bail!(Dim, op, "dim {dim} of an array of rank {}", a.sizes().len())
    };
    if n == 0 {
        return Err(Error::new(
            ErrorKind::Index,
            op,
            format!("dim {dim} of sizes {:?} is empty: it has no extreme", a.sizes()),
        ));
    }
    let mask: Vec<bool> = (0..a.sizes().len()).map(|i| i == dim).collect();
    let kept = a.layout().reduce_result(&mask, true);
    let index = Array::uninit(kept, DType::I64, a.device())?;
    let value = Array::uninit(kept, a.dtype(), a.device())?;
    {
        let _guards = guards(op, &[a], &[])?;
        if kept.numel() > 0 {
            backend::of(a.device())?.arg_reduce(which, dim, dst(&index), Some(dst(&value)), src(a))?;
        }
    }
    if keepdim { Ok((index, value)) } else { Ok((drop_dims(&index, &mask)?, drop_dims(&value, &mask)?)) }
}

/// A running reduction along `dim`, in `a`'s dtype; the result is row-major.
pub fn scan(op: &'static str, scan: Scan, dim: usize, a: &Array) -> Result<Array> {
    if dim >= a.sizes().len() {
        bail!(Dim, op, "dim {dim} of an array of rank {}", a.sizes().len());
    }
    let result = Array::uninit(Layout::contiguous(a.sizes())?, a.dtype(), a.device())?;
    let _guards = guards(op, &[a], &[])?;
    if a.layout().numel() > 0 {
        backend::of(a.device())?.scan(scan, dim, dst(&result), src(a))?;
    }
    Ok(result)
}

fn same_dtype(op: &'static str, arrays: &[&Array]) -> Result<DType> {
    let first = arrays[0].dtype();
    if let Some(other) = arrays.iter().find(|a| a.dtype() != first) {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("expected operands of one dtype, but got {first} and {}", other.dtype()),
        )
        .hint("convert one with to_dtype()"));
    }
    Ok(first)
}

/// Matrix products: `a` is (.., m, k) and `b` is (.., k, n) with the same batch dims in front, of any strides (0 where
/// a batch dim is broadcast). The result is row-major (.., m, n), or has the fresh layout given. Nothing is copied:
/// batch dims that do not merge into one are looped over.
pub fn gemm(a: &Array, b: &Array, layout: Option<Layout>) -> Result<Array> {
    let op = "matmul";
    let device = one_device(op, &[a, b])?;
    let dtype = same_dtype(op, &[a, b])?;
    let (Some((batch, &[m, ka])), Some((batch_b, &[kb, n]))) =
        (a.sizes().split_last_chunk::<2>(), b.sizes().split_last_chunk::<2>())
    else {
        bail!(Shape, op, "matrix products take rank 2 and more, got {:?} and {:?}", a.sizes(), b.sizes());
    };
    if batch != batch_b || ka != kb {
        bail!(Shape, op, "mat1 and mat2 shapes cannot be multiplied ({:?} and {:?})", a.sizes(), b.sizes());
    }
    let sizes = [batch, &[m, n]].concat();
    let layout = match layout {
        Some(l) => l,
        None => Layout::contiguous(&sizes)?,
    };
    check_sizes(op, "the result", layout.sizes(), &sizes)?;
    let result = Array::uninit(layout, dtype, device)?;
    if layout.numel() == 0 {
        return Ok(result);
    }
    let backend = backend::of(device)?;
    if ka == 0 {
        backend.fill(dst(&result), Scalar::Int(0))?;
        return Ok(result);
    }
    let _guards = guards(op, &[a, b], &[])?;
    for [out, a_part, b_part] in gemm_parts([&layout, a.layout(), b.layout()])? {
        backend.gemm(
            Dst { layout: &out, ..dst(&result) },
            Src { layout: &a_part, ..src(a) },
            Src { layout: &b_part, ..src(b) },
        )?;
    }
    Ok(result)
}

/// Cuts operands of equal batch sizes into products of rank 3: the batch dims that merge in all of them become
/// one, the others are enumerated.
fn gemm_parts(operands: [&Layout; 3]) -> Result<Vec<[Layout; 3]>> {
    let rank = operands[0].rank() - 2;
    // Merged batch dims, innermost first: size, and the stride in each operand.
    let mut merged: Vec<(usize, [isize; 3])> = Vec::new();
    for d in (0..rank).rev().filter(|&d| operands[0].size(d) != 1) {
        let (size, strides) = (operands[0].size(d), operands.map(|l| l.strides()[d]));
        match merged.last_mut() {
            Some((n, inner)) if (0..3).all(|i| strides[i] == inner[i].wrapping_mul(*n as isize)) => {
                *n *= size
            }
            _ => merged.push((size, strides)),
        }
    }
    // The longest run goes to the kernel.
    let longest = (0..merged.len()).max_by_key(|&i| merged[i].0);
    let (size, strides) = longest.map_or((1, [0; 3]), |i| merged.remove(i));
    let outer: Vec<usize> = merged.iter().map(|(n, _)| *n).collect();
    let starts = |i: usize| -> Result<Offsets> {
        let strides: Vec<isize> = merged.iter().map(|(_, s)| s[i]).collect();
        Ok(Layout::new(&outer, &strides, operands[i].offset())?.offsets())
    };
    let part = |i: usize, start: usize| -> Result<Layout> {
        let ([m, n], [rs, cs]) = (matrix(operands[i].sizes()), matrix(operands[i].strides()));
        Layout::new(&[size, m, n], &[strides[i], rs, cs], start)
    };
    starts(0)?
        .zip(starts(1)?)
        .zip(starts(2)?)
        .map(|((a, b), c)| Ok([part(0, a)?, part(1, b)?, part(2, c)?]))
        .collect()
}

fn matrix<T: Copy>(dims: &[T]) -> [T; 2] {
    [dims[dims.len() - 2], dims[dims.len() - 1]]
}

/// The output size of one spatial dim, or `None` if the (dilated) window does not fit.
pub fn conv_output_size(
    size: usize,
    kernel: usize,
    stride: usize,
    padding: [usize; 2],
    dilation: usize,
) -> Option<usize> {
    let padded = size.checked_add(padding[0])?.checked_add(padding[1])?;
    let window = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    Some(padded.checked_sub(window)? / stride + 1)
}

/// Bounds what a kernel computes with along a dim, so that its arithmetic cannot overflow: the padded size is refused
/// if it is absurd, and a step that is never taken whole is cut down.
fn window_in_range(
    op: &'static str,
    size: usize,
    padding: [usize; 2],
    kernel: usize,
    stride: &mut usize,
    dilation: &mut usize,
) -> Result<()> {
    let padded = size.saturating_add(padding[0]).saturating_add(padding[1]);
    if padded > i32::MAX as usize {
        bail!(Overflow, op, "size {size} with padding {padding:?} is beyond 2^31 - 1");
    }
    *stride = (*stride).min(padded.max(1));
    if kernel == 1 {
        *dilation = 1;
    }
    Ok(())
}

/// A convolution pass with a result of the given fresh layout. Sizes: x (N, C, H, W), weight (K, C/groups, R, S),
/// y (N, K, P, Q), bias (K).
pub fn conv2d(pass: ConvPass, params: &Conv2dParams, layout: Layout, ins: &[&Array]) -> Result<Array> {
    let op = "conv2d";
    let device = one_device(op, ins)?;
    let dtype = same_dtype(op, ins)?;
    let result = Array::uninit(layout, dtype, device)?;
    let (x, w, y): (&[usize], &[usize], &[usize]) = match (pass, ins) {
        (ConvPass::Forward, [x, w] | [x, w, _]) => (x.sizes(), w.sizes(), layout.sizes()),
        (ConvPass::InputGrad, [y, w]) => (layout.sizes(), w.sizes(), y.sizes()),
        (ConvPass::WeightGrad, [y, x]) => (x.sizes(), layout.sizes(), y.sizes()),
        _ => bail!(Argument, op, "{} operands for {pass:?}", ins.len()),
    };
    let (&[xn, c, h, wd], &[k, cg, r, s], &[yn, yk, p, q]) = (x, w, y) else {
        bail!(Shape, op, "expected x, weight and y of rank 4, got {x:?}, {w:?} and {y:?}");
    };
    let g = params.groups;
    if g == 0 || params.stride.contains(&0) || params.dilation.contains(&0) {
        bail!(
            Argument,
            op,
            "stride {:?}, dilation {:?} and groups {g} must be positive",
            params.stride,
            params.dilation
        );
    }
    let out = |i: usize, size, kernel| {
        conv_output_size(size, kernel, params.stride[i], params.padding[i], params.dilation[i])
    };
    let fits = xn == yn
        && yk == k
        && cg.checked_mul(g) == Some(c)
        && k % g == 0
        && out(0, h, r) == Some(p)
        && out(1, wd, s) == Some(q);
    if !fits {
        bail!(Shape, op, "x {x:?}, weight {w:?} and y {y:?} do not fit {params:?}");
    }
    if let (ConvPass::Forward, [_, _, bias]) = (pass, ins) {
        check_sizes(op, "bias", bias.sizes(), &[k])?;
    }
    let mut params = *params;
    for (i, (size, kernel)) in [(h, r), (wd, s)].into_iter().enumerate() {
        let before_after = params.padding[i];
        window_in_range(op, size, before_after, kernel, &mut params.stride[i], &mut params.dilation[i])?;
    }
    if layout.numel() == 0 {
        return Ok(result);
    }
    let _guards = guards(op, ins, &[])?;
    let srcs: Vec<Src<'_>> = ins.iter().map(|a| src(a)).collect();
    backend::of(device)?.conv2d(pass, &params, dst(&result), &srcs)?;
    Ok(result)
}

/// A pooling pass with results of the given fresh layouts and dtypes.
pub fn pool2d(
    pass: PoolPass,
    params: &Pool2dParams,
    outs: &[(Layout, DType)],
    ins: &[&Array],
) -> Result<Vec<Array>> {
    let op = "pool2d";
    let device = one_device(op, ins)?;
    let results = outs.iter().map(|(l, d)| Array::uninit(*l, *d, device)).collect::<Result<Vec<_>>>()?;
    let arity = match pass {
        PoolPass::Max => (2, 1),
        PoolPass::MaxGrad => (1, 2),
        _ => (1, 1),
    };
    if (outs.len(), ins.len()) != arity
        || outs.iter().any(|(l, _)| l.rank() != 4)
        || ins.iter().any(|a| a.sizes().len() != 4)
    {
        bail!(Shape, op, "{pass:?} takes {} operand(s) and {} result(s) of rank 4", arity.1, arity.0);
    }
    let (x, y) = match pass {
        PoolPass::MaxGrad | PoolPass::AvgGrad | PoolPass::AdaptiveAvgGrad => {
            (outs[0].0.sizes(), ins[0].sizes())
        }
        _ => (ins[0].sizes(), outs[0].0.sizes()),
    };
    if x[..2] != y[..2]
        || outs.iter().skip(1).any(|(l, _)| l.sizes() != y)
        || ins.iter().skip(1).any(|a| a.sizes() != y)
    {
        bail!(Shape, op, "{pass:?}: sizes {x:?} and {y:?} do not fit together");
    }
    if params.stride.contains(&0)
        || params.kernel.contains(&0)
        || params.dilation.contains(&0)
        || params.divisor == Some(0)
    {
        bail!(
            Argument,
            op,
            "kernel {:?}, stride {:?} and dilation {:?} must be positive, the divisor not 0",
            params.kernel,
            params.stride,
            params.dilation
        );
    }
    let mut params = *params;
    if !matches!(pass, PoolPass::AdaptiveAvg | PoolPass::AdaptiveAvgGrad) {
        for i in 0..2 {
            let kernel = params.kernel[i];
            let padding = [params.padding[i]; 2];
            window_in_range(op, x[2 + i], padding, kernel, &mut params.stride[i], &mut params.dilation[i])?;
            // Ceil mode lets a window reach beyond the padding; nothing is there.
            let padded = x[2 + i] + 2 * padding[0];
            params.kernel[i] = kernel.min(padded / params.dilation[i] + 1);
        }
    }
    if results.iter().all(|r| r.layout().numel() == 0) {
        return Ok(results);
    }
    if pass == PoolPass::MaxGrad && ins[1].dtype() != DType::I64 {
        bail!(DType, op, "positions must be i64, got {}", ins[1].dtype());
    }
    let _guards = guards(op, ins, &[])?;
    let srcs: Vec<Src<'_>> = ins.iter().map(|a| src(a)).collect();
    let dsts: Vec<Dst<'_>> = results.iter().map(dst).collect();
    backend::of(device)?.pool2d(pass, &params, &dsts, &srcs)?;
    Ok(results)
}

fn check_index(
    op: &'static str,
    pass: IndexPass,
    dim: usize,
    out: &[usize],
    x: &Array,
    index: &Array,
) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("the index must be i64, got {}", index.dtype()),
        )
        .hint("convert it with to_dtype(DType::I64)"));
    }
    let (xs, is) = (x.sizes(), index.sizes());
    if xs.len() != out.len() || dim >= out.len() {
        bail!(Shape, op, "sizes {xs:?} and {out:?} along dim {dim}");
    }
    let others = |a: &[usize], b: &[usize]| (0..a.len()).all(|i| i == dim || a[i] == b[i]);
    let within = |a: &[usize], b: &[usize]| (0..a.len()).all(|i| i == dim || a[i] <= b[i]);
    let ok = match pass {
        IndexPass::Select => is.len() == 1 && out[dim] == is[0] && others(xs, out),
        IndexPass::Add => is.len() == 1 && xs[dim] == is[0] && others(xs, out),
        IndexPass::Gather => is == out && within(is, xs),
        IndexPass::Scatter | IndexPass::ScatterAdd => is.len() == xs.len() && is == xs && within(is, out),
    };
    if !ok {
        bail!(Shape, op, "index of sizes {is:?} does not fit {xs:?} and {out:?} along dim {dim}");
    }
    Ok(())
}

/// Select or Gather into a fresh row-major result of sizes `sizes`.
pub fn index(
    op: &'static str,
    pass: IndexPass,
    dim: usize,
    sizes: &[usize],
    x: &Array,
    index: &Array,
) -> Result<Array> {
    let device = one_device(op, &[x, index])?;
    check_index(op, pass, dim, sizes, x, index)?;
    if !matches!(pass, IndexPass::Select | IndexPass::Gather) {
        bail!(Argument, op, "{pass:?} writes into an existing array");
    }
    let result = Array::uninit(Layout::contiguous(sizes)?, x.dtype(), device)?;
    let _guards = guards(op, &[x, index], &[])?;
    if result.layout().numel() > 0 {
        backend::of(device)?.index(pass, dim, dst(&result), src(x), src(index))?;
    }
    Ok(result)
}

/// Add, Scatter or ScatterAdd into an existing array.
pub fn index_into(
    op: &'static str,
    pass: IndexPass,
    dim: usize,
    out: &Array,
    x: &Array,
    index: &Array,
) -> Result<()> {
    let device = one_device(op, &[out, x, index])?;
    same_dtype(op, &[out, x])?;
    check_index(op, pass, dim, out.sizes(), x, index)?;
    if !matches!(pass, IndexPass::Add | IndexPass::Scatter | IndexPass::ScatterAdd) {
        bail!(Argument, op, "{pass:?} makes a new array");
    }
    check_write(op, out, &[])?;
    for a in [x, index] {
        if a.storage().same(out.storage())
            && overlap(out.layout(), out.dtype().size(), a.layout(), a.dtype().size()) != Overlap::None
        {
            bail!(
                Overlap,
                op,
                "the written-to tensor and an input share memory locations; copy() the input first"
            );
        }
    }
    let _guards = guards(op, &[x, index], &[out])?;
    out.storage().bump();
    if x.layout().numel() == 0 {
        return Ok(());
    }
    backend::of(device)?.index(pass, dim, dst(out), src(x), src(index))
}

/// `out += a`, of equal sizes and dtype. `out` may overlap itself: every contribution counts.
pub fn accumulate(out: &Array, a: &Array) -> Result<()> {
    let op = "accumulate";
    let device = one_device(op, &[out, a])?;
    same_dtype(op, &[out, a])?;
    check_sizes(op, "the contribution", a.sizes(), out.sizes())?;
    if out.storage().same(a.storage()) {
        bail!(Overlap, op, "the two arrays share a storage");
    }
    let _guards = guards(op, &[a], &[out])?;
    out.storage().bump();
    if out.layout().numel() == 0 {
        return Ok(());
    }
    backend::of(device)?.accumulate(dst(out), src(a))
}

/// Random numbers in a fresh array. Element `i`, in row-major order, depends on the stream and `i` alone.
pub fn random(
    dist: Distribution,
    stream: &Philox,
    layout: Layout,
    dtype: DType,
    device: Device,
) -> Result<Array> {
    let result = Array::uninit(layout, dtype, device)?;
    if layout.numel() > 0 {
        backend::of(device)?.random(dist, stream, dst(&result))?;
    }
    Ok(result)
}

/// Runs `f` on the values of a contiguous host array, under its read guard. An op that writes the storage
/// meanwhile, from `f` or another thread, is refused with `StorageBusy`.
pub fn with_bytes<R>(
    a: &Array,
    caller: &'static std::panic::Location<'static>,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let op = "with_slice";
    let Some(ptr) = a.storage().inner().buffer.host_ptr() else {
        bail!(Device, op, "the values lie on {}, not in host memory", a.device());
    };
    if !a.layout().is_contiguous() {
        return Err(Error::new(
            ErrorKind::NotViewable,
            op,
            format!("strides {:?} are not contiguous", a.layout().strides()),
        )
        .hint("call contiguous() first"));
    }
    let _guards = GuardSet::acquire_host(op, word(a), Access::Read, caller)?;
    let _scope = CallerScope::enter(caller);
    let (offset, bytes) = (a.layout().offset() * a.dtype().size(), a.layout().numel() * a.dtype().size());
    if bytes == 0 {
        return Ok(f(&[]));
    }
    // SAFETY: the array's layout lies inside its storage (checked when it was made), the storage is initialised (every
    // array handed out is), and the read guard keeps every writer out while the slice lives.
    Ok(f(unsafe { std::slice::from_raw_parts(ptr.add(offset), bytes) }))
}
