//! The layouts in which a gradient check puts an input.

use stridegrad_core::{Array, Layout, MemoryFormat, Result, Scalar, exec};

use crate::Tensor;

/// A named way to lay out some sizes.
pub(super) struct Placement {
    pub(super) name: &'static str,
    pub(super) layout: Layout,
}

/// The layouts that sizes can have: dense and not, forwards and backwards.
pub(super) fn placements(sizes: &[usize]) -> Result<Vec<Placement>> {
    let row_major = Layout::contiguous(sizes)?;
    let mut all = vec![Placement { name: "contiguous", layout: row_major }];
    let mut add = |name, layout: Result<Layout>| -> Result<()> {
        let layout = layout?;
        if all.iter().all(|p| p.layout != layout) {
            all.push(Placement { name, layout });
        }
        Ok(())
    };
    add("permuted", column_major(sizes))?;
    let stepped: Vec<isize> = row_major.strides().iter().map(|s| 2 * s).collect();
    add("stepped with an offset", Layout::new(sizes, &stepped, 3))?;
    let dims: Vec<i64> = (0..sizes.len() as i64).collect();
    add("reversed", row_major.reversed(&dims))?;
    if sizes.len() == 4 {
        add("channels_last", row_major.in_format(MemoryFormat::ChannelsLast))?;
    }
    Ok(all)
}

/// Dense, the first dim fastest.
pub(super) fn column_major(sizes: &[usize]) -> Result<Layout> {
    let backwards: Vec<usize> = sizes.iter().rev().copied().collect();
    let dims: Vec<i64> = (0..sizes.len() as i64).rev().collect();
    Layout::contiguous(&backwards)?.permute(&dims)
}

/// The values of `t` in a given layout, in storage of its own that is NaN (or the largest integer) around them, so
/// that a read at a wrong place shows.
pub(super) fn place(t: &Tensor, layout: Layout) -> Result<Tensor> {
    let extent = layout.span().map_or(0, |(_, hi)| hi + 1) + 2;
    let line = Array::zeros(Layout::contiguous(&[extent])?, t.dtype(), t.device())?;
    let around = if t.dtype().is_floating() { Scalar::Float(f64::NAN) } else { Scalar::Int(i64::MAX) };
    exec::fill(&line, around)?;
    let window = line.with_layout(layout)?;
    exec::copy_into(&window, t.array())?;
    Ok(Tensor::from_array(window))
}

/// The dim along which an input of these sizes can be made by `expand`.
pub(super) fn expandable(sizes: &[usize]) -> Option<usize> {
    sizes.iter().position(|&n| n > 1)
}
