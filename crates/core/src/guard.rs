//! The guard word of a storage: many readers or one writer, taken all-or-nothing.
//!
//! Nobody waits while holding: [`GuardSet::acquire`] either gets every guard it names or releases what it has
//! got and tries again, so there is no deadlock to find; the order of addresses keeps two ops from handing the same
//! two storages back and forth. A kernel finishes without help, so waiting for one is short. A holder that runs *user* code (a host slice, a closure) sets the host
//! bit; a conflict with it is the error `StorageBusy` at once, since user code may wait for us.

use std::panic::Location;

use crate::sync::{AtomicUsize, Ordering, yield_now};
use crate::{Error, ErrorKind, Result};

const WRITER: usize = 1 << (usize::BITS - 1);
const HOST: usize = 1 << (usize::BITS - 2);
const READERS: usize = HOST - 1;

/// One atomic word: writer bit, host bit, number of readers.
#[derive(Debug)]
pub(crate) struct GuardWord {
    word: AtomicUsize,
    // The source line of the host holder, for the error text; only advisory.
    host: std::sync::atomic::AtomicPtr<Location<'static>>,
}

/// How a guard is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

enum Conflict {
    Kernel,
    Host,
}

impl GuardWord {
    pub(crate) fn new() -> GuardWord {
        GuardWord { word: AtomicUsize::new(0), host: Default::default() }
    }

    fn try_acquire(&self, access: Access) -> std::result::Result<(), Conflict> {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let free = match access {
                Access::Read => now & WRITER == 0,
                Access::Write => now == 0,
            };
            if !free {
                return Err(if now & HOST != 0 { Conflict::Host } else { Conflict::Kernel });
            }
            let next = match access {
                Access::Read => now + 1,
                Access::Write => now | WRITER,
            };
            match self.word.compare_exchange_weak(now, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(seen) => now = seen,
            }
        }
    }

    fn host_line(&self) -> String {
        // SAFETY: the pointer is null or was made from a `&'static Location` in `mark_host`.
        match unsafe { self.host.load(Ordering::Relaxed).as_ref() } {
            Some(l) => format!("{}:{}", l.file(), l.line()),
            None => "an unknown line".into(),
        }
    }

    /// Marks that a holder runs user code. Only ever set by a holder, cleared by the last one.
    fn mark_host(&self, caller: &'static Location<'static>) {
        self.host.store(std::ptr::from_ref(caller).cast_mut(), Ordering::Relaxed);
        self.word.fetch_or(HOST, Ordering::Relaxed);
    }

    fn release(&self, access: Access) {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let mut next = match access {
                Access::Read => now - 1,
                Access::Write => now & !WRITER,
            };
            // The host bit goes with the last holder, whoever that is: other readers may be host code as well.
            if next & (READERS | WRITER) == 0 {
                next = 0;
            }
            match self.word.compare_exchange_weak(now, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }
}

/// Guards on up to a handful of distinct storages, released on drop (on unwinding too).
pub(crate) struct GuardSet<'a> {
    held: [Option<(&'a GuardWord, Access)>; MAX_GUARDS],
}

/// The most storages one op may touch.
pub(crate) const MAX_GUARDS: usize = 16;

impl<'a> GuardSet<'a> {
    /// Takes every guard of `wants`, waiting for kernels. Words may repeat: a word named once for writing is
    /// taken for writing.
    pub(crate) fn acquire(
        op: &'static str,
        wants: impl IntoIterator<Item = (&'a GuardWord, Access)>,
    ) -> Result<GuardSet<'a>> {
        let mut set = GuardSet { held: [None; MAX_GUARDS] };
        let mut n = 0;
        for (word, access) in wants {
            match set.held[..n].iter_mut().flatten().find(|(w, _)| std::ptr::eq(*w, word)) {
                Some(slot) if access == Access::Write => slot.1 = Access::Write,
                Some(_) => {}
                None if n == MAX_GUARDS => {
                    set.held = [None; MAX_GUARDS];
                    return Err(Error::new(
                        ErrorKind::Unsupported,
                        op,
                        format!("more than {MAX_GUARDS} storages in one op"),
                    ));
                }
                None => {
                    set.held[n] = Some((word, access));
                    n += 1;
                }
            }
        }
        // By address, so that of two ops in conflict one gets on at once; correctness does not hang on it.
        set.held[..n].sort_unstable_by_key(|w| w.map(|(word, _)| std::ptr::from_ref(word) as usize));
        let wanted = set.held;
        set.held = [None; MAX_GUARDS];
        let mut rounds = 0u32;
        'retry: loop {
            for (i, want) in wanted[..n].iter().enumerate() {
                let Some((word, access)) = *want else { continue };
                match word.try_acquire(access) {
                    Ok(()) => set.held[i] = Some((word, access)),
                    Err(Conflict::Host) => {
                        return Err(Error::new(
                            ErrorKind::StorageBusy,
                            op,
                            format!("the storage is held open by host code at {}", word.host_line()),
                        )
                        .hint("let the slice or closure end first, or work on a copy()"));
                    }
                    Err(Conflict::Kernel) => {
                        set.release_all();
                        backoff(&mut rounds);
                        continue 'retry;
                    }
                }
            }
            return Ok(set);
        }
    }

    /// As [`GuardSet::acquire`] of one storage, for a holder that will run user code.
    pub(crate) fn acquire_host(
        op: &'static str,
        word: &'a GuardWord,
        access: Access,
        caller: &'static Location<'static>,
    ) -> Result<GuardSet<'a>> {
        let set = GuardSet::acquire(op, [(word, access)])?;
        word.mark_host(caller);
        Ok(set)
    }

    fn release_all(&mut self) {
        for (word, access) in self.held.iter_mut().filter_map(Option::take) {
            word.release(access);
        }
    }
}

impl Drop for GuardSet<'_> {
    fn drop(&mut self) {
        self.release_all();
    }
}

fn backoff(rounds: &mut u32) {
    *rounds = rounds.saturating_add(1);
    if cfg!(loom) || *rounds < 64 {
        yield_now();
    } else {
        #[cfg(not(loom))]
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_named_twice_is_taken_once_for_writing() {
        let w = GuardWord::new();
        let set = GuardSet::acquire("t", [(&w, Access::Read), (&w, Access::Write)]).unwrap();
        assert_eq!(w.word.load(Ordering::Relaxed), WRITER);
        drop(set);
        assert_eq!(w.word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn host_holders_refuse_writers_and_admit_readers() {
        let w = GuardWord::new();
        let a = GuardSet::acquire_host("t", &w, Access::Read, Location::caller()).unwrap();
        let b = GuardSet::acquire_host("t", &w, Access::Read, Location::caller()).unwrap();
        let e = GuardSet::acquire("t", [(&w, Access::Write)]).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::StorageBusy);
        assert!(e.to_string().contains("guard.rs"), "{e}");
        drop(a);
        assert!(GuardSet::acquire("t", [(&w, Access::Write)]).is_err());
        drop(GuardSet::acquire("t", [(&w, Access::Read)]).unwrap());
        drop(b);
        drop(GuardSet::acquire("t", [(&w, Access::Write)]).unwrap());
    }

    #[test]
    fn the_host_bit_goes_with_the_last_holder() {
        let w = GuardWord::new();
        let host = GuardSet::acquire_host("t", &w, Access::Read, Location::caller()).unwrap();
        let kernel = GuardSet::acquire("t", [(&w, Access::Read)]).unwrap();
        drop(host);
        drop(kernel);
        drop(GuardSet::acquire("t", [(&w, Access::Write)]).unwrap());
        assert_eq!(w.word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn guards_are_released_on_unwind() {
        let w = GuardWord::new();
        let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _set = GuardSet::acquire("t", [(&w, Access::Write)]).unwrap();
            panic!("kernel");
        }));
        assert!(r.is_err());
        drop(GuardSet::acquire("t", [(&w, Access::Write)]).unwrap());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    struct Cell {
        word: GuardWord,
        value: UnsafeCell<usize>,
    }

    fn cell() -> Cell {
        Cell { word: GuardWord::new(), value: UnsafeCell::new(0) }
    }

    #[test]
    fn writers_exclude_each_other_and_readers() {
        loom::model(|| {
            let c = Arc::new(cell());
            let d = c.clone();
            let t = loom::thread::spawn(move || {
                let _g = GuardSet::acquire("t", [(&d.word, Access::Write)]).unwrap();
                // SAFETY: the write guard is held; loom checks that nobody else touches the cell.
                d.value.with_mut(|p| unsafe { *p += 1 });
            });
            {
                let _g = GuardSet::acquire("t", [(&c.word, Access::Read)]).unwrap();
                // SAFETY: the read guard is held; loom checks that nobody writes the cell.
                c.value.with(|p| unsafe { assert!(*p < 2) });
            }
            t.join().unwrap();
        });
    }

    #[test]
    fn opposite_orders_do_not_deadlock() {
        loom::model(|| {
            let a = Arc::new(cell());
            let b = Arc::new(cell());
            let (a2, b2) = (a.clone(), b.clone());
            let t = loom::thread::spawn(move || {
                let _g =
                    GuardSet::acquire("t", [(&b2.word, Access::Read), (&a2.word, Access::Write)]).unwrap();
                // SAFETY: the write guard of `a` is held.
                a2.value.with_mut(|p| unsafe { *p += 1 });
            });
            {
                let _g = GuardSet::acquire("t", [(&a.word, Access::Read), (&b.word, Access::Write)]).unwrap();
                // SAFETY: the write guard of `b` is held.
                b.value.with_mut(|p| unsafe { *p += 1 });
            }
            t.join().unwrap();
        });
    }
}
