//! Checkpointing: what ops saved is thrown away after forward, and computed again when backward asks for it.
//!
//! The graph stays as it was recorded, with its edges; only the saved values go. So gradients of what the function
//! captured, [`grad`](crate::grad), hooks and second derivatives work as without a checkpoint.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use stridegrad_core::{Array, Error, ErrorKind, Generator, GeneratorState, Result, bail};

use crate::graph::{Edge, Geometry, Kind, Node, SavedState, SavedValues, lock, version_of};
use crate::{GradMode, Tensor, default_generator};

/// What one op saves, for the comparison of two runs: its name and the versions of its inputs.
type Print = (&'static str, Vec<u64>);

/// A user's function, its result thrown away.
type Run = dyn Fn(&[Tensor]) + Send + Sync;

/// A function that can be run again.
pub(crate) struct Frame {
    run: Box<Run>,
    /// Arrays, not tensors: a frame holds no part of the graph. With version and whether it requires grad.
    inputs: Vec<(Array, u64, bool)>,
    generators: Vec<(Generator, GeneratorState)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    prints: Vec<Print>,
    values: Vec<Option<Arc<SavedValues>>>,
}

enum Scope {
    /// In forward: nodes of this frame lose what they saved.
    Strip(Arc<Frame>),
    /// In backward: what nodes save is collected.
    Collect(Vec<(Print, Arc<SavedValues>)>),
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Puts the scope of before back, after a panic too.
struct Restore(Option<Scope>);

impl Restore {
    fn enter(scope: Scope) -> Restore {
        Restore(SCOPE.with(|s| s.borrow_mut().replace(scope)))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        SCOPE.with(|s| *s.borrow_mut() = self.0.take());
    }
}

/// What a new node keeps of what its op saved.
pub(crate) fn settle(
    name: &'static str,
    versions: impl FnOnce() -> Vec<u64>,
    saved: SavedValues,
) -> SavedState {
    SCOPE.with(|scope| match &mut *scope.borrow_mut() {
        Some(_) if saved.is_empty() => SavedState::Kept(Arc::new(saved)),
        Some(Scope::Strip(frame)) => {
            let mut state = lock(&frame.state);
            state.prints.push((name, versions()));
            let edges = saved.inputs.into_iter().map(|s| s.and_then(|s| s.edge)).collect();
            SavedState::Recompute { frame: frame.clone(), index: state.prints.len() - 1, edges }
        }
        Some(Scope::Collect(list)) => {
            let saved = Arc::new(saved);
            list.push(((name, versions()), saved.clone()));
            SavedState::Kept(saved)
        }
        None => SavedState::Kept(Arc::new(saved)),
    })
}

impl Frame {
    /// What op number `index` saved, with the edges that it had in forward.
    pub(crate) fn values(&self, index: usize, edges: &[Option<Edge>]) -> Result<SavedValues> {
        let mut state = lock(&self.state);
        if state.values.get(index).is_none_or(Option::is_none) {
            state.values = self.again(&state.prints)?;
        }
        let Some(found) = state.values.get_mut(index).and_then(Option::take) else {
            bail!(Autograd, "checkpoint", "the values of op {index} were not computed");
        };
        let SavedValues { mut inputs, outputs, extras } =
            Arc::try_unwrap(found).unwrap_or_else(|shared| (*shared).clone());
        for (saved, edge) in inputs.iter_mut().zip(edges) {
            if let Some(s) = saved {
                s.edge = edge.clone();
            }
        }
        Ok(SavedValues { inputs, outputs, extras })
    }

    fn again(&self, expected: &[Print]) -> Result<Vec<Option<Arc<SavedValues>>>> {
        let mut inputs = Vec::new();
        for (i, (array, version, requires_grad)) in self.inputs.iter().enumerate() {
            if version_of(array) != *version {
                return Err(changed(&format!("input {i} of the checkpoint")));
            }
            inputs.push(if *requires_grad { stand_in(array)? } else { Tensor::from_array(array.clone()) });
        }
        let now: Vec<GeneratorState> = self.generators.iter().map(|(g, _)| g.state()).collect();
        self.generators.iter().for_each(|(g, state)| g.set_state(*state));
        let list = {
            let _mode = GradMode::set(true);
            let _scope = Restore::enter(Scope::Collect(Vec::new()));
            (self.run)(&inputs);
            SCOPE.with(|s| match s.borrow_mut().take() {
                Some(Scope::Collect(list)) => list,
                _ => Vec::new(),
            })
        };
        self.generators.iter().zip(now).for_each(|((g, _), state)| g.set_state(state));
        for (((name, versions), _), (first, before)) in list.iter().zip(expected) {
            if name == first && versions != before {
                return Err(changed(&format!("an input of {name}")));
            }
        }
        let names = |p: &mut dyn Iterator<Item = &'static str>| p.collect::<Vec<_>>();
        let (new, old) =
            (names(&mut list.iter().map(|((n, _), _)| *n)), names(&mut expected.iter().map(|(n, _)| *n)));
        if new != old {
            return Err(Error::new(
                ErrorKind::Autograd,
                "checkpoint",
                format!(
                    "the function recorded the ops {old:?} in forward, and {new:?} when it was run again"
                ),
            )
            .hint("a checkpointed function must do the same each time it is called"));
        }
        Ok(list.into_iter().map(|(_, v)| Some(v)).collect())
    }
}

fn changed(what: &str) -> Error {
    Error::new(
        ErrorKind::Autograd,
        "checkpoint",
        format!(
            "{what} has been modified by an inplace operation since the forward pass: it cannot be run again"
        ),
    )
    .hint("write in place after backward, or into a copy()")
}

/// A tensor that makes ops record, with a graph that leads nowhere.
fn stand_in(array: &Array) -> Result<Tensor> {
    let kind = Kind::Op {
        backward: Box::new(|_, _| Ok(Vec::new())),
        saved: Mutex::new(SavedState::nothing()),
        in_place: false,
    };
    let node = Node::new("checkpoint", Vec::new(), vec![Geometry::of(array)?], kind);
    Ok(Tensor::with_edge(array.clone(), Edge::Node(Arc::new(node), 0)))
}

/// Runs `f` on `inputs` and throws away what its ops saved for backward, which runs `f` once more to get it back:
/// memory for time.
///
/// `f` must do the same each time: the numbers it draws from the default generator are drawn again, for others see
/// [`checkpoint_with`]. What it does besides happens twice (the running statistics of `batch_norm` for one). A backward
/// after the inputs, or tensors that `f` captured and that its ops saved something for, were written in place is an
/// error, as is a second run that records other ops. A panic of the second run is a panic of `backward`.
///
/// ```
/// use stridegrad_autograd::{Tensor, checkpoint};
/// let w = Tensor::ones([3]).requires_grad_(true);
/// let x = Tensor::arange(3.0).requires_grad_(true);
/// let captured = w.clone();
/// let y = checkpoint(move |x| x[0].mul(&captured).exp().square(), &[&x]);
/// y.sum().backward();
/// assert!(x.grad().is_some() && w.grad().is_some());
/// ```
pub fn checkpoint<R>(f: impl Fn(&[Tensor]) -> R + Send + Sync + 'static, inputs: &[&Tensor]) -> R {
    checkpoint_with(f, inputs, &[])
}

/// As [`checkpoint`], for a function that draws from `generators` besides the default one: the second run starts from
/// the states they have now, and leaves them as they were.
pub fn checkpoint_with<R>(
    f: impl Fn(&[Tensor]) -> R + Send + Sync + 'static,
    inputs: &[&Tensor],
    generators: &[Generator],
) -> R {
    let handles: Vec<Tensor> = inputs.iter().map(|&t| t.clone()).collect();
    if !crate::is_grad_enabled() {
        return f(&handles);
    }
    let f = Arc::new(f);
    let again = f.clone();
    let all = std::iter::once(default_generator()).chain(generators.iter().cloned());
    let frame = Arc::new(Frame {
        run: Box::new(move |x| drop(again(x))),
        inputs: inputs
            .iter()
            .map(|t| (t.array().clone(), version_of(t.array()), t.requires_grad()))
            .collect(),
        generators: all.map(|g| (g.clone(), g.state())).collect(),
        state: Mutex::default(),
    });
    let _scope = Restore::enter(Scope::Strip(frame));
    f(&handles)
}
