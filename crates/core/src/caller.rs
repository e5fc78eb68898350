//! The user's source line, carried along through the ops it sets off.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;

thread_local! {
    static CALLER: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Names the user's call while it lives: the outermost one on a thread wins, so that errors, graph nodes and
/// the audit name the user's line and not one of ours.
pub struct CallerScope {
    outermost: bool,
    _not_send: PhantomData<*const ()>,
}

impl CallerScope {
    /// Enters a call made at `caller`.
    #[inline]
    pub fn enter(caller: &'static Location<'static>) -> CallerScope {
        let outermost = CALLER.with(|c| {
            let first = c.get().is_none();
            if first {
                c.set(Some(caller));
            }
            first
        });
        CallerScope { outermost, _not_send: PhantomData }
    }

    /// The line of the outermost call in progress on this thread.
    pub fn current() -> Option<&'static Location<'static>> {
        CALLER.with(Cell::get)
    }
}

impl Drop for CallerScope {
    #[inline]
    fn drop(&mut self) {
        if self.outermost {
            CALLER.with(|c| c.set(None));
        }
    }
}
