//! Reductions, extremes and scans.

use super::{compute_dtype, dst, guards, src};
use crate::array::Array;
use crate::kernel::{Extreme, ReduceKernel, Scan};
use crate::{DType, Error, ErrorKind, Layout, Result, backend, bail};

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
