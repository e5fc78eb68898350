//! Making views: the same storage, another layout, and a place in the base's gradient.

use std::sync::{Arc, Mutex};

use stridegrad_core::{Layout, Result};

use crate::Tensor;
use crate::graph::{Edge, Geometry, Kind, Node, SavedState, ViewCell, gradient_layout};
use crate::tensor::{Cut, Place, View, ViewFlags};
use crate::transfer::transfer;

/// A geometric function that can be run on the view's layout and on its base's gradient alike.
pub(crate) type ViewFn<'a> = dyn Fn(&Layout) -> Result<Layout> + 'a;

impl Tensor {
    /// A view by `f`. `f` runs on the array's layout, and again on the place of this tensor in its base's gradient.
    pub(crate) fn make_view(&self, op: &'static str, f: &ViewFn<'_>) -> Result<Tensor> {
        self.make_view_flagged(op, false, f)
    }

    pub(crate) fn make_view_flagged(
        &self,
        op: &'static str,
        multi_output: bool,
        f: &ViewFn<'_>,
    ) -> Result<Tensor> {
        self.make_view_as(op, multi_output, f(self.layout())?, f)
    }

    /// A view of a given layout; `f` says where it lies in a gradient in which this tensor lies as `f` is told.
    pub(crate) fn make_view_as(
        &self,
        op: &'static str,
        multi_output: bool,
        layout: Layout,
        f: &ViewFn<'_>,
    ) -> Result<Tensor> {
        let array = self.array().with_layout(layout)?;
        if !self.dtype().is_floating() {
            return Ok(Tensor::from_array(array)); // nothing to track, ever
        }
        let flags = ViewFlags { multi_output, no_grad: !crate::is_grad_enabled() };
        let row_major = Layout::contiguous(self.sizes())?;
        let (base, place, flags) = match self.as_view() {
            None => {
                let at = f(&gradient_layout(self.layout())?);
                (self.clone(), at.map(|at| (at, None)), flags)
            }
            Some(view) => {
                let flags = ViewFlags {
                    multi_output: multi_output || view.flags.multi_output,
                    no_grad: flags.no_grad || view.flags.no_grad,
                };
                match &view.place {
                    Place::Window(cell) => {
                        (view.base.clone(), f(&cell.at).map(|at| (at, Some(cell.clone()))), flags)
                    }
                    // The gradient of a cut view has a geometry of its own: it is the base of its views.
                    Place::Cut(_) => {
                        (self.clone(), f(&gradient_layout(self.layout())?).map(|at| (at, None)), flags)
                    }
                }
            }
        };
        let place = match place {
            Ok((at, parent)) => {
                let depth = parent.as_ref().map_or(0, |p| p.depth) + 1;
                let at_parent = f(&row_major)?;
                Place::Window(Arc::new(ViewCell {
                    at,
                    at_parent,
                    parent,
                    depth,
                    observers: Default::default(),
                }))
            }
            Err(_) => {
                // Legal on the base's own strides, not on its dense gradient: on a row-major one everything is.
                let at = f(&row_major)?;
                Place::Cut(Arc::new(Cut::new(self.clone(), move |parent| {
                    cut_edge(op, parent, row_major, at)
                })))
            }
        };
        Ok(Tensor::new(array, None, Some(View { base, place, flags })))
    }

    /// A view whose gradient is computed by `edge` from the parent's.
    pub(crate) fn make_cut_view(
        &self,
        layout: Layout,
        edge: impl Fn(&Tensor) -> Result<Option<Edge>> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        let array = self.array().with_layout(layout)?;
        if !self.dtype().is_floating() {
            return Ok(Tensor::from_array(array));
        }
        let mut flags = ViewFlags { multi_output: false, no_grad: !crate::is_grad_enabled() };
        let base = match self.as_view() {
            Some(v) => {
                flags = ViewFlags {
                    multi_output: v.flags.multi_output,
                    no_grad: flags.no_grad || v.flags.no_grad,
                };
                v.base.clone()
            }
            None => self.clone(),
        };
        let place = Place::Cut(Arc::new(Cut::new(self.clone(), edge)));
        Ok(Tensor::new(array, None, Some(View { base, place, flags })))
    }
}

/// An ordinary node for a view: its backward writes the gradient into a row-major gradient of the parent.
fn cut_edge(op: &'static str, parent: &Tensor, whole: Layout, at: Layout) -> Result<Option<Edge>> {
    let Some(edge) = parent.edge() else { return Ok(None) };
    let array = parent.array();
    let geometry = Geometry { layout: Layout::contiguous(at.sizes())?, dtype: array.dtype() };
    let kind = Kind::Op {
        backward: Box::new(move |_, g| {
            Ok(vec![g[0].as_ref().map(|g| transfer(g, at, whole, whole.numel())).transpose()?])
        }),
        saved: Mutex::new(SavedState::nothing()),
        in_place: false,
    };
    let node = Node::new(op, vec![Some(edge)], vec![geometry], kind);
    Ok(Some(Edge::Node(Arc::new(node), 0)))
}
