//! State dicts: tensors by name, and what loading them met.

use std::fmt;

use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{DType, Error, ErrorKind, Result};

use crate::module::Module;
use crate::visit::Member;

/// Tensors by name, in order.
#[derive(Clone, Default)]
pub struct StateDict {
    entries: Vec<(String, Tensor)>,
}

impl StateDict {
    /// An empty one.
    pub fn new() -> StateDict {
        StateDict::default()
    }

    /// Appends a tensor; names should be distinct, and writing a file refuses them if they are not.
    pub fn push(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.entries.push((name.into(), tensor));
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.entries.iter().find(|(n, _)| n == name).map(|(_, t)| t)
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names and tensors, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.entries.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.iter().map(|(n, _)| n)
    }

    /// Those whose names begin with `prefix`, without it.
    pub fn strip_prefix(&self, prefix: &str) -> StateDict {
        self.iter().filter_map(|(n, t)| Some((n.strip_prefix(prefix)?.to_owned(), t.clone()))).collect()
    }

    /// All, with `prefix` before their names.
    pub fn with_prefix(&self, prefix: &str) -> StateDict {
        self.iter().map(|(n, t)| (format!("{prefix}{n}"), t.clone())).collect()
    }
}

impl<N: Into<String>> FromIterator<(N, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (N, Tensor)>>(iter: I) -> StateDict {
        StateDict { entries: iter.into_iter().map(|(n, t)| (n.into(), t)).collect() }
    }
}

impl<N: Into<String>> Extend<(N, Tensor)> for StateDict {
    fn extend<I: IntoIterator<Item = (N, Tensor)>>(&mut self, iter: I) {
        self.entries.extend(iter.into_iter().map(|(n, t)| (n.into(), t)));
    }
}

impl IntoIterator for StateDict {
    type Item = (String, Tensor);
    type IntoIter = std::vec::IntoIter<(String, Tensor)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl fmt::Debug for StateDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(n, t)| (n, Form::of(t)))).finish()
    }
}

/// Dtype and sizes of a tensor.
#[derive(Clone, PartialEq, Eq)]
pub struct Form {
    /// The dtype.
    pub dtype: DType,
    /// The sizes.
    pub sizes: Vec<usize>,
}

impl Form {
    fn of(t: &Tensor) -> Form {
        Form { dtype: t.dtype(), sizes: t.sizes().to_vec() }
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.sizes)
    }
}

/// A name whose tensor in the state does not fit the module's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name.
    pub name: String,
    /// What the module has.
    pub module: Form,
    /// What the state dict has.
    pub state: Form,
}

/// What loading a state dict met.
#[must_use = "names may be missing: call require_complete(), or look at the report"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// Names that were loaded.
    pub loaded: Vec<String>,
    /// Names of the module that the state does not have; their tensors stay as they were.
    pub missing: Vec<String>,
    /// Names of the state that the module does not have.
    pub unexpected: Vec<String>,
    /// Names whose sizes differ, or of which one is floating-point and the other not; not loaded.
    pub mismatched: Vec<Mismatch>,
    /// Names that were converted from another dtype, and from which.
    pub converted: Vec<(String, DType)>,
}

impl LoadReport {
    /// Whether every name of either side was loaded.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unexpected.is_empty() && self.mismatched.is_empty()
    }

    /// An error unless every name of either side was loaded.
    ///
    /// # Errors
    /// `StateDict`, with all the names.
    pub fn require_complete(&self) -> Result<()> {
        match self.is_complete() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::StateDict, "load_state_dict", self.to_string())),
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaded", self.loaded.len())?;
        for (what, names) in [("missing", &self.missing), ("unexpected", &self.unexpected)] {
            if !names.is_empty() {
                write!(f, "; {what}: {}", names.join(", "))?;
            }
        }
        for m in &self.mismatched {
            write!(f, "; {}: the module has {:?}, the state {:?}", m.name, m.module, m.state)?;
        }
        Ok(())
    }
}

/// Copies what fits from `state` into the module.
pub(crate) fn load<M: Module + ?Sized>(module: &M, state: &StateDict) -> Result<LoadReport> {
    let mut report = LoadReport::default();
    let mut fitting = Vec::new();
    let mut known = std::collections::HashSet::new();
    module.for_each(&mut |name, member| {
        let (Member::Parameter(to) | Member::Buffer(to)) = member else { return };
        known.insert(name.to_owned());
        let Some(from) = state.get(name) else {
            return report.missing.push(name.to_owned());
        };
        if from.sizes() != to.sizes() || from.dtype().is_floating() != to.dtype().is_floating() {
            let (module, state) = (Form::of(to), Form::of(from));
            return report.mismatched.push(Mismatch { name: name.to_owned(), module, state });
        }
        if from.dtype() != to.dtype() {
            report.converted.push((name.to_owned(), from.dtype()));
        }
        fitting.push((to.clone(), from.clone()));
        report.loaded.push(name.to_owned());
    });
    report.unexpected = state.names().filter(|&n| !known.contains(n)).map(str::to_owned).collect();
    no_grad(|| fitting.iter().try_for_each(|(to, from)| to.try_copy_(from).map(drop)))?;
    Ok(report)
}
