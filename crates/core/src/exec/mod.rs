//! Running kernels safely: checks, guards, output allocation, version bumps.
//!
//! Everything above the backends goes through here, so every invariant of [`crate::backend`] has one place where
//! it is established. Outputs are allocated uninitialised and handed out only when the kernel has succeeded.

mod copy;
mod index;
mod map;
mod product;
mod reduce;
mod window;

pub(crate) use copy::read_bytes;
pub use copy::{accumulate, cat, copy_into, copy_to, fill, full, materialize, random, to_device, with_bytes};
pub use index::{index, index_into};
pub use map::{map, map_donated, map_into, map_with_layout};
pub use product::gemm;
pub use reduce::{arg_reduce, reduce, scan};
pub use window::{conv_output_size, conv2d, pool2d};

use crate::array::Array;
use crate::backend::{Dst, Src};
use crate::guard::{Access, GuardSet, GuardWord};
use crate::overlap::{Overlap, overlap, self_overlaps};
use crate::{Category, DType, Device, Error, ErrorKind, Result, bail};

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
