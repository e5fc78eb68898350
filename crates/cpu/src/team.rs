//! Parallel calls with little latency.
//!
//! [`par`] cuts a job into numbered chunks that the caller and a few helpers claim one by one. Helpers are jobs on
//! rayon's pool that stay and spin for a moment after a call, so that the next call (often microseconds later in a
//! training step) finds them awake. The rules that keep this simple:
//!
//! - The caller drains its own chunks: no call ever waits for a helper that has not begun to help.
//! - Helpers only help. They take no other work while inside a call, so a caller may hold a lock that its chunks do
//!   not take.
//! - One job at a time. A call from inside a chunk, and a call while another thread's job is running, runs serially.
//! - A panic in a chunk stops the handing out of chunks and is resumed on the caller once every helper has left.
//!
//! Which thread runs a chunk is never part of a result: kernels cut work by shape and combine it in chunk order.
//!
//! ## The protocol
//!
//! A job is published in fields of `TEAM` and opened by `open = true`. A helper enters by `active += 1`, then reads
//! `open`; the caller ends by `open = false`, then waits for `active == 0`. All four are `SeqCst`, so either the
//! helper sees the job closed and touches nothing, or the caller sees the helper and waits: nobody uses a job's
//! closure after `par` has returned.

use crate::isa::{self, Isa};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a helper stays after its last job.
const LINGER: Duration = Duration::from_micros(200);
/// How long a helper spins before it starts to yield its core between looks.
const SPIN: Duration = Duration::from_micros(40);
/// How long a helper stays at most, even if jobs keep coming: its rayon thread may owe work to others.
const STAY: Duration = Duration::from_millis(10);
/// Work below this many nanoseconds is not worth sharing with helpers that are awake.
const HOT_NS: u64 = 8_000;
/// Work below this many nanoseconds is not worth waking helpers for.
const COLD_NS: u64 = 50_000;

#[derive(Clone, Copy)]
struct Job {
    body: *const (dyn Fn(usize) + Sync),
    chunks: usize,
    isa: Option<Isa>,
}

struct Team {
    /// Held by the caller whose job is running.
    busy: AtomicBool,
    /// Counts jobs; helpers watch it.
    epoch: AtomicUsize,
    open: AtomicBool,
    active: AtomicUsize,
    /// Helpers that may still join the job.
    seats: AtomicIsize,
    next: AtomicUsize,
    /// Helpers that are spinning, working, or queued on rayon's pool.
    resident: AtomicUsize,
    /// Helpers that have begun to run and have not left.
    awake: AtomicUsize,
    job: UnsafeCell<Job>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: every field but `job` is Sync. `job` is written only by the holder of `busy` while `open` is false and
// `active` is 0, and read only between `active += 1`, `open == true` and `active -= 1` (see the protocol above).
unsafe impl Sync for Team {}

fn nothing(_: usize) {}

static TEAM: Team = Team {
    busy: AtomicBool::new(false),
    epoch: AtomicUsize::new(0),
    open: AtomicBool::new(false),
    active: AtomicUsize::new(0),
    seats: AtomicIsize::new(0),
    next: AtomicUsize::new(0),
    resident: AtomicUsize::new(0),
    awake: AtomicUsize::new(0),
    job: UnsafeCell::new(Job { body: &nothing as &(dyn Fn(usize) + Sync) as *const _, chunks: 0, isa: None }),
    panic: Mutex::new(None),
};

/// The cap set by [`set_num_threads`]; 0 is no cap.
static CAP: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread is running a chunk.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// How many threads [`par`] uses at most, the caller included: the size of rayon's current pool or the cap of
/// [`set_num_threads`], whichever is smaller.
pub fn num_threads() -> usize {
    let pool = rayon::current_num_threads().max(1);
    match CAP.load(Relaxed) {
        0 => pool,
        cap => cap.min(pool),
    }
}

/// Caps the threads that [`par`] uses; 0 lifts the cap. Results do not depend on it.
pub fn set_num_threads(n: usize) {
    CAP.store(n, Relaxed);
}

/// Whether this thread is running a chunk of a parallel call (so that a further call would run serially).
pub fn in_parallel() -> bool {
    INSIDE.get()
}

/// Runs `body(0)`, ..., `body(chunks - 1)`, each once, on the caller and its helpers in no set order, and returns when
/// all are done.
///
/// # Panics
/// If a chunk panics, chunks not yet begun are abandoned and the panic continues on the caller.
pub fn par(chunks: usize, body: &(dyn Fn(usize) + Sync)) {
    let helpers = num_threads().min(chunks).saturating_sub(1);
    if helpers == 0 || INSIDE.get() || TEAM.busy.swap(true, SeqCst) {
        return serial(chunks, body);
    }
    run(chunks, helpers, body);
}

/// [`par`] if the work, estimated at `cost_ns` nanoseconds on one thread, is worth sharing, else a plain loop.
pub fn par_if(cost_ns: u64, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
    let least = if TEAM.awake.load(Relaxed) > 0 { HOT_NS } else { COLD_NS };
    if cost_ns < least { serial(chunks, body) } else { par(chunks, body) }
}

fn serial(chunks: usize, body: &(dyn Fn(usize) + Sync)) {
    for i in 0..chunks {
        body(i);
    }
}

/// Runs a job; the caller has set `busy`.
fn run(chunks: usize, helpers: usize, body: &(dyn Fn(usize) + Sync)) {
    struct Release;
    impl Drop for Release {
        fn drop(&mut self) {
            TEAM.busy.store(false, SeqCst);
        }
    }
    let release = Release;
    while TEAM.resident.load(SeqCst) < helpers {
        TEAM.resident.fetch_add(1, SeqCst);
        rayon::spawn(helper);
    }
    // SAFETY: only the lifetime changes. The pointer is followed only while the job is open or by helpers that this
    // call waits for before it returns, so within the borrow's life.
    let body: *const (dyn Fn(usize) + Sync) =
        unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(body) };
    let job = Job { body, chunks, isa: isa::current_override() };
    // SAFETY: `busy` is ours, the last job is closed and its helpers have left (`active` was 0), and a helper that
    // enters now reads `open == false` and does not look at the job.
    unsafe { *TEAM.job.get() = job };
    TEAM.next.store(0, SeqCst);
    TEAM.seats.store(helpers as isize, SeqCst);
    TEAM.open.store(true, SeqCst);
    TEAM.epoch.fetch_add(1, SeqCst);

    drain(job);

    TEAM.open.store(false, SeqCst);
    let mut looks = 0u32;
    while TEAM.active.load(SeqCst) != 0 {
        looks += 1;
        if looks.is_multiple_of(4096) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
    let panic = TEAM.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    if let Some(payload) = panic {
        drop(release);
        resume_unwind(payload);
    }
}

/// Claims and runs chunks until none is left. Never unwinds.
fn drain(job: Job) {
    let inside = INSIDE.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        isa::with_override(job.isa, || {
            // SAFETY: the job is open or this thread is counted in `active`, so `par` has not returned and the
            // closure is alive.
            let body = unsafe { &*job.body };
            loop {
                let i = TEAM.next.fetch_add(1, Relaxed);
                if i >= job.chunks {
                    break;
                }
                body(i);
            }
        })
    }));
    INSIDE.set(inside);
    if let Err(payload) = outcome {
        TEAM.next.store(job.chunks, Relaxed);
        TEAM.panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(payload);
    }
}

/// A helper's life on a thread of rayon's pool.
fn helper() {
    TEAM.awake.fetch_add(1, SeqCst);
    let mut seen = 0;
    let born = Instant::now();
    let mut since = born;
    let mut looks = 0u32;
    loop {
        let epoch = TEAM.epoch.load(SeqCst);
        if epoch != seen {
            seen = epoch;
            TEAM.active.fetch_add(1, SeqCst);
            if TEAM.open.load(SeqCst) && TEAM.seats.fetch_sub(1, SeqCst) > 0 {
                // SAFETY: this helper is counted in `active` and saw the job open after that, so the fields are
                // published and stay until it leaves.
                let job = unsafe { *TEAM.job.get() };
                drain(job);
                since = Instant::now();
            }
            TEAM.active.fetch_sub(1, SeqCst);
            if since.duration_since(born) > STAY {
                break;
            }
            continue;
        }
        looks = looks.wrapping_add(1);
        std::hint::spin_loop();
        if looks.is_multiple_of(64) {
            let idle = since.elapsed();
            if idle > LINGER {
                break;
            }
            if idle > SPIN {
                std::thread::yield_now();
            }
        }
    }
    TEAM.awake.fetch_sub(1, SeqCst);
    TEAM.resident.fetch_sub(1, SeqCst);
}

/// A raw pointer that parallel chunks may carry to other threads; each use states why the access is exclusive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ptr<T>(*mut T);

// SAFETY: the wrapper only moves the address; every dereference is an unsafe operation with its own reason.
unsafe impl<T> Send for Ptr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Ptr<T> {
    /// Wraps a pointer that is written through.
    #[inline(always)]
    pub(crate) fn new(p: *mut T) -> Self {
        Ptr(p)
    }

    /// Wraps a pointer that is only read through.
    #[inline(always)]
    pub(crate) fn read(p: *const T) -> Self {
        Ptr(p.cast_mut())
    }

    /// The pointer. (A method, so that closures capture the whole wrapper.)
    #[inline(always)]
    pub(crate) fn get(self) -> *mut T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn counts(n: usize) -> Vec<AtomicU32> {
        (0..n).map(|_| AtomicU32::new(0)).collect()
    }

    fn check_once_each(n: usize) {
        let hits = counts(n);
        par(n, &|i| {
            hits[i].fetch_add(1, Relaxed);
        });
        assert!(hits.iter().all(|h| h.load(Relaxed) == 1), "{n} chunks");
    }

    #[test]
    fn every_chunk_runs_once() {
        for n in [0, 1, 2, 3, 7, 64, 1000] {
            for _ in 0..50 {
                check_once_each(n);
            }
        }
    }

    #[test]
    fn nested_calls_are_serial() {
        let hits = counts(16 * 8);
        par(16, &|i| {
            let me = std::thread::current().id();
            let inside = in_parallel();
            par(8, &|j| {
                assert!(!inside || std::thread::current().id() == me);
                hits[i * 8 + j].fetch_add(1, Relaxed);
            });
        });
        assert!(hits.iter().all(|h| h.load(Relaxed) == 1));
        assert!(!in_parallel());
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        for _ in 0..20 {
            let caught = catch_unwind(|| {
                par(64, &|i| {
                    if i == 13 {
                        panic!("chunk {i}");
                    }
                    std::thread::sleep(Duration::from_micros(20));
                })
            });
            let payload = caught.expect_err("the panic is passed on");
            assert_eq!(payload.downcast_ref::<String>().map(String::as_str), Some("chunk 13"));
            assert!(!in_parallel());
            check_once_each(100);
        }
    }

    #[test]
    fn more_threads_than_cores() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(16).build().unwrap();
        pool.install(|| {
            assert!(num_threads() <= 16);
            for _ in 0..200 {
                check_once_each(100);
            }
        });
    }

    #[test]
    fn from_inside_a_pool_of_one() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            assert_eq!(num_threads(), 1);
            check_once_each(33);
        });
    }

    #[test]
    fn from_inside_rayon_tasks() {
        rayon::scope(|s| {
            for _ in 0..32 {
                s.spawn(|_| (0..20).for_each(|_| check_once_each(40)));
            }
        });
    }

    #[test]
    fn from_several_threads_at_once() {
        std::thread::scope(|s| {
            for _ in 0..6 {
                s.spawn(|| (0..300).for_each(|_| check_once_each(25)));
            }
        });
    }

    #[test]
    fn while_the_caller_holds_a_lock() {
        let lock = Mutex::new(0);
        for _ in 0..100 {
            let mut guard = lock.lock().unwrap();
            check_once_each(20);
            *guard += 1;
        }
        assert_eq!(*lock.lock().unwrap(), 100);
    }

    #[test]
    fn cost_decides() {
        let main = std::thread::current().id();
        par_if(10, 50, &|_| assert_eq!(std::thread::current().id(), main));
        let hits = counts(50);
        par_if(u64::MAX, 50, &|i| {
            hits[i].fetch_add(1, Relaxed);
        });
        assert!(hits.iter().all(|h| h.load(Relaxed) == 1));
    }

    #[test]
    fn helpers_see_the_callers_isa() {
        isa::with_isa(Isa::Portable, || {
            for _ in 0..50 {
                par(32, &|_| {
                    assert_eq!(isa::isa(), Isa::Portable);
                    std::hint::black_box(isa::detected());
                });
            }
        });
    }
}
