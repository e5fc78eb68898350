//! In-place writes that autograd follows: the base's history is rebased onto the write.

use std::sync::Arc;

use stridegrad_core::{Array, Error, ErrorKind, Layout, Result, exec};

use crate::Tensor;
use crate::graph::{Ctx, Edge, Geometry, Kind, Recorder};
use crate::tensor::Place;
use crate::transfer::{replace_window, transfer};

/// The gradients of an in-place op on a window: of its old value, and of the other operands, from that of its new one.
pub(crate) type WindowFn = dyn Fn(&Ctx<'_>, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// An in-place op on `target`: checks what autograd forbids, runs `write`, and rebases the history.
///
/// `prepare` may save values on the recorder, whose inputs are the target (0) and then `others`. `backward` gets
/// the gradient of the written window and returns those of all the inputs; it never sees the rest of the base.
pub(crate) fn in_place(
    op: &'static str,
    target: &Tensor,
    others: &[&Tensor],
    prepare: impl FnOnce(&mut Recorder) -> Result<()>,
    write: impl FnOnce(&Array) -> Result<()>,
    backward: impl Fn(&Ctx<'_>, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
) -> Result<()> {
    let inputs: Vec<&Tensor> = std::iter::once(target).chain(others.iter().copied()).collect();
    let mut rec = Recorder::new(op, &inputs);
    if !rec.any() {
        return write(target.array());
    }
    check(op, target)?;
    prepare(&mut rec)?;
    let (base, at) = match target.as_view() {
        None => (target.clone(), None),
        Some(view) => match &view.place {
            Place::Window(cell) => (view.base.clone(), Some(cell.at)),
            Place::Cut(_) => {
                return Err(Error::new(
                    ErrorKind::InPlace,
                    op,
                    format!(
                        "autograd cannot follow a write through this view (sizes {:?}, strides {:?}): its base is not dense and the window cannot be expressed in its gradient",
                        target.sizes(), target.strides()
                    ),
                )
                .hint("make the base contiguous() first, or write under no_grad"));
            }
        },
    };
    let geometry = Geometry::of(base.array())?;
    let whole = geometry.layout;
    // The node's first input is the base: as it was before the write.
    let base_edge = base.edge();
    write(target.array())?;
    let needs_base = base_edge.is_some();
    let mut node = rec.finish_in_place(
        geometry,
        Box::new(move |ctx, grads| {
            let Some(g) = &grads[0] else { return Ok(vec![None; ctx.wanted.len()]) };
            through_window(ctx, g, whole, at, needs_base, &backward)
        }),
    );
    node.inputs[0] = base_edge;
    base.set_edge(Edge::Node(Arc::new(node), 0));
    Ok(())
}

fn through_window(
    ctx: &Ctx<'_>,
    g: &Tensor,
    whole: Layout,
    at: Option<Layout>,
    needs_base: bool,
    backward: &WindowFn,
) -> Result<Vec<Option<Tensor>>> {
    let Some(at) = at else { return backward(ctx, g) };
    if ctx.create_graph || g.requires_grad() {
        let window = transfer(g, whole, at, whole.numel())?;
        let mut grads = backward(ctx, &window)?;
        if needs_base && ctx.needs(0) {
            let inside = match grads[0].take() {
                Some(v) => v,
                None => {
                    Tensor::from_array(Array::zeros(Layout::contiguous(at.sizes())?, g.dtype(), g.device())?)
                }
            };
            grads[0] = Some(replace_window(g, whole, at, &inside)?);
        }
        return Ok(grads);
    }
    // The engine's buffer, if nobody else holds it: edited in place, so that a write costs what its window costs.
    let buffer = match crate::transfer::same_strides(g.layout(), &whole) && ctx.may_edit(g) {
        true => g.array().clone(),
        false => exec::copy_to(g.array(), whole, g.dtype())?,
    };
    let window = buffer.with_layout(window_of(&buffer, &at)?)?;
    let old = Tensor::from_array(exec::copy_to(&window, Layout::contiguous(at.sizes())?, g.dtype())?);
    let mut grads = backward(ctx, &old)?;
    if needs_base && ctx.needs(0) {
        match grads[0].take() {
            Some(v) => exec::copy_into(&window, v.array())?,
            None => exec::fill(&window, 0.0.into())?,
        }
        grads[0] = Some(Tensor::from_array(buffer));
    }
    Ok(grads)
}

fn window_of(buffer: &Array, at: &Layout) -> Result<Layout> {
    at.with_offset(at.offset() + buffer.layout().offset())
}

/// What autograd refuses to follow, before anything is written.
fn check(op: &'static str, target: &Tensor) -> Result<()> {
    let refuse = |message: String, hint: &str| Err(Error::new(ErrorKind::InPlace, op, message).hint(hint));
    let is_leaf = |t: &Tensor| matches!(t.edge(), Some(Edge::Node(n, _)) if matches!(n.kind, Kind::Leaf(_)));
    match target.as_view() {
        None if is_leaf(target) => refuse(
            "a leaf Variable that requires grad is being used in an in-place operation".into(),
            "write under no_grad, or into a copy()",
        ),
        Some(v) if is_leaf(&v.base) => refuse(
            "a view of a leaf Variable that requires grad is being used in an in-place operation".into(),
            "write under no_grad, or into a copy()",
        ),
        Some(v) if v.flags.multi_output => refuse(
            "this view is the output of a function that returns multiple views (split, chunk, unbind); autograd does not follow in-place writes to it".into(),
            "use narrow() or select(), or write into a copy()",
        ),
        Some(v) if v.flags.no_grad => refuse(
            "a view was created in no_grad mode and is being modified inplace with grad mode enabled".into(),
            "make the view outside no_grad, or write under no_grad",
        ),
        _ => Ok(()),
    }
}
