//! The graph: nodes, edges, and what nodes save.
//!
//! Nodes are owned by the tensors that come after them (`Arc` to the parents) and save arrays, never tensors: a
//! tensor owns its node, so a node that owned a tensor could be a cycle. There is no tape and no global state but
//! one counter, whose order the engine relies on: a node is always younger than the nodes it has edges to.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use stridegrad_core::{Array, CallerScope, DType, Error, ErrorKind, Layout, Result};

use crate::Tensor;
use crate::checkpoint::{Frame, settle};

/// The version of an array's storage. Tests of the tests may hide bumps: see `tamper`.
pub(crate) fn version_of(a: &Array) -> u64 {
    #[cfg(feature = "testkit")]
    return crate::tamper::version(a);
    #[cfg(not(feature = "testkit"))]
    a.version()
}

/// Locks without poisoning: every critical section leaves its data valid.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// Where a gradient of a value goes.
#[derive(Clone)]
pub(crate) enum Edge {
    /// To an output of a node.
    Node(Arc<Node>, usize),
    /// To a part of an output of a node: the value is a view.
    View { cell: Arc<ViewCell>, base: Arc<Node>, output: usize },
}

impl Edge {
    /// Sizes and dtype of the value, and so of its gradient.
    pub(crate) fn meta(&self) -> (&[usize], DType) {
        match self {
            Edge::Node(n, k) => (n.outputs[*k].layout.sizes(), n.outputs[*k].dtype),
            Edge::View { cell, base, output } => (cell.at.sizes(), base.outputs[*output].dtype),
        }
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        match self {
            Edge::Node(n, _) | Edge::View { base: n, .. } => n,
        }
    }
}

/// The identity of a view for autograd: where it lies in the gradient of its base.
pub(crate) struct ViewCell {
    /// The window in the base's gradient layout.
    pub(crate) at: Layout,
    /// The window in the parent's row-major gradient, for when the parent is observed.
    pub(crate) at_parent: Layout,
    pub(crate) parent: Option<Arc<ViewCell>>,
    /// How many views lie between this one and the base, itself included.
    pub(crate) depth: usize,
    pub(crate) observers: Observers,
}

impl Drop for ViewCell {
    fn drop(&mut self) {
        // Iterative: a chain of a million views must not recurse.
        let mut next = self.parent.take();
        while let Some(mut cell) = next.and_then(Arc::into_inner) {
            next = cell.parent.take();
        }
    }
}

/// Layout and dtype of a node's output: the geometry of its gradient buffer.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    /// Dense, offset 0.
    pub(crate) layout: Layout,
    pub(crate) dtype: DType,
}

impl Geometry {
    /// A dense array's own strides, else row-major ones (PyTorch's gradient layout contract).
    pub(crate) fn of(a: &Array) -> Result<Geometry> {
        let layout = gradient_layout(a.layout())?;
        Ok(Geometry { layout, dtype: a.dtype() })
    }
}

pub(crate) fn gradient_layout(l: &Layout) -> Result<Layout> {
    if l.is_non_overlapping_and_dense() && l.strides().iter().all(|&s| s >= 0) {
        l.with_offset(0)
    } else {
        Layout::contiguous(l.sizes())
    }
}

/// A user's function on a gradient: it may return a replacement of the same sizes.
pub type Hook = dyn Fn(&Tensor) -> Option<Tensor> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Observer {
    Hook(u64, Arc<Hook>),
    Retain(Arc<Mutex<Option<Tensor>>>),
}

/// Hooks and retained-gradient slots of a value; empty and cheap for nearly every one.
#[derive(Default)]
pub(crate) struct Observers {
    any: AtomicBool,
    list: Mutex<Vec<(usize, Observer)>>,
}

impl Observers {
    pub(crate) fn add(&self, output: usize, o: Observer) {
        lock(&self.list).push((output, o));
        self.any.store(true, Ordering::Release);
    }

    pub(crate) fn remove_hook(&self, id: u64) {
        lock(&self.list).retain(|(_, o)| !matches!(o, Observer::Hook(i, _) if *i == id));
    }

    pub(crate) fn remove_retained(&self, output: usize) {
        lock(&self.list).retain(|(k, o)| !(*k == output && matches!(o, Observer::Retain(_))));
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The observers of one output, in registration order.
    pub(crate) fn of(&self, output: usize) -> Vec<Observer> {
        if !self.any() {
            return Vec::new();
        }
        lock(&self.list).iter().filter(|(k, _)| *k == output).map(|(_, o)| o.clone()).collect()
    }

    /// The retained gradient of an output, if it is retained.
    pub(crate) fn retained(&self, output: usize) -> Option<Arc<Mutex<Option<Tensor>>>> {
        self.of(output).into_iter().find_map(|o| match o {
            Observer::Retain(slot) => Some(slot),
            Observer::Hook(..) => None,
        })
    }
}

/// The gradient slot of a leaf, shared by the tensor and its node.
#[derive(Default)]
pub(crate) struct Leaf {
    pub(crate) grad: Mutex<Option<Tensor>>,
    /// What runs after a backward has added to `grad`, in registration order.
    #[allow(clippy::type_complexity)]
    pub(crate) hooks: Mutex<Vec<(u64, Arc<dyn Fn() + Send + Sync>)>>,
}

/// The backward function of an op: the gradients of its inputs from those of its outputs.
pub(crate) type BackwardFn =
    Box<dyn Fn(&Ctx<'_>, &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> + Send + Sync>;

pub(crate) enum Kind {
    /// Accumulates into a leaf's gradient slot.
    Leaf(Arc<Leaf>),
    /// Runs a backward function.
    Op { backward: BackwardFn, saved: Mutex<SavedState>, in_place: bool },
}

pub(crate) enum SavedState {
    Kept(Arc<SavedValues>),
    /// Computed again when wanted; the edges are those of the saved inputs.
    Recompute {
        frame: Arc<Frame>,
        index: usize,
        edges: Vec<Option<Edge>>,
    },
    Freed,
}

impl SavedState {
    /// For nodes that save nothing.
    pub(crate) fn nothing() -> SavedState {
        SavedState::Kept(Arc::default())
    }
}

#[derive(Clone, Default)]
pub(crate) struct SavedValues {
    pub(crate) inputs: Vec<Option<Saved>>,
    pub(crate) outputs: Vec<Option<Saved>>,
    /// Values that carry no gradient: indices, masks, statistics.
    pub(crate) extras: Vec<Saved>,
}

impl SavedValues {
    pub(crate) fn is_empty(&self) -> bool {
        self.inputs.iter().all(Option::is_none)
            && self.outputs.iter().all(Option::is_none)
            && self.extras.is_empty()
    }
}

/// A value a node saved, and the version it had.
#[derive(Clone)]
pub(crate) struct Saved {
    pub(crate) array: Array,
    pub(crate) edge: Option<Edge>,
    pub(crate) version: u64,
}

/// A step of the graph.
pub(crate) struct Node {
    pub(crate) seq: u64,
    pub(crate) name: &'static str,
    pub(crate) caller: Option<&'static Location<'static>>,
    pub(crate) inputs: Vec<Option<Edge>>,
    pub(crate) outputs: Vec<Geometry>,
    pub(crate) kind: Kind,
    pub(crate) observers: Observers,
}

static SEQ: AtomicU64 = AtomicU64::new(1);

impl Node {
    pub(crate) fn new(
        name: &'static str,
        inputs: Vec<Option<Edge>>,
        outputs: Vec<Geometry>,
        kind: Kind,
    ) -> Node {
        Node {
            seq: SEQ.fetch_add(1, Ordering::Relaxed),
            name,
            caller: CallerScope::current(),
            inputs,
            outputs,
            kind,
            observers: Observers::default(),
        }
    }

    /// Where in the user's program the op was called, for messages.
    pub(crate) fn whence(&self) -> String {
        match self.caller {
            Some(c) => format!("{} called at {}:{}:{}", self.name, c.file(), c.line(), c.column()),
            None => self.name.to_string(),
        }
    }

    fn drain(&mut self, stack: &mut Vec<Arc<Node>>) {
        let mut push = |e: Edge| match e {
            Edge::Node(n, _) | Edge::View { base: n, .. } => stack.push(n),
        };
        self.inputs.drain(..).flatten().for_each(&mut push);
        if let Kind::Op { saved, .. } = &mut self.kind {
            let saved = saved.get_mut().unwrap_or_else(|e| e.into_inner());
            match std::mem::replace(saved, SavedState::Freed) {
                SavedState::Kept(values) => {
                    let inputs = Arc::into_inner(values).map(|v| v.inputs).unwrap_or_default();
                    inputs.into_iter().flatten().filter_map(|s| s.edge).for_each(&mut push);
                }
                SavedState::Recompute { edges, .. } => edges.into_iter().flatten().for_each(&mut push),
                SavedState::Freed => {}
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Iterative: a graph a million deep must not recurse.
        let mut stack = Vec::new();
        self.drain(&mut stack);
        while let Some(node) = stack.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                node.drain(&mut stack);
            }
        }
    }
}

/// What a backward function sees: which gradients are wanted, and what its op saved.
pub(crate) struct Ctx<'a> {
    pub(crate) node: &'a Arc<Node>,
    pub(crate) saved: &'a SavedValues,
    /// Which inputs' gradients are wanted in this pass.
    pub(crate) wanted: &'a [bool],
    /// Whether the gradients will be differentiated themselves.
    pub(crate) create_graph: bool,
}

impl Ctx<'_> {
    /// Whether the gradient of input `i` is wanted.
    pub(crate) fn needs(&self, i: usize) -> bool {
        self.wanted[i]
    }

    /// Whether an in-place op's backward may edit its gradient: the engine made it for this node alone.
    pub(crate) fn may_edit(&self, g: &Tensor) -> bool {
        matches!(self.node.kind, Kind::Op { in_place: true, .. }) && g.is_unique()
    }

    /// Sizes of input `i`.
    pub(crate) fn sizes(&self, i: usize) -> &[usize] {
        self.node.inputs[i].as_ref().map_or(&[], |e| e.meta().0)
    }

    /// `grad` summed over broadcast dims to the sizes of input `i`, in its dtype.
    pub(crate) fn reduce_to(&self, i: usize, grad: Tensor) -> Result<Option<Tensor>> {
        let Some(edge) = &self.node.inputs[i] else { return Ok(None) };
        let (sizes, dtype) = edge.meta();
        let grad = if grad.sizes() == sizes { grad } else { grad.try_sum_to_size(sizes)? };
        Ok(Some(if grad.dtype() == dtype { grad } else { grad.try_to_dtype(dtype)? }))
    }

    fn check(&self, s: &Saved, what: &str) -> Result<()> {
        let now = version_of(&s.array);
        if now != s.version {
            return Err(Error::new(
                ErrorKind::Autograd,
                "backward",
                format!(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: {what} of {} ({} {:?}) is at version {now}; expected version {}",
                    self.node.whence(), s.array.dtype(), s.array.sizes(), s.version
                ),
            )
            .hint("write in place after backward, or into a copy()"));
        }
        Ok(())
    }

    fn lost(&self, what: &str, i: usize) -> Error {
        Error::new(ErrorKind::Autograd, "backward", format!("{what} {i} of {} was not saved", self.node.name))
    }

    /// Input `i` as it was, if the op saved it.
    pub(crate) fn input(&self, i: usize) -> Result<Tensor> {
        let s = self.saved.inputs.get(i).and_then(Option::as_ref).ok_or_else(|| self.lost("input", i))?;
        self.check(s, &format!("input {i}"))?;
        self.tensor(&s.array, s.edge.clone())
    }

    /// Output `k` as it was, if the op saved it.
    pub(crate) fn output(&self, k: usize) -> Result<Tensor> {
        let s = self.saved.outputs.get(k).and_then(Option::as_ref).ok_or_else(|| self.lost("output", k))?;
        self.check(s, &format!("output {k}"))?;
        self.tensor(&s.array, Some(Edge::Node(self.node.clone(), k)))
    }

    /// The `k`-th extra value.
    pub(crate) fn extra(&self, k: usize) -> Result<Tensor> {
        let s = self.saved.extras.get(k).ok_or_else(|| self.lost("value", k))?;
        self.check(s, "a saved value")?;
        Ok(Tensor::from_array(s.array.clone()))
    }

    fn tensor(&self, array: &Array, edge: Option<Edge>) -> Result<Tensor> {
        let edge = edge.filter(|_| self.create_graph);
        match edge {
            None => Ok(Tensor::from_array(array.clone())),
            Some(Edge::Node(n, k)) => Ok(Tensor::with_edge(array.clone(), Edge::Node(n, k))),
            // A tensor's own edge is always to a node: step through an identity.
            Some(view) => {
                let geometry = Geometry::of(array)?;
                let kind = Kind::Op {
                    backward: Box::new(|_, g| Ok(vec![g[0].clone()])),
                    saved: Mutex::new(SavedState::nothing()),
                    in_place: false,
                };
                let node = Node::new("view", vec![Some(view)], vec![geometry], kind);
                Ok(Tensor::with_edge(array.clone(), Edge::Node(Arc::new(node), 0)))
            }
        }
    }
}

/// Records one op: made before its kernel runs, so that versions and edges are those of what the kernel reads.
pub(crate) struct Recorder {
    name: &'static str,
    edges: Vec<Option<Edge>>,
    arrays: Vec<(Array, u64)>,
    saved: SavedValues,
    save_output: Vec<usize>,
    any: bool,
}

impl Recorder {
    /// Notes the inputs' edges and versions, if grad mode is on.
    pub(crate) fn new(name: &'static str, inputs: &[&Tensor]) -> Recorder {
        let on = crate::is_grad_enabled();
        let edges: Vec<Option<Edge>> =
            if on { inputs.iter().map(|t| t.edge()).collect() } else { Vec::new() };
        let any = edges.iter().any(Option::is_some);
        let arrays = if any {
            inputs.iter().map(|t| (t.array().clone(), t.array().version())).collect()
        } else {
            Vec::new()
        };
        Recorder { name, edges, arrays, saved: SavedValues::default(), save_output: Vec::new(), any }
    }

    /// Whether any input requires grad.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Whether input `i` requires grad.
    pub(crate) fn needs(&self, i: usize) -> bool {
        self.any && self.edges[i].is_some()
    }

    /// Saves input `i` for backward.
    pub(crate) fn save_input(&mut self, i: usize) {
        if !self.any {
            return;
        }
        self.saved.inputs.resize_with(self.arrays.len(), || None);
        let (array, version) = self.arrays[i].clone();
        self.saved.inputs[i] = Some(Saved { array, edge: self.edges[i].clone(), version });
    }

    /// Saves a copy of input `i` in place of itself, for ops that overwrite it.
    pub(crate) fn save_input_copy(&mut self, i: usize, copy: Array) {
        self.saved.inputs.resize_with(self.arrays.len(), || None);
        let version = copy.version();
        self.saved.inputs[i] = Some(Saved { array: copy, edge: self.edges[i].clone(), version });
    }

    /// Saves output `k` for backward.
    pub(crate) fn save_output(&mut self, k: usize) {
        if self.any {
            self.save_output.push(k);
        }
    }

    /// Saves a value that carries no gradient; returns nothing, it is `ctx.extra(k)` in order of calls.
    pub(crate) fn save_extra(&mut self, array: &Array) {
        if self.any {
            self.saved.extras.push(Saved { array: array.clone(), edge: None, version: array.version() });
        }
    }

    /// The result as a tensor, with a node if one is needed. `backward` gets the output's gradient.
    pub(crate) fn finish(
        self,
        out: Array,
        backward: impl Fn(&Ctx<'_>, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Result<Tensor> {
        if !self.any || !out.dtype().is_floating() {
            return Ok(Tensor::from_array(out));
        }
        let f: BackwardFn = Box::new(move |ctx, grads| match &grads[0] {
            Some(g) => backward(ctx, g),
            None => Ok(vec![None; ctx.wanted.len()]),
        });
        let mut outs = self.finish_many(vec![out], f)?;
        Ok(outs.remove(0))
    }

    /// As [`Recorder::finish`] for several outputs; integer outputs carry no gradient.
    pub(crate) fn finish_many(mut self, outs: Vec<Array>, backward: BackwardFn) -> Result<Vec<Tensor>> {
        if !self.any {
            return Ok(outs.into_iter().map(Tensor::from_array).collect());
        }
        self.saved.outputs.resize_with(outs.len(), || None);
        for &k in &self.save_output {
            self.saved.outputs[k] =
                Some(Saved { array: outs[k].clone(), edge: None, version: outs[k].version() });
        }
        let geometry = outs.iter().map(Geometry::of).collect::<Result<Vec<_>>>()?;
        let saved = settle(self.name, || self.arrays.iter().map(|(_, v)| *v).collect(), self.saved);
        let kind = Kind::Op { backward, saved: Mutex::new(saved), in_place: false };
        let node = Arc::new(Node::new(self.name, self.edges, geometry, kind));
        Ok(outs
            .into_iter()
            .enumerate()
            .map(|(k, a)| {
                if a.dtype().is_floating() {
                    Tensor::with_edge(a, Edge::Node(node.clone(), k))
                } else {
                    Tensor::from_array(a)
                }
            })
            .collect())
    }

    /// The node of an in-place op on `geometry` (the base's), whose first input is the base's old edge.
    pub(crate) fn finish_in_place(self, geometry: Geometry, backward: BackwardFn) -> Node {
        let saved = settle(self.name, || self.arrays.iter().map(|(_, v)| *v).collect(), self.saved);
        let kind = Kind::Op { backward, saved: Mutex::new(saved), in_place: true };
        Node::new(self.name, self.edges, vec![geometry], kind)
    }
}
