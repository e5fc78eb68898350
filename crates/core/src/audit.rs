//! Counting the copies that nobody asked for.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use crate::{CallerScope, Error, ErrorKind, Result};

/// One hidden copy: which op made it, why, how much, and from which line of the user's program.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyRecord {
    /// The op that needed the copy.
    pub op: &'static str,
    /// Why the strides could not express what was wanted.
    pub reason: &'static str,
    /// Bytes written.
    pub bytes: usize,
    /// The user's line.
    pub caller: Option<&'static Location<'static>>,
}

#[derive(Default)]
struct State {
    recording: usize,
    denying: usize,
    records: Vec<CopyRecord>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Called by `materialize` before each copy that the user did not ask for.
pub(crate) fn note(op: &'static str, reason: &'static str, bytes: usize) -> Result<()> {
    STATE.with(|s| {
        let s = &mut *s.borrow_mut();
        if s.recording == 0 && s.denying == 0 {
            return Ok(());
        }
        if s.denying > 0 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                op,
                format!("a copy of {bytes} bytes is denied here: {reason}"),
            )
            .hint("make the layout explicit with contiguous() outside deny_copies()"));
        }
        s.records.push(CopyRecord { op, reason, bytes, caller: CallerScope::current() });
        Ok(())
    })
}

/// Records the hidden copies of this thread while it lives.
pub struct Audit {
    start: usize,
    _not_send: PhantomData<*const ()>,
}

impl Audit {
    /// Starts recording.
    pub fn start() -> Audit {
        STATE.with(|s| {
            let s = &mut *s.borrow_mut();
            s.recording += 1;
            Audit { start: s.records.len(), _not_send: PhantomData }
        })
    }

    /// The copies recorded so far.
    pub fn copies(&self) -> Vec<CopyRecord> {
        STATE.with(|s| s.borrow().records[self.start..].to_vec())
    }
}

impl Audit {
    /// The copies recorded so far, those of one line and reason as one row: to print.
    ///
    /// ```
    /// use stridegrad_core::audit::Audit;
    /// let audit = Audit::start();
    /// // ... a training step ...
    /// assert_eq!(audit.report().to_string(), "no hidden copies\n");
    /// ```
    pub fn report(&self) -> Report {
        let mut rows: Vec<Row> = Vec::new();
        for r in self.copies() {
            let same = |row: &&mut Row| {
                row.record.op == r.op && row.record.reason == r.reason && row.record.caller == r.caller
            };
            match rows.iter_mut().find(same) {
                Some(row) => {
                    row.count += 1;
                    row.record.bytes += r.bytes;
                }
                None => rows.push(Row { record: r, count: 1 }),
            }
        }
        rows.sort_by_key(|r| std::cmp::Reverse(r.record.bytes));
        Report { rows }
    }
}

/// A table of hidden copies, the largest first. `Display` writes it with op, count, bytes, reason and file:line.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    rows: Vec<Row>,
}

/// Copies of one op, line and reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Op, reason and line; the bytes are those of all the copies together.
    pub record: CopyRecord,
    /// How many copies.
    pub count: usize,
}

impl Report {
    /// The rows, the most bytes first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Bytes of all copies.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|r| r.record.bytes).sum()
    }

    /// Whether nothing was copied.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.is_empty() {
            return writeln!(f, "no hidden copies");
        }
        let mut lines = vec![["op", "copies", "bytes", "reason", "at"].map(String::from)];
        lines.extend(self.rows.iter().map(|Row { record: r, count }| {
            let at = r.caller.map_or("unknown".into(), |c| format!("{}:{}", c.file(), c.line()));
            [r.op.into(), count.to_string(), r.bytes.to_string(), r.reason.into(), at]
        }));
        let width = |k: usize| lines.iter().map(|l| l[k].len()).max().unwrap_or(0);
        let [op, copies, bytes, reason] = [0, 1, 2, 3].map(width);
        for [a, b, c, d, e] in &lines {
            writeln!(f, "{a:op$}  {b:>copies$}  {c:>bytes$}  {d:reason$}  {e}")?;
        }
        let copies: usize = self.rows.iter().map(|r| r.count).sum();
        writeln!(f, "{copies} hidden copies, {} bytes", self.bytes())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        STATE.with(|s| {
            let s = &mut *s.borrow_mut();
            s.recording -= 1;
            if s.recording == 0 {
                s.records.clear();
            }
        });
    }
}

/// Forbids hidden copies on this thread while it lives: an op that needs one is an error.
pub struct DenyCopies(PhantomData<*const ()>);

/// Starts forbidding hidden copies on this thread.
#[must_use]
pub fn deny_copies() -> DenyCopies {
    STATE.with(|s| s.borrow_mut().denying += 1);
    DenyCopies(PhantomData)
}

impl Drop for DenyCopies {
    fn drop(&mut self) {
        STATE.with(|s| s.borrow_mut().denying -= 1);
    }
}
