//! Elementwise kernels.

use super::{check_broadcast, check_write, compute_dtype, dst, guards, one_device, src};
use crate::array::Array;
use crate::kernel::MapKernel;
use crate::overlap::self_overlaps;
use crate::{DType, Layout, Result, Scalar, backend, bail, broadcast_sizes};

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
