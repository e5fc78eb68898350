//! Counting the copies that nobody asked for.

use std::cell::RefCell;
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
