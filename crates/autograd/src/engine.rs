//! The backward engine: iterative, ordered by the nodes' sequence numbers, with gradients of views accumulated
//! in place through the view's own layout.
//!
//! Nodes wait in a heap, youngest first. A node is younger than every node it has edges to, so when it comes up
//! all its gradients have arrived. An edge of a view leads straight to a window of its base's gradient, unless
//! something on the way is observed; then the observed view waits just above its base.

use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use stridegrad_core::{Array, Error, ErrorKind, Layout, Result, bail, exec};

use crate::graph::{
    Ctx, Edge, Geometry, Kind, Leaf, Node, Observer, SavedState, ViewCell, gradient_layout, lock,
};
use crate::transfer::{self, sum_repeats, transfer_sum};
use crate::{GradMode, Tensor};

/// What has arrived so far for one value.
enum Slot {
    Empty,
    /// One gradient for the whole value, in any layout; it may be shared with others.
    Whole(Tensor),
    /// A buffer of the value's geometry that the engine alone holds.
    Owned(Array),
    /// With `create_graph`: contributions, each for a window or for all.
    List(Vec<(Tensor, Option<Layout>)>),
}

/// What a gradient is wanted for: a node's output, or a view of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    node: usize,
    output: usize,
    /// 0 for the node itself.
    cell: usize,
}

impl Key {
    fn node(n: &Arc<Node>, output: usize) -> Key {
        Key { node: Arc::as_ptr(n) as usize, output, cell: 0 }
    }
    fn cell(c: &Arc<ViewCell>, n: &Arc<Node>, output: usize) -> Key {
        Key { cell: Arc::as_ptr(c) as usize, ..Key::node(n, output) }
    }
    fn of(edge: &Edge) -> Key {
        match edge {
            Edge::Node(n, k) => Key::node(n, *k),
            Edge::View { cell, base, output } => Key::cell(cell, base, *output),
        }
    }
}

enum Item {
    Node { node: Arc<Node>, slots: Vec<Slot> },
    Cell { cell: Arc<ViewCell>, base: Arc<Node>, output: usize, slot: Slot },
}

/// One backward pass.
struct Pass {
    keep: bool,
    create_graph: bool,
    /// Wanted gradients by place; empty for `backward`, which accumulates into leaves instead.
    captures: HashMap<Key, Option<Tensor>>,
    /// For `grad`: the nodes that lead to a capture. For `backward`: none, all do.
    useful: Option<HashSet<usize>>,
    items: HashMap<Key, Item>,
    heap: BinaryHeap<(u64, usize, u64, Wait)>,
    ticket: u64,
}

/// A heap entry's key; it takes no part in the order.
struct Wait(Key);
impl PartialEq for Wait {
    fn eq(&self, _: &Wait) -> bool {
        true
    }
}
impl Eq for Wait {}
impl PartialOrd for Wait {
    fn partial_cmp(&self, o: &Wait) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Wait {
    fn cmp(&self, _: &Wait) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// How a backward pass treats the graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct BackwardOptions {
    /// Keep what the nodes saved, so that a second backward can run. Implied by `create_graph`.
    pub retain_graph: bool,
    /// Record the gradients' own graph, for derivatives of derivatives.
    pub create_graph: bool,
}

/// How [`grad`](crate::grad) treats the graph and inputs that the outputs do not depend on.
///
/// The default is PyTorch's: such an input is an error. [`BackwardOptions`] given in its place allow it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GradOptions {
    /// Keep what the nodes saved, so that a second backward can run. Implied by `create_graph`.
    pub retain_graph: bool,
    /// Record the gradients' own graph, for derivatives of derivatives.
    pub create_graph: bool,
    /// `None` for an input that the outputs do not depend on, instead of an error.
    pub allow_unused: bool,
    /// Zeros for such an input, instead of `None` or an error.
    pub materialize_grads: bool,
}

impl From<BackwardOptions> for GradOptions {
    fn from(o: BackwardOptions) -> GradOptions {
        let BackwardOptions { retain_graph, create_graph } = o;
        GradOptions { retain_graph, create_graph, allow_unused: true, materialize_grads: false }
    }
}

/// Checks the seeds of a pass: one gradient an output, of its very sizes; none only for a single element.
fn seeds(op: &'static str, outputs: &[&Tensor], grads: Option<&[&Tensor]>) -> Result<Vec<(Edge, Tensor)>> {
    if let Some(g) = grads
        && g.len() != outputs.len()
    {
        bail!(Argument, op, "{} gradients for {} outputs", g.len(), outputs.len());
    }
    let mut all = Vec::new();
    for (i, out) in outputs.iter().enumerate() {
        let Some(edge) = out.edge() else {
            return Err(Error::new(
                ErrorKind::Autograd,
                op,
                format!("element {i} of tensors does not require grad and does not have a grad_fn"),
            )
            .hint("mark a leaf with requires_grad_(true), and compute outside no_grad"));
        };
        let seed = match grads {
            Some(g) => {
                if g[i].sizes() != out.sizes() {
                    bail!(
                        Shape,
                        op,
                        "the gradient of output {i} has sizes {:?}, the output {:?}",
                        g[i].sizes(),
                        out.sizes()
                    );
                }
                if g[i].dtype() == out.dtype() { g[i].clone() } else { g[i].try_to_dtype(out.dtype())? }
            }
            None if out.numel() == 1 => {
                let layout = Layout::contiguous(out.sizes())?;
                Tensor::from_array(exec::full(layout, 1.0.into(), out.dtype(), out.device())?)
            }
            None => {
                return Err(Error::new(
                    ErrorKind::Autograd,
                    op,
                    format!(
                        "grad can be implicitly created only for scalar outputs, this one has sizes {:?}",
                        out.sizes()
                    ),
                )
                .hint("reduce it with sum() or mean(), or give the gradient with backward_with()"));
            }
        };
        all.push((edge, seed));
    }
    Ok(all)
}

/// Accumulates the gradients of `outputs` into the leaves they depend on.
pub(crate) fn backward(
    outputs: &[&Tensor],
    grads: Option<&[&Tensor]>,
    options: BackwardOptions,
) -> Result<()> {
    let seeds = seeds("backward", outputs, grads)?;
    Pass::new(options).run(seeds)?;
    Ok(())
}

/// The gradients of `outputs` with respect to `inputs`; `None` for an input they do not depend on.
pub(crate) fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    grads: Option<&[&Tensor]>,
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    let seeds = seeds("grad", outputs, grads)?;
    let GradOptions { retain_graph, create_graph, .. } = options;
    let mut pass = Pass::new(BackwardOptions { retain_graph, create_graph });
    let mut keys = Vec::new();
    for (i, t) in inputs.iter().enumerate() {
        let Some(edge) = t.edge() else {
            bail!(Autograd, "grad", "input {i} does not require grad");
        };
        keys.push(Key::of(&edge));
        pass.captures.insert(Key::of(&edge), None);
    }
    pass.useful = Some(useful(&seeds, &pass.captures));
    let captured = pass.run(seeds)?;
    let found = keys.iter().map(|k| captured.get(k).cloned().flatten());
    found
        .zip(inputs)
        .enumerate()
        .map(|(i, (g, t))| match g {
            None if options.materialize_grads => {
                let layout = gradient_layout(t.layout())?;
                Ok(Some(Tensor::from_array(Array::zeros(layout, t.dtype(), t.device())?)))
            }
            None if !options.allow_unused => Err(Error::new(
                ErrorKind::Autograd,
                "grad",
                format!("input {i}, of sizes {:?}, appears to not have been used in the graph", t.sizes()),
            )
            .hint("set allow_unused for None, or materialize_grads for zeros")),
            g => Ok(g),
        })
        .collect()
}

/// The nodes from which a capture can be reached. Nodes are visited oldest first, so one sweep is enough.
fn useful(seeds: &[(Edge, Tensor)], captures: &HashMap<Key, Option<Tensor>>) -> HashSet<usize> {
    let id = |n: &Arc<Node>| Arc::as_ptr(n) as usize;
    let captured_nodes: HashSet<usize> = captures.keys().map(|k| k.node).collect();
    let mut seen: HashMap<usize, Arc<Node>> = HashMap::new();
    let mut stack: Vec<Arc<Node>> = seeds.iter().map(|(e, _)| e.node().clone()).collect();
    while let Some(n) = stack.pop() {
        if let Entry::Vacant(v) = seen.entry(id(&n)) {
            stack.extend(n.inputs.iter().flatten().map(|e| e.node().clone()));
            v.insert(n);
        }
    }
    let mut order: Vec<Arc<Node>> = seen.into_values().collect();
    order.sort_unstable_by_key(|n| n.seq);
    let mut useful = HashSet::new();
    for n in order {
        let leads = n.inputs.iter().flatten().any(|e| useful.contains(&id(e.node())));
        if leads || captured_nodes.contains(&id(&n)) {
            useful.insert(id(&n));
        }
    }
    useful
}

impl Pass {
    fn new(options: BackwardOptions) -> Self {
        Pass {
            keep: options.retain_graph || options.create_graph,
            create_graph: options.create_graph,
            captures: HashMap::new(),
            useful: None,
            items: HashMap::new(),
            heap: BinaryHeap::new(),
            ticket: 0,
        }
    }

    fn run(mut self, seeds: Vec<(Edge, Tensor)>) -> Result<HashMap<Key, Option<Tensor>>> {
        let _mode = GradMode::set(self.create_graph);
        for (edge, seed) in seeds {
            // With a graph to be made, the seed's own history is part of it.
            self.send(&edge, seed)?;
        }
        while let Some((_, _, _, Wait(key))) = self.heap.pop() {
            match self.items.remove(&key) {
                Some(Item::Node { node, slots }) => self.run_node(node, slots)?,
                Some(Item::Cell { cell, base, output, slot }) => self.run_cell(cell, base, output, slot)?,
                None => {}
            }
        }
        Ok(self.captures)
    }

    fn wants(&self, node: &Arc<Node>) -> bool {
        self.useful.as_ref().is_none_or(|u| u.contains(&(Arc::as_ptr(node) as usize)))
    }

    fn observed(&self, cell: &Arc<ViewCell>, base: &Arc<Node>, output: usize) -> bool {
        cell.observers.any()
            || (!self.captures.is_empty() && self.captures.contains_key(&Key::cell(cell, base, output)))
    }

    /// Whether a view or any view between it and its base is observed.
    fn observed_on_the_way(&self, from: &Arc<ViewCell>, base: &Arc<Node>, output: usize) -> bool {
        std::iter::successors(Some(from), |c| c.parent.as_ref()).any(|c| self.observed(c, base, output))
    }

    /// Sends a gradient along an edge.
    fn send(&mut self, edge: &Edge, g: Tensor) -> Result<()> {
        match edge {
            Edge::Node(node, k) => self.deliver(node, *k, None, g),
            Edge::View { cell, base, output } => {
                // Straight to the base, unless something on the way is observed.
                if self.observed_on_the_way(cell, base, *output) {
                    return self.deliver_cell(cell, base, *output, None, g);
                }
                self.deliver(base, *output, Some(&cell.at), g)
            }
        }
    }

    fn deliver(&mut self, node: &Arc<Node>, output: usize, at: Option<&Layout>, g: Tensor) -> Result<()> {
        if !self.wants(node) {
            return Ok(());
        }
        let key = Key::node(node, usize::MAX);
        let item = match self.items.entry(key) {
            Entry::Occupied(o) => o.into_mut(),
            Entry::Vacant(v) => {
                self.heap.push((node.seq, 0, self.ticket, Wait(key)));
                self.ticket += 1;
                let slots = node.outputs.iter().map(|_| Slot::Empty).collect();
                v.insert(Item::Node { node: node.clone(), slots })
            }
        };
        let Item::Node { slots, .. } = item else { return Ok(()) };
        add(&mut slots[output], &node.outputs[output].layout, at, g, self.create_graph)
    }

    fn deliver_cell(
        &mut self,
        cell: &Arc<ViewCell>,
        base: &Arc<Node>,
        output: usize,
        at: Option<&Layout>,
        g: Tensor,
    ) -> Result<()> {
        let key = Key::cell(cell, base, output);
        let item = match self.items.entry(key) {
            Entry::Occupied(o) => o.into_mut(),
            Entry::Vacant(v) => {
                // Above the base, deeper views first.
                self.heap.push((base.seq, cell.depth, self.ticket, Wait(key)));
                self.ticket += 1;
                v.insert(Item::Cell { cell: cell.clone(), base: base.clone(), output, slot: Slot::Empty })
            }
        };
        let Item::Cell { slot, .. } = item else { return Ok(()) };
        add(slot, &Layout::contiguous(cell.at.sizes())?, at, g, self.create_graph)
    }

    fn run_cell(&mut self, cell: Arc<ViewCell>, base: Arc<Node>, output: usize, slot: Slot) -> Result<()> {
        let Some(g) = close(slot, &Layout::contiguous(cell.at.sizes())?)? else { return Ok(()) };
        let g = self.observe(cell.observers.of(0), Key::cell(&cell, &base, output), g)?;
        match &cell.parent {
            Some(parent) if self.observed_on_the_way(parent, &base, output) => {
                self.deliver_cell(parent, &base, output, Some(&cell.at_parent), g)
            }
            _ => self.deliver(&base, output, Some(&cell.at), g),
        }
    }

    /// Runs the hooks of a complete gradient and captures it.
    fn observe(&mut self, observers: Vec<Observer>, key: Key, mut g: Tensor) -> Result<Tensor> {
        for o in observers {
            match o {
                Observer::Hook(_, hook) => {
                    if let Some(new) = hook(&g) {
                        if new.sizes() != g.sizes() {
                            bail!(
                                Shape,
                                "backward",
                                "a hook has changed the size of its gradient from {:?} to {:?}",
                                g.sizes(),
                                new.sizes()
                            );
                        }
                        g = if new.dtype() == g.dtype() { new } else { new.try_to_dtype(g.dtype())? };
                    }
                }
                Observer::Retain(slot) => *lock(&slot) = Some(g.clone()),
            }
        }
        if let Some(c) = self.captures.get_mut(&key) {
            *c = Some(g.clone());
        }
        Ok(g)
    }

    fn run_node(&mut self, node: Arc<Node>, slots: Vec<Slot>) -> Result<()> {
        let mut grads = Vec::with_capacity(slots.len());
        for (k, slot) in slots.into_iter().enumerate() {
            let g = match close(slot, &node.outputs[k].layout)? {
                Some(g) => Some(self.observe(node.observers.of(k), Key::node(&node, k), g)?),
                None => None,
            };
            grads.push(g);
        }
        match &node.kind {
            Kind::Leaf(leaf) => match grads.pop().flatten() {
                Some(g) if self.useful.is_none() => {
                    accumulate(leaf, &node.outputs[0], g, self.create_graph)?;
                    // Outside the lock: a hook may register or remove hooks.
                    let hooks = lock(&leaf.hooks).clone();
                    hooks.iter().for_each(|(_, hook)| hook());
                    Ok(())
                }
                _ => Ok(()),
            },
            Kind::Op { backward, saved, .. } => {
                let wanted: Vec<bool> =
                    node.inputs.iter().map(|e| e.as_ref().is_some_and(|e| self.wants(e.node()))).collect();
                if !wanted.contains(&true) {
                    return Ok(());
                }
                let values = match &*lock(saved) {
                    SavedState::Kept(v) => v.clone(),
                    SavedState::Recompute { frame, index, edges } => Arc::new(frame.values(*index, edges)?),
                    SavedState::Freed => {
                        return Err(Error::new(
                            ErrorKind::Autograd,
                            "backward",
                            format!("trying to backward through the graph a second time: the saved values of {} have been freed", node.whence()),
                        )
                        .hint("pass retain_graph to the first backward"));
                    }
                };
                let ctx =
                    Ctx { node: &node, saved: &values, wanted: &wanted, create_graph: self.create_graph };
                let outs = backward(&ctx, &grads).map_err(|e| match node.caller {
                    Some(c) => e.at(c),
                    None => e,
                })?;
                if !self.keep && !values.is_empty() {
                    *lock(saved) = SavedState::Freed;
                }
                drop(values);
                drop(grads);
                if crate::is_anomaly_enabled() {
                    look_for_nan(&node, &outs)?;
                }
                self.distribute(&node, outs)
            }
        }
    }

    fn distribute(&mut self, node: &Arc<Node>, outs: Vec<Option<Tensor>>) -> Result<()> {
        for (i, (edge, g)) in node.inputs.iter().zip(outs).enumerate() {
            let (Some(edge), Some(g)) = (edge, g) else { continue };
            let (sizes, dtype) = edge.meta();
            if g.sizes() != sizes || g.dtype() != dtype {
                bail!(
                    Autograd,
                    "backward",
                    "{} gave a gradient of {} {:?} for input {i} of {dtype} {sizes:?}",
                    node.whence(),
                    g.dtype(),
                    g.sizes()
                );
            }
            self.send(edge, g)?;
        }
        Ok(())
    }
}

/// Anomaly mode: an error if a node's backward made a NaN.
fn look_for_nan(node: &Node, outs: &[Option<Tensor>]) -> Result<()> {
    let _mode = GradMode::set(false);
    for (i, g) in outs.iter().enumerate() {
        let Some(g) = g.as_ref().filter(|g| g.numel() > 0) else { continue };
        if g.try_isnan()?.try_any()?.try_item::<bool>()? {
            let text = format!(
                "the backward of {} returned nan values in the gradient of its input {i}",
                node.whence()
            );
            let e = Error::new(ErrorKind::Autograd, "backward", text)
                .hint("look at this op's inputs and at the gradient it got");
            return Err(match node.caller {
                Some(c) => e.at(c),
                None => e,
            });
        }
    }
    Ok(())
}

/// Adds a contribution to a slot: for the window `at` of the value's gradient, or for all of it.
fn add(slot: &mut Slot, whole: &Layout, at: Option<&Layout>, g: Tensor, create_graph: bool) -> Result<()> {
    if create_graph {
        match slot {
            Slot::List(l) => l.push((g, at.copied())),
            _ => *slot = Slot::List(vec![(g, at.copied())]),
        }
        return Ok(());
    }
    let Some(at) = at else {
        *slot = match std::mem::replace(slot, Slot::Empty) {
            Slot::Empty | Slot::List(_) => Slot::Whole(g),
            Slot::Whole(first) => Slot::Owned(sum(whole, &first, &g)?),
            Slot::Owned(buffer) => {
                exec::accumulate(&buffer, g.array())?;
                Slot::Owned(buffer)
            }
        };
        return Ok(());
    };
    let (at, x) = sum_repeats(at, g.array())?;
    if let Slot::Empty = slot
        && let Some(t) = rearrange(whole, &at, &x)?
    {
        *slot = Slot::Whole(t);
        return Ok(());
    }
    let buffer = match std::mem::replace(slot, Slot::Empty) {
        Slot::Owned(b) => b,
        // A first whole gradient may be shared: it is copied into a buffer of ours.
        Slot::Whole(first) => exec::copy_to(first.array(), *whole, first.dtype())?,
        Slot::Empty | Slot::List(_) => Array::zeros(*whole, x.dtype(), x.device())?,
    };
    exec::accumulate(&buffer.with_layout(at)?, &x)?;
    *slot = Slot::Owned(buffer);
    Ok(())
}

/// The gradient of a whole value from that of a view that covers it, without arithmetic: the same memory read in
/// the base's order where strides can express that, else one copy that writes every element.
fn rearrange(whole: &Layout, at: &Layout, x: &Array) -> Result<Option<Tensor>> {
    if at.numel() != whole.numel() || !at.is_non_overlapping_and_dense() {
        return Ok(None);
    }
    if x.layout().is_non_overlapping_and_dense() && transfer::same_strides(x.layout(), at) {
        return Ok(Some(Tensor::from_array(x.with_layout(whole.with_offset(x.layout().offset())?)?)));
    }
    // Put both into the order of memory: `x` permuted so that the window runs downwards, then split as the base is.
    let by_stride = |l: &Layout| {
        let mut order: Vec<i64> = (0..l.rank() as i64).collect();
        order.sort_by_key(|&i| (std::cmp::Reverse(l.strides()[i as usize]), l.size(i as usize)));
        order
    };
    let memory_order = by_stride(whole);
    let sizes: Vec<usize> = memory_order.iter().map(|&i| whole.size(i as usize)).collect();
    if let Some(split) = x.layout().permute(&by_stride(at))?.try_view(&sizes) {
        let mut back = vec![0i64; memory_order.len()];
        for (k, &i) in memory_order.iter().enumerate() {
            back[i as usize] = k as i64;
        }
        return Ok(Some(Tensor::from_array(x.with_layout(split.permute(&back)?)?)));
    }
    let line = exec::copy_to(x, at.with_offset(0)?, x.dtype())?;
    Ok(Some(Tensor::from_array(line.with_layout(*whole)?)))
}

fn sum(layout: &Layout, a: &Tensor, b: &Tensor) -> Result<Array> {
    let kernel = &crate::ops::add::ADD;
    exec::map_with_layout(kernel, a.dtype(), &[], a.dtype(), *layout, &[a.array(), b.array()])
}

/// The complete gradient of a slot.
fn close(slot: Slot, whole: &Layout) -> Result<Option<Tensor>> {
    Ok(match slot {
        Slot::Empty => None,
        Slot::Whole(t) => Some(t),
        Slot::Owned(a) => Some(Tensor::from_array(a)),
        Slot::List(list) => {
            let (mut total, mut parts): (Option<Tensor>, Vec<(Tensor, Layout)>) = (None, Vec::new());
            for (g, at) in list {
                match at {
                    Some(at) => parts.push((g, at)),
                    None => {
                        total = Some(match total {
                            Some(t) => t.try_add(&g)?,
                            None => g,
                        })
                    }
                }
            }
            if !parts.is_empty() {
                let t = transfer_sum(&parts, *whole)?;
                total = Some(match total {
                    Some(s) => s.try_add(&t)?,
                    None => t,
                });
            }
            total
        }
    })
}

/// Adds a gradient to a leaf's, in the leaf's layout. What anybody else may hold is never changed.
fn accumulate(leaf: &Leaf, geometry: &Geometry, g: Tensor, create_graph: bool) -> Result<()> {
    let mut slot = lock(&leaf.grad);
    *slot = Some(match slot.take() {
        None if create_graph => g,
        None => own(g, geometry)?,
        Some(old) if create_graph => match old.try_add(&g) {
            Ok(sum) => sum,
            Err(e) => {
                *slot = Some(old);
                return Err(e);
            }
        },
        Some(old) if old.is_unique() && !old.requires_grad() && !old.shares_storage(&g) => {
            let done = exec::accumulate(old.array(), g.array());
            if let Err(e) = done {
                *slot = Some(old);
                return Err(e);
            }
            old
        }
        Some(old) => Tensor::from_array(sum(&geometry.layout, &old, &g)?),
    });
    Ok(())
}

/// The gradient as a tensor that nobody else holds, in the leaf's layout.
fn own(g: Tensor, geometry: &Geometry) -> Result<Tensor> {
    let fits = transfer::same_strides(g.layout(), &geometry.layout)
        && g.array().storage().bytes() == g.numel() * g.dtype().size();
    if fits && g.is_unique() && !g.requires_grad() {
        return Ok(g);
    }
    Ok(Tensor::from_array(exec::copy_to(g.array(), geometry.layout, g.dtype())?))
}
