//! A view by sizes, strides and offset in the storage.

use stridegrad_core::{Array, IntoDims, Layout, Result, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::{Edge, Geometry, Kind, Node, SavedState};
use crate::transfer::transfer;

faces! {
    /// A window on the storage (not on this view) by sizes, strides and offset, in elements; without an offset, this
    /// tensor's own. Refused if it reaches outside the storage, or if a stride is negative.
    pub fn as_strided | try_as_strided(&self, sizes: impl IntoDims, strides: impl IntoDims, offset: Option<usize>) -> Tensor {
        let (sizes, strides) = (sizes.into_dims(), strides.into_dims());
        let offset = offset.unwrap_or(self.storage_offset());
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let layout = self.layout().as_strided(&sizes, &strides, Some(offset))?;
        self.array().with_layout(layout)?; // bounds
        let base = self.as_view().map_or(self, |v| &v.base);
        let lowest = base.layout().span().map_or(0, |(lo, _)| lo);
        // A dense base's gradient is laid out as the base is, and this tensor covers it: the same window, counted
        // from the base's start, is its place. (Row-major, so that it is the place in this view's gradient too.)
        let covers = base.layout().is_non_overlapping_and_dense()
            && self.numel() == base.numel()
            && if self.is_view() { self.is_contiguous() } else { true };
        let inside = layout.span().is_none_or(|(lo, hi)| lo >= lowest && hi < lowest + base.numel());
        if covers && inside {
            let at = layout.with_offset(layout.offset().saturating_sub(lowest))?;
            return self.make_view_as("as_strided", false, layout, &move |_| Ok(at));
        }
        let from = *self.layout();
        self.make_cut_view(layout, move |parent| edge(parent, from, layout))
    }
}

/// The node of an `as_strided` that leaves its base (semantics: PyTorch's `as_strided_backward`): the gradient is
/// added into a line through the result's layout and read back through the input's; elements of the input that
/// share a place each get their share.
fn edge(parent: &Tensor, from: Layout, to: Layout) -> Result<Option<Edge>> {
    let Some(edge) = parent.edge() else { return Ok(None) };
    let array = parent.array();
    let end = |l: &Layout| l.span().map_or(0, |(_, hi)| hi + 1);
    let extent = end(&from).max(end(&to));
    let shares = shares(array, &from, extent)?;
    let geometry = Geometry { layout: Layout::contiguous(to.sizes())?, dtype: array.dtype() };
    let kind = Kind::Op {
        backward: Box::new(move |_, g| {
            let Some(g) = &g[0] else { return Ok(vec![None]) };
            let back = transfer(g, to, from, extent)?;
            Ok(vec![Some(match &shares {
                Some(s) => back.try_mul(Tensor::from_array(s.clone()))?,
                None => back,
            })])
        }),
        saved: std::sync::Mutex::new(SavedState::nothing()),
        in_place: false,
    };
    Ok(Some(Edge::Node(
        std::sync::Arc::new(Node::new("as_strided", vec![Some(edge)], vec![geometry], kind)),
        0,
    )))
}

/// One over the number of the input's elements at each element's place; `None` if all are alone.
fn shares(array: &Array, from: &Layout, extent: usize) -> Result<Option<Array>> {
    if !stridegrad_core::self_overlaps(from) {
        return Ok(None);
    }
    let ones = Tensor::from_array(exec::full(
        Layout::contiguous(from.sizes())?,
        1.0.into(),
        array.dtype(),
        array.device(),
    )?);
    let counts = crate::no_grad(|| transfer(&ones, *from, *from, extent))?;
    Ok(Some(ones.try_div(&counts)?.array().clone()))
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::{ErrorKind, MemoryFormat};
    // It looks at the storage: that of a row-major copy is known.
    let sample = |from: &[usize], sizes: &'static [usize], strides: &'static [isize], offset: usize| {
        Sample::new(
            format!("{from:?} as sizes {sizes:?} strides {strides:?} offset {offset}"),
            vec![Input::new(from, Domain::Any)],
            move |t| {
                t[0].try_copy_in_format(MemoryFormat::Contiguous)?.try_as_strided(
                    sizes,
                    strides,
                    Some(offset),
                )
            },
            move |r| {
                let layout = Layout::new(sizes, strides, offset).expect("a layout");
                Ref::new(sizes, layout.offsets().map(|at| r[0].data[at]).collect())
            },
        )
        .numbers()
        .layout_by(move |_, _| Layout::new(sizes, strides, offset))
    };
    let mut beyond = sample(&[2, 6], &[2, 2], &[6, 2], 1);
    // From a view that does not cover its base: the gradient takes an ordinary node.
    beyond.name += " from a narrow view";
    beyond.run = Box::new(|t| {
        let whole = t[0].try_copy_in_format(MemoryFormat::Contiguous)?;
        Ok(vec![whole.try_narrow(1, 1, 4)?.try_as_strided([2, 2], [6, 2], Some(1))?])
    });
    beyond.reference = Box::new(|r| vec![Ref::from_fn(&[2, 2], |i| r[0].data[1 + 6 * i[0] + 2 * i[1]])]);
    OpSpec::new("as_strided", || {
        vec![
            sample(&[6], &[2, 2], &[3, 1], 1),
            sample(&[4], &[3, 2], &[1, 1], 0),
            sample(&[2, 3], &[3, 2], &[1, 3], 0),
            sample(&[3, 4], &[3, 2], &[0, 1], 5),
            sample(&[6], &[0, 2], &[1, 1], 100),
            sample(&[5], &[], &[], 3),
            beyond,
        ]
    })
    .refusal("beyond the storage", ErrorKind::Index, || {
        Tensor::try_ones([6])?.try_as_strided([100], [1], None)
    })
    .refusal("a negative stride", ErrorKind::Argument, || {
        Tensor::try_ones([6])?.try_as_strided([2], [-1], Some(3))
    })
    .refusal("strides of another rank", ErrorKind::Shape, || {
        Tensor::try_ones([6])?.try_as_strided([2, 3], [1], None)
    })
}
