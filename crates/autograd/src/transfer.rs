//! The linear maps behind the gradients of views.
//!
//! `transfer(x, from, to, n)` writes `x` through the layout `from` into a zeroed line of `n` elements, where
//! elements that share a place add up, and reads the line through the layout `to`. Its adjoint is the same with
//! `from` and `to` exchanged, so gradients of any order come from this one function.

use stridegrad_core::{Array, DType, Device, Layout, Result, exec};

use crate::Tensor;
use crate::graph::Recorder;

/// Reads through `to` what `x` writes through `from`, in a line of `extent` zeros.
pub(crate) fn transfer(x: &Tensor, from: Layout, to: Layout, extent: usize) -> Result<Tensor> {
    let rec = Recorder::new("transfer", &[x]);
    let line = line_of(x.array(), &from, extent)?;
    // The line may be a part of `x`'s storage: places count from its start.
    let window = line.with_layout(to.with_offset(to.offset() + line.layout().offset())?)?;
    let covers = to.is_non_overlapping_and_dense() && to.numel() == extent;
    // The line is ours alone: a window that covers it needs no copy.
    let out = if covers { window } else { exec::copy_to(&window, to.dense_like(), window.dtype())? };
    rec.finish(out, move |_, g| Ok(vec![Some(transfer(g, to, from, extent)?)]))
}

/// The sum of what every `x` writes through its layout, as a tensor of layout `whole` (dense, offset 0).
pub(crate) fn transfer_sum(parts: &[(Tensor, Layout)], whole: Layout) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = parts.iter().map(|(t, _)| t).collect();
    let rec = Recorder::new("transfer_sum", &inputs);
    let first = inputs[0].array();
    let line = zeros(whole.numel(), first.dtype(), first.device())?;
    for (t, at) in parts {
        add_into(&line, at, t.array())?;
    }
    let places: Vec<Layout> = parts.iter().map(|(_, at)| *at).collect();
    let extent = whole.numel();
    rec.finish(line.with_layout(whole)?, move |ctx, g| {
        places
            .iter()
            .enumerate()
            .map(|(i, at)| ctx.needs(i).then(|| transfer(g, whole, *at, extent)).transpose())
            .collect()
    })
}

/// `whole` with the window `at` replaced by `value`.
pub(crate) fn replace_window(whole: &Tensor, geometry: Layout, at: Layout, value: &Tensor) -> Result<Tensor> {
    let rec = Recorder::new("replace_window", &[whole, value]);
    let out = exec::copy_to(whole.array(), geometry, whole.dtype())?;
    exec::copy_into(&out.with_layout(at)?, value.array())?;
    let extent = geometry.numel();
    rec.finish(out, move |ctx, g| {
        let outside = ctx.needs(0).then(|| clear_window(g, geometry, at)).transpose()?;
        let inside = ctx.needs(1).then(|| transfer(g, geometry, at, extent)).transpose()?;
        Ok(vec![outside, inside])
    })
}

/// `whole` with zeros in the window `at`.
pub(crate) fn clear_window(whole: &Tensor, geometry: Layout, at: Layout) -> Result<Tensor> {
    let rec = Recorder::new("clear_window", &[whole]);
    let out = exec::copy_to(whole.array(), geometry, whole.dtype())?;
    exec::fill(&out.with_layout(at)?, 0.0.into())?;
    rec.finish(out, move |_, g| Ok(vec![Some(clear_window(g, geometry, at)?)]))
}

pub(crate) fn zeros(extent: usize, dtype: DType, device: Device) -> Result<Array> {
    Array::zeros(Layout::contiguous(&[extent])?, dtype, device)
}

fn line_of(x: &Array, from: &Layout, extent: usize) -> Result<Array> {
    let dense = from.numel() == extent && from.is_non_overlapping_and_dense();
    if dense && x.layout().is_non_overlapping_and_dense() && same_strides(x.layout(), from) {
        // `x` is the line already.
        return x.with_layout(Layout::new(&[extent], &[1], x.layout().offset())?);
    }
    let line = zeros(extent, x.dtype(), x.device())?;
    add_into(&line, from, x)?;
    Ok(line)
}

/// Whether two layouts of equal sizes walk memory alike; dims of size 1 do not matter.
pub(crate) fn same_strides(a: &Layout, b: &Layout) -> bool {
    a.sizes() == b.sizes() && (0..a.rank()).all(|i| a.size(i) == 1 || a.strides()[i] == b.strides()[i])
}

/// `line[at] += x`; dims that the window repeats (stride 0) are summed first.
pub(crate) fn add_into(line: &Array, at: &Layout, x: &Array) -> Result<()> {
    let (at, x) = sum_repeats(at, x)?;
    exec::accumulate(&line.with_layout(at)?, &x)
}

/// Sums `x` over the dims that `at` repeats, and drops them from both.
pub(crate) fn sum_repeats(at: &Layout, x: &Array) -> Result<(Layout, Array)> {
    let repeats: Vec<bool> = (0..at.rank()).map(|i| at.strides()[i] == 0 && at.size(i) > 1).collect();
    if !repeats.contains(&true) {
        return Ok((*at, x.clone()));
    }
    let kept: Vec<usize> = (0..at.rank()).filter(|&i| !repeats[i]).collect();
    let sizes: Vec<usize> = kept.iter().map(|&i| at.size(i)).collect();
    let strides: Vec<isize> = kept.iter().map(|&i| at.strides()[i]).collect();
    let summed = exec::reduce(&crate::ops::sum::SUM, x.dtype(), x.dtype(), &repeats, false, x)?;
    Ok((Layout::new(&sizes, &strides, at.offset())?, summed))
}
