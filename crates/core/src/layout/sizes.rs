//! Arithmetic on sizes and dim numbers that every op shares.

use super::too_many_dims;
use crate::{Dims, Error, ErrorKind, MAX_RANK, Result, bail};

/// The number of elements of `sizes`.
///
/// # Errors
/// `Overflow` if the product of `max(size, 1)` passes `isize::MAX`: zeros do not excuse the other sizes.
pub fn checked_numel(op: &'static str, sizes: &[usize]) -> Result<usize> {
    let mut numel = 1usize;
    for &size in sizes {
        match numel.checked_mul(size.max(1)) {
            Some(n) if n <= isize::MAX as usize => numel = n,
            _ => {
                bail!(Overflow, op, "the number of elements of {sizes:?} does not fit a signed machine word")
            }
        }
    }
    Ok(if sizes.contains(&0) { 0 } else { numel })
}

/// The dim that `dim` names among `rank` ones: negative numbers count from the end. A 0-dim tensor takes
/// -1 and 0, as in PyTorch (both give 0).
///
/// # Errors
/// `Dim` if `dim` is out of range.
pub fn wrap_dim(op: &'static str, dim: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    if dim < -n || dim >= n {
        bail!(
            Dim,
            op,
            "dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -n,
            n - 1
        );
    }
    Ok(if dim < 0 { dim + n } else { dim } as usize)
}

/// A mask of length `rank` that marks the dims named.
///
/// # Errors
/// `Dim` if one is out of range or named twice.
pub fn wrap_dims(op: &'static str, dims: &[i64], rank: usize) -> Result<Dims<bool>> {
    let mut mask = Dims::filled(false, rank).ok_or_else(|| too_many_dims(op, rank))?;
    // A 0-dim tensor has no bit to mark, yet dim 0 may be named once.
    let mut seen = [false; MAX_RANK];
    for &dim in dims {
        let d = wrap_dim(op, dim, rank)?;
        if seen[d] {
            bail!(Dim, op, "dimension {dim} appears multiple times in the list of dims {dims:?}");
        }
        seen[d] = true;
        if d < rank {
            mask[d] = true;
        }
    }
    Ok(mask)
}

/// Sizes with at most one -1, which stands for what the other sizes leave of `numel`.
///
/// # Errors
/// `Shape` if the sizes do not have `numel` elements, name two unknowns, or leave the unknown ambiguous.
pub fn infer_sizes(op: &'static str, sizes: &[i64], numel: usize) -> Result<Dims<usize>> {
    if sizes.len() > MAX_RANK {
        return Err(too_many_dims(op, sizes.len()));
    }
    let mut out = Dims::new();
    let mut unknown = None;
    // The product of the known sizes; None once it passes the machine word (a zero brings it back).
    let mut known = Some(1usize);
    for (d, &size) in sizes.iter().enumerate() {
        match size {
            -1 if unknown.is_some() => bail!(Shape, op, "only one dimension can be inferred, got {sizes:?}"),
            -1 => {
                unknown = Some(d);
                out.push(1);
            }
            _ if size < 0 => {
                bail!(Shape, op, "invalid shape dimension {size} at index {d} of shape {sizes:?}")
            }
            _ => {
                let size = size as usize;
                known = if size == 0 { Some(0) } else { known.and_then(|k| k.checked_mul(size)) };
                out.push(size);
            }
        }
    }
    if sizes.contains(&0) {
        known = Some(0);
    }
    match (known, unknown) {
        (Some(0), Some(_)) if numel == 0 => {
            bail!(
                Shape,
                op,
                "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension \
                 size -1 can be any value and is ambiguous"
            )
        }
        (Some(k), Some(d)) if k > 0 && numel.is_multiple_of(k) => out[d] = numel / k,
        (Some(k), None) if k == numel => {}
        _ => return Err(wrong_numel(op, sizes, numel)),
    }
    checked_numel(op, &out)?;
    Ok(out)
}

#[cold]
fn wrong_numel(op: &'static str, sizes: &[i64], numel: usize) -> Error {
    let e =
        Error::new(ErrorKind::Shape, op, format!("shape '{sizes:?}' is invalid for input of size {numel}"));
    if sizes.contains(&-1) {
        e.hint(format!("the sizes other than -1 must divide {numel}"))
    } else {
        e.hint(format!("pick sizes whose product is {numel}, or leave one of them to be inferred by -1"))
    }
}

/// The sizes that `shapes` broadcast to: aligned at the last dim, sizes must be equal or 1.
///
/// # Errors
/// `Shape` if two sizes differ and neither is 1, `Overflow` if the result has too many elements.
pub fn broadcast_sizes(op: &'static str, shapes: &[&[usize]]) -> Result<Dims<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut out = Dims::filled(1, rank).ok_or_else(|| too_many_dims(op, rank))?;
    for (k, shape) in shapes.iter().enumerate() {
        let lead = rank - shape.len();
        for (d, &size) in shape.iter().enumerate() {
            let have = out[lead + d];
            if have == 1 {
                out[lead + d] = size;
            } else if size != 1 && size != have {
                return Err(no_broadcast(op, shapes, k, lead + d));
            }
        }
    }
    checked_numel(op, &out)?;
    Ok(out)
}

// Operand `k` does not fit the operands before it at dim `d` of the result.
#[cold]
fn no_broadcast(op: &'static str, shapes: &[&[usize]], k: usize, d: usize) -> Error {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let size_at = |s: &[usize]| (d + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    // The first operand that has an opinion on this dim is the one that `k` clashes with.
    let first = shapes[..k].iter().position(|s| size_at(s) != 1).unwrap_or(0);
    let name = |i: usize| char::from(b'a' + (i as u8).min(25));
    let text = shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    Error::new(
        ErrorKind::Shape,
        op,
        format!(
            "the size of tensor {} ({}) must match the size of tensor {} ({}) at non-singleton dimension {d}; \
             the shapes are {text}",
            name(first),
            size_at(shapes[first]),
            name(k),
            size_at(shapes[k]),
        ),
    )
    .hint("shapes are aligned at the last dimension, where sizes must be equal or 1; unsqueeze() adds a size 1")
}
