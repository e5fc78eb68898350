//! Selecting and scattering by index.

use super::{check_write, dst, guards, one_device, same_dtype, src};
use crate::array::Array;
use crate::kernel::IndexPass;
use crate::overlap::{Overlap, overlap};
use crate::{DType, Error, ErrorKind, Layout, Result, backend, bail};

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
