//! Cases computed by PyTorch, in a file format of records and tensors, run against this library.
//!
//! A record is one op on views of 1-dim leaves, with the values, dtypes, sizes, strides and gradients that are
//! expected, or the fact that PyTorch refuses it.

mod args;
mod call;
mod chain;
mod compare;
mod elementwise;
mod layers;
mod movement;
mod record;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use stridegrad::io::safetensors::SafeTensors;

pub use record::{Record, parse};

/// Why a case failed, or why it cannot be run.
#[derive(Debug)]
pub enum Problem {
    /// No op of that name.
    Unknown,
    /// The library refused.
    Refused(stridegrad::Error),
    /// Something differs, or the case itself is not well formed.
    Wrong(String),
}

impl From<stridegrad::Error> for Problem {
    fn from(e: stridegrad::Error) -> Problem {
        Problem::Refused(e)
    }
}

impl From<String> for Problem {
    fn from(e: String) -> Problem {
        Problem::Wrong(e)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Problem::Unknown => "unknown op".to_owned(),
            Problem::Refused(e) => format!("refused: {e}"),
            Problem::Wrong(text) => text.clone(),
        };
        // A failure is one line.
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// A failed case.
#[derive(Debug)]
pub struct Failure {
    /// The op.
    pub op: String,
    /// The record's id.
    pub id: String,
    /// Why.
    pub problem: Problem,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.op, self.id, self.problem)
    }
}

/// What became of a file of cases.
#[derive(Debug, Default)]
pub struct Report {
    /// How many passed.
    pub passed: usize,
    /// The others.
    pub failures: Vec<Failure>,
}

/// Runs one case; a panic is a failure like any other.
pub fn check(record: &Record, tensors: &SafeTensors) -> Result<(), Problem> {
    catch_unwind(AssertUnwindSafe(|| compare::check(record, tensors))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Problem::Wrong(format!("panic: {text}")))
    })
}

/// Runs the cases whose op is `only` (all where there is none); `each` sees every result as it comes.
pub fn run(
    records: &[Record],
    tensors: &SafeTensors,
    only: Option<&str>,
    mut each: impl FnMut(&Record, &Result<(), Problem>),
) -> Report {
    let mut report = Report::default();
    for record in records.iter().filter(|r| only.is_none_or(|op| op == r.op)) {
        let result = check(record, tensors);
        each(record, &result);
        match result {
            Ok(()) => report.passed += 1,
            Err(problem) => {
                report.failures.push(Failure { op: record.op.clone(), id: record.id.clone(), problem })
            }
        }
    }
    report
}
