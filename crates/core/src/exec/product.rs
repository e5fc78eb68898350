//! Matrix products of any rank.

use super::{check_sizes, dst, guards, one_device, same_dtype, src};
use crate::array::Array;
use crate::backend::{Dst, Src};
use crate::{Layout, Offsets, Result, Scalar, backend, bail};

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
