//! The op harness: every registered op, in every layout of its inputs and every dtype, against its reference.
//!
//! A check is named `op::check::layout`, as in `conv2d::grad::channels_last`; `layout@k` means that input `k` alone is
//! laid out so. The checks:
//!
//! | check | what must hold |
//! |-------|----------------|
//! | `value` | sizes and values of the results are the reference's |
//! | `dtype` | the results' dtypes |
//! | `layout` | the results' strides; a second run gives the same |
//! | `alias` | a result shares no storage with an input, unless the op is a view: then it does, and writes show |
//! | `unmodified` | the inputs' storages hold what they held, at the version they had |
//! | `threads` | 1, 2 and 5 threads give the same bits, gradients too |
//! | `grad` | gradients of leaves of that layout, against differences of the reference |
//! | `grad_base` | gradients of the base of which the inputs are views |
//! | `grad_seed` | the same for a gradient of the output in that layout |
//! | `gradcheck` | the public [`gradcheck`](stridegrad_autograd::gradcheck) agrees |
//! | `second` | second derivatives, by [`gradgradcheck`](stridegrad_autograd::gradgradcheck) |
//! | `in_place` | the in-place form gives the values of the other, inside its window alone, and bumps the version |
//! | `in_place_grad` | its gradients, through views of a base too; stale saved values and leaves are refused |
//! | `refusal` | what must be refused is, with its kind of error |
//! | `fuzz` | arguments of any sizes and dtypes give a result or an error, never a panic, and stay as they were |

mod gradients;
mod in_place;
mod inputs;
mod refusals;
mod report;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};

use stridegrad_autograd::spec::{OpSpec, Sample};
use stridegrad_core::{DType, Device, DeviceKind, Error, ErrorKind};

pub use self::report::{Failure, Report};
pub(crate) use self::values::has_layout;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only checks whose name contains this.
    pub filter: Option<String>,
    /// Where the ops run.
    pub device: Device,
    /// Whether an op's first failure ends it.
    pub stop_early: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { filter: None, device: Device::CPU, stop_early: false }
    }
}

/// Runs the checks whose names contain `filter` (all of them if it is empty) over every registered op on the CPU.
pub fn run(filter: &str) -> Report {
    let filter = (!filter.is_empty()).then(|| filter.to_owned());
    run_ops(stridegrad_autograd::ops::registry(), &Options { filter, ..Options::default() })
}

/// Runs the checks over some ops, on as many threads as the machine has cores.
pub fn run_ops(ops: Vec<OpSpec>, options: &Options) -> Report {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let queue = std::sync::Mutex::new(ops);
    let next = || queue.lock().unwrap_or_else(|e| e.into_inner()).pop();
    let mut report = Report::default();
    std::thread::scope(|s| {
        let work = || {
            let mut part = Report::default();
            while let Some(op) = next() {
                part.merge(run_op(&op, options));
            }
            part
        };
        let workers: Vec<_> = (0..threads).map(|_| s.spawn(work)).collect();
        for w in workers {
            match w.join() {
                Ok(part) => report.merge(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    report
}

/// Runs the checks over one op, on this thread.
pub fn run_op(op: &OpSpec, options: &Options) -> Report {
    let start = std::time::Instant::now();
    let mut runner = Runner { op: op.name, options, report: Report::default() };
    if op.name_matters(options) {
        for sample in &op.samples {
            runner.values(sample);
            runner.gradients(sample);
            runner.in_place(sample);
            if runner.ended() {
                break;
            }
        }
        runner.refusals(op);
    }
    runner.report.seconds.insert(op.name.to_owned(), start.elapsed().as_secs_f64());
    runner.report
}

trait Named {
    fn name_matters(&self, options: &Options) -> bool;
}

impl Named for OpSpec {
    /// Whether any check of the op can match the filter; spares the others' references.
    fn name_matters(&self, options: &Options) -> bool {
        match options.filter.as_deref().and_then(|f| f.split_once("::")) {
            Some((op, _)) => self.name.ends_with(op),
            None => true,
        }
    }
}

/// Why a check did not pass.
#[derive(Debug)]
enum Fault {
    Wrong(String),
    Refused(Error),
}

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault::Refused(e)
    }
}

impl From<String> for Fault {
    fn from(s: String) -> Fault {
        Fault::Wrong(s)
    }
}

type Outcome<T = ()> = Result<T, Fault>;

/// Fails a check with a message.
macro_rules! wrong {
    ($($text:tt)+) => { return Err($crate::harness::Fault::Wrong(format!($($text)+))) };
}
use wrong;

/// Runs the checks of one op.
struct Runner<'a> {
    op: &'static str,
    options: &'a Options,
    report: Report,
}

impl Runner<'_> {
    /// Whether to go on: not after a failure, if the first one is enough.
    fn ended(&self) -> bool {
        self.options.stop_early && !self.report.failures.is_empty()
    }

    fn wanted(&self, check: &str, layout: &str) -> bool {
        if self.ended() {
            return false;
        }
        match &self.options.filter {
            Some(f) => format!("{}::{check}::{layout}", self.op).contains(f.as_str()),
            None => true,
        }
    }

    /// Runs one check and records what came of it.
    fn check(
        &mut self,
        check: &'static str,
        layout: &str,
        dtype: DType,
        sample: &str,
        body: impl FnOnce() -> Outcome,
    ) {
        if self.wanted(check, layout) {
            let outcome = guarded(body);
            self.record(check, layout, dtype, sample, outcome);
        }
    }

    fn record(&mut self, check: &'static str, layout: &str, dtype: DType, sample: &str, outcome: Outcome) {
        if !self.wanted(check, layout) {
            return;
        }
        let message = match outcome {
            Ok(()) => None,
            // Another backend may lack a class of kernels: its error says which.
            Err(Fault::Refused(e))
                if self.options.device.kind() != DeviceKind::Cpu
                    && e.kind() == ErrorKind::Unsupported
                    && e.message().contains("backend has no") =>
            {
                self.report.skip(e.op());
                return;
            }
            Err(Fault::Refused(e)) => Some(format!("refused: {e}")),
            Err(Fault::Wrong(message)) => Some(message),
        };
        self.report.count(self.op, check, layout, dtype);
        if let Some(message) = message {
            let name = format!("{}::{check}::{layout}", self.op);
            self.report.failures.push(Failure { name, dtype, sample: sample.to_owned(), message });
        }
    }
}

/// A panic is a failure like any other.
fn guarded<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(Fault::Wrong(format!("panicked: {}", text.unwrap_or_default())))
    })
}

/// The number of elements of all inputs.
fn elements(sample: &Sample) -> usize {
    sample.inputs.iter().map(|i| i.sizes.iter().product::<usize>()).sum()
}
