//! Graphs as text and as Graphviz dot.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use stridegrad_core::Layout;

use crate::Tensor;
use crate::graph::{Edge, Kind, Node, Saved, SavedState, lock};

/// What a tensor was computed from, as autograd recorded it: made by [`Tensor::graph`].
///
/// `Display` writes one line a node, youngest first, so that gradients run downwards.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    name: &'static str,
    leaf: bool,
    outputs: Vec<String>,
    saved: String,
    place: Option<String>,
    inputs: Vec<(usize, String)>,
}

impl Tensor {
    /// The graph that backward from this tensor would walk; empty for a tensor without one.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::ones([2, 3]).requires_grad_(true);
    /// let graph = x.t().select(0, 1).exp().sum().graph();
    /// let text = graph.to_string();
    /// let lines: Vec<&str> = text.lines().map(|l| l.split(" at ").next().unwrap()).collect();
    /// assert_eq!(lines[0], "#0 sum -> f32 []");
    /// assert_eq!(lines[1], "#1 exp -> f32 [2], saved 8 bytes");
    /// assert_eq!(lines[2], "#2 leaf -> f32 [2, 3]");
    /// assert!(text.contains("from #2 through the window of sizes [2], strides [3], offset 1"));
    /// assert!(graph.to_dot().starts_with("digraph backward {"));
    /// ```
    pub fn graph(&self) -> Graph {
        let mut seen: HashSet<*const Node> = HashSet::new();
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut stack: Vec<Arc<Node>> = self.edge().iter().map(|e| e.node().clone()).collect();
        while let Some(n) = stack.pop() {
            if seen.insert(Arc::as_ptr(&n)) {
                stack.extend(n.inputs.iter().flatten().map(|e| e.node().clone()));
                nodes.push(n);
            }
        }
        nodes.sort_unstable_by_key(|n| std::cmp::Reverse(n.seq));
        let number: HashMap<*const Node, usize> =
            nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(n), i)).collect();
        let step = |n: &Arc<Node>| Step {
            name: n.name,
            leaf: matches!(n.kind, Kind::Leaf(_)),
            outputs: n.outputs.iter().map(|o| format!("{} {:?}", o.dtype, o.layout.sizes())).collect(),
            saved: saved(n),
            place: n.caller.map(|c| format!("{}:{}", c.file(), c.line())),
            inputs: n.inputs.iter().flatten().map(|e| (number[&Arc::as_ptr(e.node())], through(e))).collect(),
        };
        Graph { nodes: nodes.iter().map(step).collect() }
    }
}

/// How an edge reaches its node, if not as the whole of its one output.
fn through(e: &Edge) -> String {
    match e {
        Edge::Node(n, k) if n.outputs.len() > 1 => format!("output {k}"),
        Edge::Node(..) => String::new(),
        Edge::View { cell, .. } => window(&cell.at),
    }
}

fn window(l: &Layout) -> String {
    format!("the window of sizes {:?}, strides {:?}, offset {}", l.sizes(), l.strides(), l.offset())
}

fn saved(n: &Node) -> String {
    let Kind::Op { saved, .. } = &n.kind else { return String::new() };
    let bytes = |s: &Saved| s.array.layout().numel() * s.array.dtype().size();
    match &*lock(saved) {
        SavedState::Freed => "saved values freed".into(),
        SavedState::Recompute { .. } => "recomputed in backward".into(),
        SavedState::Kept(v) => {
            let all = v.inputs.iter().chain(&v.outputs).flatten().chain(&v.extras);
            match all.map(bytes).sum::<usize>() {
                0 => String::new(),
                n => format!("saved {n} bytes"),
            }
        }
    }
}

impl Graph {
    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tensor has no graph.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The graph in Graphviz's language, for `dot -Tsvg`: arrows run from a result to what it was computed from.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph backward {\n  node [shape=box, fontname=monospace];\n");
        for (i, n) in self.nodes.iter().enumerate() {
            let mut lines = vec![n.name.to_string(), n.outputs.join(", ")];
            lines.extend(Some(n.saved.clone()).filter(|s| !s.is_empty()));
            lines.extend(n.place.clone());
            let label: Vec<String> = lines.iter().map(|l| escape(l)).collect();
            let style = if n.leaf { ", style=filled, fillcolor=lightblue" } else { "" };
            let _ = writeln!(out, "  n{i} [label=\"{}\"{style}];", label.join("\\n"));
            for (to, how) in &n.inputs {
                let label =
                    if how.is_empty() { String::new() } else { format!(" [label=\"{}\"]", escape(how)) };
                let _ = writeln!(out, "  n{i} -> n{to}{label};");
            }
        }
        out.push_str("}\n");
        out
    }
}

fn escape(s: &str) -> String {
    s.replace('\\', "\\\\").replace('"', "\\\"")
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, n) in self.nodes.iter().enumerate() {
            write!(f, "#{i} {} -> {}", n.name, n.outputs.join(", "))?;
            if !n.saved.is_empty() {
                write!(f, ", {}", n.saved)?;
            }
            if let Some(place) = &n.place {
                write!(f, " at {place}")?;
            }
            for (k, (to, how)) in n.inputs.iter().enumerate() {
                write!(f, "{} #{to}", if k == 0 { ", from" } else { "," })?;
                if !how.is_empty() {
                    write!(f, " through {how}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
