//! Filling, copying, moving, drawing and reading values.

use super::{check_broadcast, check_sizes, check_write, dst, guards, one_device, same_dtype, src, word};
use crate::array::Array;
use crate::backend::Dst;
use crate::guard::{Access, GuardSet, MAX_GUARDS};
use crate::kernel::Distribution;
use crate::{
    CallerScope, DType, Device, Error, ErrorKind, Layout, Philox, Result, Scalar, audit, backend, bail,
    checked_numel,
};

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
