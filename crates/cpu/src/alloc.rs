//! The caching allocator behind every CPU buffer.
//!
//! Blocks are 64-byte aligned and come in size classes, eight to the first 512 bytes and four to a doubling after
//! that. A freed block goes on the list of its class and serves the next request of that class: a fresh 25 MiB
//! buffer costs its page faults (8-10 ms), a recycled one nothing. Blocks of 2 MiB and more are aligned to 2 MiB
//! and, on Linux, ask for huge pages.
//!
//! Small blocks are kept in 16 pools, of which each thread uses one, so that threads rarely meet; large ones
//! in one pool, where a batch that one thread made and another dropped is found again. A free block's first word
//! links it to the next, so that a pool needs no memory of its own. A pool is locked by a spinning word: whoever holds
//! it only relinks a list.
//!
//! Nothing is zeroed unless asked for.

use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use stridegrad_core::{Buffer, Error, ErrorKind, Init, MemoryStats, Result};

use crate::team;

/// The alignment of every block.
pub const ALIGN: usize = 64;
/// Blocks at least this large are aligned to it and ask for huge pages.
const HUGE: usize = 2 << 20;
/// Blocks above this many bytes are shared by all threads.
const SMALL: usize = 32 << 10;
/// The largest block that is kept for reuse.
const LARGEST: usize = 1 << 46;
/// Pools of small blocks.
const SHARDS: usize = 16;
/// The most bytes that a pool of small blocks keeps.
const SHARD_LIMIT: usize = 8 << 20;
/// The most bytes that the pool of large blocks keeps, unless [`set_cache_limit`] says otherwise.
const DEFAULT_LIMIT: usize = 4 << 30;

const CLASSES: usize = class_of(LARGEST) + 1;

/// The size class of a request of at least one byte.
const fn class_of(bytes: usize) -> usize {
    if bytes <= 512 {
        return bytes.div_ceil(64) - 1;
    }
    // 2^log < bytes <= 2^(log + 1), four classes in between.
    let log = (bytes - 1).ilog2() as usize;
    let quarter = (bytes - (1 << log)).div_ceil(1 << (log - 2));
    8 + (log - 9) * 4 + quarter - 1
}

/// The bytes that a block of a class has.
const fn class_bytes(class: usize) -> usize {
    if class < 8 {
        return (class + 1) * 64;
    }
    let (log, quarter) = (9 + (class - 8) / 4, (class - 8) % 4 + 1);
    (1 << log) + quarter * (1 << (log - 2))
}

/// What the system is asked for when `bytes` are wanted: `None` if it cannot be expressed.
fn system_layout(bytes: usize) -> Option<Layout> {
    let size = if bytes <= LARGEST { class_bytes(class_of(bytes)) } else { bytes };
    Layout::from_size_align(size, if size >= HUGE { HUGE } else { ALIGN }).ok()
}

/// A free block; its first word is the address of the next.
struct Free {
    next: *mut Free,
}

struct Lists {
    heads: [*mut Free; CLASSES],
    cached: usize,
    allocations: u64,
}

/// Lists of free blocks behind a spinning lock, on a cache line of its own.
#[repr(align(128))]
struct Pool {
    locked: AtomicBool,
    lists: UnsafeCell<Lists>,
}

// SAFETY: `lists` is reached only by `Pool::with`, under the lock.
unsafe impl Sync for Pool {}

impl Pool {
    const fn new() -> Pool {
        let lists = Lists { heads: [std::ptr::null_mut(); CLASSES], cached: 0, allocations: 0 };
        Pool { locked: AtomicBool::new(false), lists: UnsafeCell::new(lists) }
    }

    /// Runs `f`, which must not panic and must not take long, on the lists.
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut Lists) -> R) -> R {
        let mut spins = 0u32;
        while self.locked.swap(true, Acquire) {
            while self.locked.load(Relaxed) {
                spins += 1;
                if spins.is_multiple_of(128) { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
        }
        // SAFETY: the lock is ours, so nobody else holds a reference to the lists.
        let r = f(unsafe { &mut *self.lists.get() });
        self.locked.store(false, Release);
        r
    }

    /// Gives every block back to the system.
    fn drain(&self) {
        let heads = self.with(|lists| {
            lists.cached = 0;
            std::mem::replace(&mut lists.heads, [std::ptr::null_mut(); CLASSES])
        });
        for (class, mut head) in heads.into_iter().enumerate() {
            while let Some(block) = NonNull::new(head) {
                // SAFETY: the block was on a list, so it is free, its first word was written by `free`, and nobody
                // else can reach it any more.
                head = unsafe { block.as_ref() }.next;
                // SAFETY: as above; its class is that of the list.
                unsafe { release(block.cast(), class_bytes(class)) }
            }
        }
    }
}

static SMALL_POOLS: [Pool; SHARDS] = [const { Pool::new() }; SHARDS];
static LARGE_POOL: Pool = Pool::new();
static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);
static CURRENT: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static ZEROED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The pool of small blocks that this thread uses; `SHARDS` until it has one.
    static SHARD: Cell<usize> = const { Cell::new(SHARDS) };
}

#[inline]
fn pool_for(bytes: usize) -> &'static Pool {
    if bytes > SMALL {
        return &LARGE_POOL;
    }
    let mut shard = SHARD.get();
    if shard == SHARDS {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        shard = NEXT.fetch_add(1, Relaxed) % SHARDS;
        SHARD.set(shard);
    }
    &SMALL_POOLS[shard]
}

/// `bytes` bytes of memory, 64-byte aligned.
///
/// # Errors
/// `OutOfMemory` if the system has not got them.
pub fn allocate(bytes: usize, init: Init) -> Result<Buffer> {
    if bytes == 0 {
        // SAFETY: no byte is promised, and `free_nothing` does nothing.
        return Ok(unsafe { Buffer::from_host(NonNull::<Aligned>::dangling().cast(), 0, free_nothing) });
    }
    let pool = pool_for(bytes);
    let recycled = pool.with(|lists| {
        lists.allocations += 1;
        if bytes > LARGEST {
            return None;
        }
        let class = class_of(bytes);
        let block = NonNull::new(lists.heads[class])?;
        // SAFETY: a block on a list is free and its first word was written by `free`.
        lists.heads[class] = unsafe { block.as_ref() }.next;
        lists.cached -= class_bytes(class);
        Some(block.cast::<u8>())
    });
    let ptr = match recycled {
        Some(ptr) => ptr,
        None => fresh(bytes)?,
    };
    let now = CURRENT.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
    if init == Init::Zeroed {
        zero(ptr, bytes);
    }
    // SAFETY: the block has at least `bytes` bytes, is ours alone, and `free` takes it back.
    Ok(unsafe { Buffer::from_host(ptr, bytes, free) })
}

/// Where empty buffers point.
#[repr(align(64))]
struct Aligned;

unsafe fn free_nothing(_: NonNull<u8>, _: usize) {}

#[cold]
fn fresh(bytes: usize) -> Result<NonNull<u8>> {
    let refuse = || {
        Error::new(
            ErrorKind::OutOfMemory,
            "allocate",
            format!("the system has not got {bytes} bytes of memory"),
        )
        .hint("use smaller batches, or drop tensors that are no longer needed")
    };
    let layout = system_layout(bytes).ok_or_else(refuse)?;
    // SAFETY: the layout's size is not 0.
    let mut ptr = NonNull::new(unsafe { std::alloc::alloc(layout) });
    if ptr.is_none() {
        empty_cache();
        // SAFETY: as above.
        ptr = NonNull::new(unsafe { std::alloc::alloc(layout) });
    }
    let ptr = ptr.ok_or_else(refuse)?;
    if layout.size() >= HUGE {
        want_huge_pages(ptr, layout.size());
    }
    Ok(ptr)
}

#[cfg(all(target_os = "linux", not(miri)))]
fn want_huge_pages(ptr: NonNull<u8>, bytes: usize) {
    unsafe extern "C" {
        fn madvise(addr: *mut std::ffi::c_void, len: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
    }
    const MADV_HUGEPAGE: std::ffi::c_int = 14;
    // SAFETY: the range is a block of ours, page-aligned at its start (2 MiB); the advice changes no content. A kernel
    // without huge pages refuses, which changes nothing.
    unsafe { madvise(ptr.as_ptr().cast(), bytes, MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn want_huge_pages(_: NonNull<u8>, _: usize) {}

fn zero(ptr: NonNull<u8>, bytes: usize) {
    const CHUNK: usize = 1 << 20;
    ZEROED.fetch_add(bytes as u64, Relaxed);
    let base = team::Ptr::new(ptr.as_ptr());
    team::par_if(bytes as u64 / 16, bytes.div_ceil(CHUNK), &|i| {
        let start = i * CHUNK;
        // SAFETY: the block has `bytes` bytes and is not published yet; chunks do not overlap.
        unsafe { base.get().add(start).write_bytes(0, CHUNK.min(bytes - start)) }
    });
}

/// Takes back a block that [`allocate`] made for `bytes` bytes.
unsafe fn free(ptr: NonNull<u8>, bytes: usize) {
    CURRENT.fetch_sub(bytes as u64, Relaxed);
    if bytes > LARGEST {
        // SAFETY: the caller gives the block up; it has the size that `system_layout` gave it.
        return unsafe { release(ptr, bytes) };
    }
    let class = class_of(bytes);
    let size = class_bytes(class);
    let limit = if bytes > SMALL { LIMIT.load(Relaxed) } else { SHARD_LIMIT.min(LIMIT.load(Relaxed)) };
    if size > limit {
        // SAFETY: as above.
        return unsafe { release(ptr, size) };
    }
    let pool = pool_for(bytes);
    let block = ptr.cast::<Free>();
    let full = pool.with(|lists| {
        if lists.cached + size > limit {
            return true;
        }
        // SAFETY: the block is ours, aligned to 64 bytes and at least as large.
        unsafe { block.write(Free { next: lists.heads[class] }) };
        lists.heads[class] = block.as_ptr();
        lists.cached += size;
        false
    });
    if full {
        // What fills the pool are sizes that are no longer asked for: start afresh with those that are.
        pool.drain();
        // SAFETY: the block is still ours.
        unsafe { release(ptr, size) }
    }
}

/// Gives a block of `size` bytes (as the system gave it) back to the system.
unsafe fn release(ptr: NonNull<u8>, size: usize) {
    let align = if size >= HUGE { HUGE } else { ALIGN };
    // SAFETY: `fresh` made the block with this very layout, which was valid then; the caller gives it up.
    unsafe { std::alloc::dealloc(ptr.as_ptr(), Layout::from_size_align_unchecked(size, align)) }
}

/// Gives every block kept for reuse back to the system.
pub fn empty_cache() {
    LARGE_POOL.drain();
    SMALL_POOLS.iter().for_each(Pool::drain);
}

/// The most bytes of large blocks kept for reuse (at first 4 GiB); 0 keeps none. Returns the former limit.
pub fn set_cache_limit(bytes: usize) -> usize {
    let before = LIMIT.swap(bytes, Relaxed);
    if bytes < before {
        empty_cache();
    }
    before
}

/// What the allocator has handed out and keeps.
pub fn stats() -> MemoryStats {
    let mut stats = MemoryStats {
        current: CURRENT.load(Relaxed),
        peak: PEAK.load(Relaxed),
        zeroed: ZEROED.load(Relaxed),
        ..MemoryStats::default()
    };
    for pool in SMALL_POOLS.iter().chain([&LARGE_POOL]) {
        let (cached, allocations) = pool.with(|lists| (lists.cached as u64, lists.allocations));
        stats.cached += cached;
        stats.allocations += allocations;
    }
    stats
}

/// Sets `peak` to `current` and the counters to zero.
pub fn reset_stats() {
    PEAK.store(CURRENT.load(Relaxed), Relaxed);
    ZEROED.store(0, Relaxed);
    for pool in SMALL_POOLS.iter().chain([&LARGE_POOL]) {
        pool.with(|lists| lists.allocations = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_every_size_tightly() {
        let sizes = (1..5000)
            .chain((12..46).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1, 3 << (log - 1)]));
        for bytes in sizes {
            let class = class_of(bytes);
            let size = class_bytes(class);
            assert!(size >= bytes && size.is_multiple_of(ALIGN), "{bytes} in {size}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes} fits a smaller class");
            assert!(size <= bytes.next_multiple_of(64) + bytes / 4, "{bytes} wastes too much in {size}");
        }
        assert_eq!(class_bytes(CLASSES - 1), LARGEST);
    }

    #[test]
    fn blocks_are_aligned_distinct_and_writable() {
        let sizes = [0, 1, 7, 64, 65, 1000, 4096, 40_000, HUGE - 1, HUGE, HUGE + 1, 9 * HUGE];
        let blocks: Vec<Buffer> = sizes.iter().map(|&n| allocate(n, Init::Uninit).unwrap()).collect();
        for (i, (b, &n)) in blocks.iter().zip(&sizes).enumerate() {
            let p = b.host_ptr().unwrap();
            assert_eq!(p as usize % if n >= HUGE { HUGE } else { ALIGN }, 0);
            assert_eq!(b.bytes(), n);
            // SAFETY: the block has `n` bytes and is ours.
            unsafe { p.write_bytes(i as u8, n) };
        }
        for (i, (b, &n)) in blocks.iter().zip(&sizes).enumerate() {
            // SAFETY: `n` bytes were written above.
            let bytes = unsafe { std::slice::from_raw_parts(b.host_ptr().unwrap(), n) };
            assert!(bytes.iter().all(|&b| b == i as u8));
        }
    }

    #[test]
    fn zeroed_memory_is_zero_though_recycled() {
        for n in [100, 5000, 3 << 20] {
            let b = allocate(n, Init::Uninit).unwrap();
            // SAFETY: the block has `n` bytes and is ours.
            unsafe { b.host_ptr().unwrap().write_bytes(0xAB, n) };
            drop(b);
            let b = allocate(n, Init::Zeroed).unwrap();
            // SAFETY: the block is initialised.
            let bytes = unsafe { std::slice::from_raw_parts(b.host_ptr().unwrap(), n) };
            assert!(bytes.iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn absurd_sizes_are_errors() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60, LARGEST + 1] {
            let e = allocate(bytes, Init::Uninit).err().unwrap();
            assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{e}");
        }
    }
}
