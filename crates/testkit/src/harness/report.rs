//! What came of a run.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use stridegrad_core::DType;

/// A check that did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `op::check::layout`.
    pub name: String,
    /// The dtype it ran in.
    pub dtype: DType,
    /// The arguments.
    pub sample: String,
    /// What was found.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {}): {}", self.name, self.dtype, self.sample, self.message)
    }
}

/// The counts and failures of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many combinations of op, layout, dtype and check ran, by op and check.
    pub combinations: BTreeMap<(String, &'static str), usize>,
    /// How many single comparisons those were: a combination runs for every sample it fits.
    pub comparisons: usize,
    /// Checks that another backend has no kernels for, by the class that it lacks.
    pub skipped: BTreeMap<String, usize>,
    /// What did not hold.
    pub failures: Vec<Failure>,
    /// How long each op took.
    pub seconds: BTreeMap<String, f64>,
    seen: HashSet<(String, &'static str, String, DType)>,
}

impl Report {
    pub(super) fn count(&mut self, op: &str, check: &'static str, layout: &str, dtype: DType) {
        self.comparisons += 1;
        if self.seen.insert((op.to_owned(), check, layout.to_owned(), dtype)) {
            *self.combinations.entry((op.to_owned(), check)).or_default() += 1;
        }
    }

    pub(super) fn skip(&mut self, class: &str) {
        *self.skipped.entry(class.to_owned()).or_default() += 1;
    }

    /// Adds another run's.
    pub fn merge(&mut self, other: Report) {
        for (key, n) in other.combinations {
            *self.combinations.entry(key).or_default() += n;
        }
        for (class, n) in other.skipped {
            *self.skipped.entry(class).or_default() += n;
        }
        self.comparisons += other.comparisons;
        self.failures.extend(other.failures);
        self.seconds.extend(other.seconds);
        self.seen.extend(other.seen);
    }

    /// All combinations.
    pub fn total(&self) -> usize {
        self.combinations.values().sum()
    }

    /// The ops that ran.
    pub fn ops(&self) -> Vec<&str> {
        let mut ops: Vec<&str> = self.combinations.keys().map(|(op, _)| op.as_str()).collect();
        ops.dedup();
        ops
    }

    /// The number of combinations of an op and check.
    pub fn of(&self, op: &str, check: &'static str) -> usize {
        self.combinations.get(&(op.to_owned(), check)).copied().unwrap_or(0)
    }
}

impl fmt::Display for Report {
    /// A table by op and check, the slowest ops, and the failures (at most three of an op and check).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut checks: Vec<&'static str> = self.combinations.keys().map(|(_, c)| *c).collect();
        checks.sort_unstable();
        checks.dedup();
        write!(f, "{:<20}", "op")?;
        for c in &checks {
            write!(f, " {c:>13}")?;
        }
        writeln!(f, " {:>7}", "s")?;
        for op in self.ops() {
            write!(f, "{op:<20}")?;
            for c in &checks {
                write!(f, " {:>13}", self.of(op, c))?;
            }
            writeln!(f, " {:>7.2}", self.seconds.get(op).copied().unwrap_or(0.0))?;
        }
        for c in &checks {
            let n: usize = self.combinations.iter().filter(|((_, k), _)| k == c).map(|(_, n)| n).sum();
            writeln!(f, "{c}: op x layout x dtype: {n} combinations")?;
        }
        writeln!(
            f,
            "op x layout x dtype x check: {} combinations of {} ops ({} comparisons), {} failures",
            self.total(),
            self.ops().len(),
            self.comparisons,
            self.failures.len()
        )?;
        for (class, n) in &self.skipped {
            writeln!(f, "skipped, the backend has no {class} kernel: {n}")?;
        }
        let mut shown = BTreeMap::<String, usize>::new();
        for failure in &self.failures {
            let kind = failure.name.rsplit_once("::").map_or(failure.name.as_str(), |(kind, _)| kind);
            let n = shown.entry(kind.to_owned()).or_default();
            *n += 1;
            if *n <= 3 {
                writeln!(f, "FAILED {failure}")?;
            }
        }
        for (kind, n) in shown.iter().filter(|(_, n)| **n > 3) {
            writeln!(f, "FAILED {kind}: {n} in all")?;
        }
        Ok(())
    }
}
