//! `Tensor`: an array and its place in the graph.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use stridegrad_core::{Array, DType, Device, Element, Error, ErrorKind, Layout, MemoryFormat, Result, bail};

use crate::faces::faces;
use crate::graph::{Edge, Geometry, Hook, Kind, Leaf, Node, Observer, SavedState, ViewCell, lock};

/// A strided n-d array with gradients: the one type users meet.
///
/// `Clone` is an O(1) handle to the same tensor (PyTorch's assignment); [`Tensor::copy`] copies the values.
/// A view shares the storage of its base: writes through either show in both.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

pub(crate) struct Inner {
    array: Array,
    /// The edge of a tensor that is no view, or of a view that has become a leaf of its own.
    state: Mutex<State>,
    view: Option<View>,
    /// Set when a view of a tensor without gradient is made to require grad: it is a base from then on.
    own: AtomicBool,
}

#[derive(Default)]
struct State {
    edge: Option<Edge>,
    leaf: Option<Arc<Leaf>>,
    retained: Option<Arc<Mutex<Option<Tensor>>>>,
}

/// What a view knows of its base.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) base: Tensor,
    pub(crate) place: Place,
    pub(crate) flags: ViewFlags,
}

/// Where a view lies in its base's gradient.
#[derive(Clone)]
pub(crate) enum Place {
    /// A window of the base's gradient.
    Window(Arc<ViewCell>),
    /// A window that the base's gradient layout cannot express: an ordinary node from the parent's edge.
    Cut(Arc<Cut>),
}

/// A view whose gradient goes through an ordinary node, made anew when the base's edge has changed.
pub(crate) struct Cut {
    pub(crate) parent: Tensor,
    #[allow(clippy::type_complexity)]
    pub(crate) make: Box<dyn Fn(&Tensor) -> Result<Option<Edge>> + Send + Sync>,
    cached: Mutex<Option<(u64, Edge)>>,
}

impl Cut {
    pub(crate) fn new(
        parent: Tensor,
        make: impl Fn(&Tensor) -> Result<Option<Edge>> + Send + Sync + 'static,
    ) -> Cut {
        Cut { parent, make: Box::new(make), cached: Mutex::new(None) }
    }

    fn edge(&self, view: &Array) -> Option<Edge> {
        let from = self.parent.edge()?.node().seq;
        let mut cached = lock(&self.cached);
        if let Some((seq, edge)) = &*cached
            && *seq == from
        {
            return Some(edge.clone());
        }
        let edge = match (self.make)(&self.parent) {
            Ok(edge) => edge?,
            // Reading an edge cannot fail; the failure belongs to the backward pass that would go through it.
            Err(e) => failing_edge(&self.parent, view, e)?,
        };
        *cached = Some((from, edge.clone()));
        Some(edge)
    }
}

/// An edge whose backward reports why the real one could not be made.
fn failing_edge(parent: &Tensor, view: &Array, error: Error) -> Option<Edge> {
    let geometry = Geometry::of(view).ok()?;
    let (kind, text) = (error.kind(), error.to_string());
    let kind = Kind::Op {
        backward: Box::new(move |_, _| Err(Error::new(kind, "backward", text.clone()))),
        saved: Mutex::new(SavedState::nothing()),
        in_place: false,
    };
    let node = Node::new("view", vec![parent.edge()], vec![geometry], kind);
    Some(Edge::Node(Arc::new(node), 0))
}

/// What a view inherits to the views of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct ViewFlags {
    /// Made by a function with several outputs: no in-place writes that autograd follows.
    pub(crate) multi_output: bool,
    /// Made under `no_grad`.
    pub(crate) no_grad: bool,
}

impl Tensor {
    /// A tensor without gradient.
    pub(crate) fn from_array(array: Array) -> Tensor {
        Tensor::new(array, None, None)
    }

    /// A tensor that came out of a node.
    pub(crate) fn with_edge(array: Array, edge: Edge) -> Tensor {
        Tensor::new(array, Some(edge), None)
    }

    pub(crate) fn new(array: Array, edge: Option<Edge>, view: Option<View>) -> Tensor {
        let state = Mutex::new(State { edge, leaf: None, retained: None });
        Tensor(Arc::new(Inner { array, state, view, own: AtomicBool::new(false) }))
    }

    /// The array: values without graph.
    pub(crate) fn array(&self) -> &Array {
        &self.0.array
    }

    /// The view this tensor is, unless it has become a leaf of its own.
    pub(crate) fn as_view(&self) -> Option<&View> {
        self.0.view.as_ref().filter(|_| !self.0.own.load(Ordering::Acquire))
    }

    /// The edge its gradient takes, as of now.
    pub(crate) fn edge(&self) -> Option<Edge> {
        let Some(view) = self.as_view() else { return lock(&self.0.state).edge.clone() };
        match &view.place {
            Place::Cut(cut) => cut.edge(&self.0.array),
            Place::Window(cell) => match view.base.edge()? {
                Edge::Node(base, output) => Some(Edge::View { cell: cell.clone(), base, output }),
                // A base that is itself a cut view has an ordinary node: never a view edge.
                edge @ Edge::View { .. } => Some(edge),
            },
        }
    }

    /// Replaces the edge of a base, after an in-place write.
    pub(crate) fn set_edge(&self, edge: Edge) {
        let mut state = lock(&self.0.state);
        if let (Some(slot), Edge::Node(node, k)) = (&state.retained, &edge) {
            node.observers.add(*k, Observer::Retain(slot.clone()));
            // The gradient kept is that of the latest value alone.
            if let Some(Edge::Node(old, k)) = &state.edge {
                old.observers.remove_retained(*k);
            }
        }
        state.edge = Some(edge);
    }

    pub(crate) fn leaf(&self) -> Option<Arc<Leaf>> {
        lock(&self.0.state).leaf.clone()
    }

    /// Whether this handle is the only one to the tensor and to its storage.
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.array.storage().is_unique()
    }

    /// How many handles to this tensor there are, views of it included; 1 if this is the only one.
    pub fn handle_count(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether both handles are the same tensor (Python's `is`).
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The size of each dim.
    pub fn sizes(&self) -> &[usize] {
        self.0.array.sizes()
    }

    /// The size of each dim; the same as [`Tensor::sizes`].
    pub fn shape(&self) -> &[usize] {
        self.sizes()
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        self.0.array.layout().strides()
    }

    /// The storage offset, in elements.
    pub fn storage_offset(&self) -> usize {
        self.0.array.layout().offset()
    }

    /// The layout: sizes, strides and offset.
    pub fn layout(&self) -> &Layout {
        self.0.array.layout()
    }

    /// The number of dims.
    pub fn dim(&self) -> usize {
        self.sizes().len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.array.dtype()
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.0.array.device()
    }

    /// Whether the elements lie in row-major order without gaps (dims of size 1 do not count).
    pub fn is_contiguous(&self) -> bool {
        self.layout().is_contiguous()
    }

    /// Whether the elements lie in the order of `format` without gaps.
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        self.layout().is_contiguous_in(format)
    }

    /// The memory format that ops take this tensor to have, by its strides.
    pub fn suggested_format(&self) -> MemoryFormat {
        self.layout().suggested_format()
    }

    /// Whether two tensors are windows on the same storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.0.array.storage().same(other.0.array.storage())
    }

    /// How many writes the storage has seen (PyTorch's `_version`).
    pub fn version(&self) -> u64 {
        crate::graph::version_of(&self.0.array)
    }

    /// Bytes of the storage, all views of it included.
    pub fn storage_bytes(&self) -> usize {
        self.0.array.storage().bytes()
    }

    /// Whether this tensor is a view that autograd tracks to a base.
    pub fn is_view(&self) -> bool {
        self.as_view().is_some()
    }

    /// Whether gradients flow to this tensor.
    pub fn requires_grad(&self) -> bool {
        self.edge().is_some()
    }

    /// Whether this tensor was not made by an op that autograd recorded.
    pub fn is_leaf(&self) -> bool {
        match self.edge() {
            Some(Edge::Node(n, _)) => matches!(n.kind, Kind::Leaf(_)),
            Some(Edge::View { .. }) => false,
            None => true,
        }
    }

    /// The name of the op whose node this tensor's gradient goes to, if any.
    pub fn grad_fn(&self) -> Option<&'static str> {
        match self.edge()? {
            Edge::Node(n, _) if matches!(n.kind, Kind::Leaf(_)) => None,
            Edge::Node(n, _) => Some(n.name),
            Edge::View { .. } => Some("view"),
        }
    }

    /// The gradient accumulated by `backward`, of a leaf or a tensor with [`Tensor::retain_grad`].
    pub fn grad(&self) -> Option<Tensor> {
        let retained = match self.as_view() {
            Some(View { place: Place::Window(cell), .. }) => cell.observers.retained(0),
            _ => lock(&self.0.state).retained.clone(),
        };
        match retained {
            Some(slot) => lock(&slot).clone(),
            None => lock(&self.leaf()?.grad).clone(),
        }
    }

    /// Forgets the accumulated gradient.
    pub fn zero_grad(&self) {
        if let Some(leaf) = self.leaf() {
            *lock(&leaf.grad) = None;
        }
    }

    /// A tensor on the same storage that autograd does not track; it shares the version counter.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::ones([2]).requires_grad_(true);
    /// let d = x.detach();
    /// assert!(!d.requires_grad() && d.shares_storage(&x));
    /// ```
    pub fn detach(&self) -> Tensor {
        Tensor::from_array(self.0.array.clone())
    }

    fn make_leaf(&self) -> Result<()> {
        let geometry = Geometry::of(&self.0.array)?;
        let mut state = lock(&self.0.state);
        let leaf = state.leaf.get_or_insert_with(Default::default).clone();
        let node = Arc::new(Node::new("leaf", Vec::new(), vec![geometry], Kind::Leaf(leaf)));
        state.edge = Some(Edge::Node(node, 0));
        if self.0.view.is_some() {
            self.0.own.store(true, Ordering::Release);
        }
        Ok(())
    }
}

faces! {
    /// Asks for (or, for a leaf, gives up) gradients of this tensor. Returns the tensor itself.
    ///
    /// Panics if the dtype is not floating, or on `requires_grad_(false)` of a tensor that is no leaf.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2]).requires_grad_(true);
    /// x.mul(&x).sum().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 4.0]);
    /// ```
    pub fn requires_grad_ | try_requires_grad_(&self, on: bool) -> Tensor {
        if on && !self.dtype().is_floating() {
            return Err(Error::new(ErrorKind::DType, "requires_grad_",
                format!("only floating-point tensors can require gradients, this one is {}", self.dtype()))
                .hint("convert it with to_dtype() first"));
        }
        match (self.edge(), on) {
            (None, false) => {}
            (Some(_), true) => {}
            (None, true) => self.make_leaf()?,
            (Some(_), false) if self.is_leaf() => lock(&self.0.state).edge = None,
            (Some(_), false) => {
                return Err(Error::new(ErrorKind::Autograd, "requires_grad_",
                    "you can only change requires_grad flags of leaf tensors").hint("use detach() to cut the graph"));
            }
        }
        Ok(self.clone())
    }

    /// Sets or clears the accumulated gradient of a leaf. Panics if sizes, dtype or device differ.
    pub fn set_grad | try_set_grad(&self, grad: Option<&Tensor>) -> () {
        if let Some(g) = grad
            && (g.sizes() != self.sizes() || g.dtype() != self.dtype() || g.device() != self.device())
        {
            bail!(Shape, "set_grad", "a gradient of {} {:?} on {} does not fit a tensor of {} {:?} on {}",
                g.dtype(), g.sizes(), g.device(), self.dtype(), self.sizes(), self.device());
        }
        let mut state = lock(&self.0.state);
        let leaf = state.leaf.get_or_insert_with(Default::default).clone();
        drop(state);
        *lock(&leaf.grad) = grad.map(Tensor::detach);
        Ok(())
    }

    /// Keeps the gradient of a tensor that is no leaf in [`Tensor::grad`] on the next backward.
    pub fn retain_grad | try_retain_grad(&self) -> () {
        if self.is_leaf() && self.requires_grad() {
            return Ok(());
        }
        match (self.edge(), self.as_view()) {
            (None, _) => bail!(Autograd, "retain_grad", "can't retain_grad on a tensor that does not require grad"),
            (Some(Edge::View { cell, .. }), _) => {
                if cell.observers.retained(0).is_none() {
                    cell.observers.add(0, Observer::Retain(Default::default()));
                }
            }
            (Some(Edge::Node(node, k)), _) => {
                let mut state = lock(&self.0.state);
                if state.retained.is_none() {
                    let slot: Arc<Mutex<Option<Tensor>>> = Arc::default();
                    node.observers.add(k, Observer::Retain(slot.clone()));
                    state.retained = Some(slot);
                }
            }
        }
        Ok(())
    }

    /// Calls `hook` with this tensor's gradient on every backward, once the gradient is complete; what it returns
    /// replaces the gradient. Hooks run in the order they were registered.
    pub fn register_hook | try_register_hook(&self, hook: impl Fn(&Tensor) -> Option<Tensor> + Send + Sync + 'static) -> HookHandle {
        let id = next_hook();
        let hook: Arc<Hook> = Arc::new(hook);
        let observer = Observer::Hook(id, hook);
        let place = match self.edge() {
            None => bail!(Autograd, "register_hook", "cannot register a hook on a tensor that doesn't require gradient"),
            Some(Edge::View { cell, .. }) => {
                cell.observers.add(0, observer);
                HookPlace::Cell(cell)
            }
            Some(Edge::Node(node, k)) => {
                node.observers.add(k, observer);
                HookPlace::Node(node)
            }
        };
        Ok(HookHandle { place, id })
    }

    /// Calls `hook` with this leaf after each backward that added to its gradient: to step an optimizer, and drop the
    /// gradient, while backward still runs. Panics for a tensor that is no leaf or requires no grad.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let w = Tensor::ones([2]).requires_grad_(true);
    /// w.register_post_accumulate_grad_hook(|w| {
    ///     w.sub_(&w.grad().unwrap().mul(0.5)); // backward records nothing: writing a leaf is fine
    ///     w.zero_grad();
    /// });
    /// w.sum().backward();
    /// assert_eq!(w.to_vec::<f32>(), [0.5, 0.5]);
    /// assert!(w.grad().is_none());
    /// ```
    pub fn register_post_accumulate_grad_hook | try_register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) + Send + Sync + 'static,
    ) -> HookHandle {
        let op = "register_post_accumulate_grad_hook";
        let Some(leaf) = self.leaf().filter(|_| self.is_leaf() && self.requires_grad()) else {
            bail!(Autograd, op, "post accumulate grad hooks cannot be registered on non-leaf tensors, or without requires_grad");
        };
        let id = next_hook();
        // Weak: the leaf's slot must not keep its tensor alive.
        let tensor = Arc::downgrade(&self.0);
        let run = move || {
            if let Some(inner) = tensor.upgrade() {
                hook(&Tensor(inner));
            }
        };
        lock(&leaf.hooks).push((id, Arc::new(run)));
        Ok(HookHandle { place: HookPlace::Leaf(leaf), id })
    }

    /// The one value of a tensor with one element, converted to `f64`. Panics if there are more.
    pub fn item_f64 | try_item_f64(&self) -> f64 {
        if self.numel() != 1 {
            return Err(Error::new(ErrorKind::Shape, "item", format!("a tensor of sizes {:?} cannot be converted to a scalar", self.sizes())));
        }
        Ok(self.try_to_vec_f64()?[0])
    }
}

enum HookPlace {
    Node(Arc<Node>),
    Cell(Arc<ViewCell>),
    Leaf(Arc<Leaf>),
}

fn next_hook() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A registered hook; dropping the handle keeps the hook.
pub struct HookHandle {
    place: HookPlace,
    id: u64,
}

impl HookHandle {
    /// Unregisters the hook.
    pub fn remove(self) {
        match self.place {
            HookPlace::Node(n) => n.observers.remove_hook(self.id),
            HookPlace::Cell(c) => c.observers.remove_hook(self.id),
            HookPlace::Leaf(l) => lock(&l.hooks).retain(|(id, _)| *id != self.id),
        }
    }
}

// Reading values back to the host.
impl Tensor {
    /// The values in row-major order. Panics if `T` is not this tensor's dtype.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        match self.try_to_vec() {
            Ok(v) => v,
            Err(e) => e.at(std::panic::Location::caller()).raise(),
        }
    }

    /// Fallible form of [`Tensor::to_vec`].
    pub fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.0.array.to_vec()
    }

    /// The values as little-endian bytes, in row-major order, as files hold them; a `bool` is 0 or 1.
    pub fn try_to_le_bytes(&self) -> Result<Vec<u8>> {
        self.0.array.to_le_bytes()
    }

    /// The values in row-major order, converted to `f64` on the host.
    pub fn try_to_vec_f64(&self) -> Result<Vec<f64>> {
        fn get<T: Element>(a: &Array) -> Result<Vec<f64>> {
            Ok(a.to_vec::<T>()?.into_iter().map(Element::to_f64).collect())
        }
        let a = &self.0.array;
        match a.dtype() {
            DType::F64 => a.to_vec(),
            DType::F32 => get::<f32>(a),
            DType::F16 => get::<half::f16>(a),
            DType::BF16 => get::<half::bf16>(a),
            DType::I64 => get::<i64>(a),
            DType::I32 => get::<i32>(a),
            DType::I16 => get::<i16>(a),
            DType::I8 => get::<i8>(a),
            DType::U8 => get::<u8>(a),
            DType::Bool => get::<bool>(a),
            other => bail!(Unsupported, "to_vec_f64", "reading {other} back is not supported"),
        }
    }

    /// The one value of a tensor with one element. Panics if there are more, or if `T` is not this tensor's dtype.
    #[track_caller]
    pub fn item<T: Element>(&self) -> T {
        match self.try_item() {
            Ok(v) => v,
            Err(e) => e.at(std::panic::Location::caller()).raise(),
        }
    }

    /// Fallible form of [`Tensor::item`].
    pub fn try_item<T: Element>(&self) -> Result<T> {
        if self.numel() != 1 {
            bail!(Shape, "item", "a tensor of sizes {:?} has no single value", self.sizes());
        }
        Ok(self.try_to_vec::<T>()?[0])
    }
}
