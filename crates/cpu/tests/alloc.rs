//! The allocator: reuse, statistics, limits, threads. Its state is the process's, so these tests take turns.

use std::sync::{Mutex, MutexGuard};

use stridegrad_core::{Buffer, ErrorKind, Init, MemoryStats};
use stridegrad_cpu::alloc::{allocate, empty_cache, reset_stats, set_cache_limit, stats};

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    let guard = TURN.lock().unwrap_or_else(|e| e.into_inner());
    empty_cache();
    reset_stats();
    guard
}

fn get(bytes: usize) -> Buffer {
    allocate(bytes, Init::Uninit).unwrap()
}

#[test]
fn a_freed_block_serves_the_next_request_of_its_class() {
    let _turn = turn();
    for bytes in [1, 64, 1000, 30_000, 100_000, 5 << 20] {
        let first = get(bytes).host_ptr().unwrap();
        assert!(stats().cached >= bytes as u64);
        let second = get(bytes);
        assert_eq!(second.host_ptr().unwrap(), first, "{bytes}");
        assert_ne!(get(bytes).host_ptr().unwrap(), first, "{bytes}");
    }
    empty_cache();
    assert_eq!(stats().cached, 0);
}

#[test]
fn statistics_count_what_was_asked_for() {
    let _turn = turn();
    assert_eq!(stats(), MemoryStats::default());
    let a = get(1000);
    let b = allocate(3 << 20, Init::Zeroed).unwrap();
    drop(a);
    let c = get(500);
    let now = stats();
    let (a, b_bytes, c_bytes) = (1000, 3 << 20, 500);
    assert_eq!(now.current, b_bytes + c_bytes);
    assert_eq!(now.peak, a + b_bytes);
    assert_eq!(now.zeroed, b_bytes);
    assert_eq!(now.allocations, 3);
    assert!(now.cached >= 1000 && now.cached < 1400);
    reset_stats();
    let now = stats();
    assert_eq!((now.peak, now.allocations, now.zeroed), (b_bytes + c_bytes, 0, 0));
    drop((b, c));
    assert_eq!(stats().current, 0);
}

#[test]
fn the_limit_bounds_what_is_kept_and_stale_sizes_make_room() {
    let _turn = turn();
    let before = set_cache_limit(8 << 20);
    let blocks: Vec<Buffer> = (0..8).map(|_| get(2 << 20)).collect();
    drop(blocks);
    let kept = stats().cached;
    assert!(kept > 0 && kept <= 8 << 20, "{kept}");
    // Another size: the cache is emptied of the first one and then keeps the new one.
    for _ in 0..6 {
        let two = (get(3 << 20), get(3 << 20));
        drop(two);
    }
    let p = get(3 << 20).host_ptr().unwrap();
    assert_eq!(get(3 << 20).host_ptr().unwrap(), p);
    assert!(stats().cached <= 8 << 20);
    // Larger than the limit: never kept.
    let cached = stats().cached;
    drop(get(9 << 20));
    assert_eq!(stats().cached, cached);
    set_cache_limit(0);
    assert_eq!(stats().cached, 0);
    drop((get(100), get(1 << 20)));
    assert_eq!(stats().cached, 0);
    assert_eq!(set_cache_limit(before), 0);
}

#[test]
fn memory_that_cannot_be_had_is_an_error_and_changes_nothing() {
    let _turn = turn();
    for bytes in [usize::MAX, isize::MAX as usize, 1 << 62, (1 << 46) + 1, 1 << 46] {
        let e = allocate(bytes, Init::Zeroed).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::OutOfMemory);
        assert!(e.to_string().contains(&bytes.to_string()), "{e}");
    }
    assert_eq!((stats().current, stats().peak), (0, 0));
    assert_eq!(get(0).bytes(), 0);
}

#[test]
fn many_threads_allocate_exchange_and_free() {
    let _turn = turn();
    let shared: Vec<Mutex<Vec<(Buffer, u8)>>> = (0..4).map(|_| Mutex::new(Vec::new())).collect();
    let rounds = 3000;
    std::thread::scope(|s| {
        for t in 0..8usize {
            let shared = &shared;
            s.spawn(move || {
                let mut state = t * 77 + 1;
                for i in 0..rounds {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let bytes = 1 + (state >> 33) % [100, 5000, 60_000, 300_000][i % 4];
                    let b = get(bytes);
                    let mark = state as u8;
                    // SAFETY: the block has `bytes` bytes and is this thread's until it is handed on.
                    unsafe { b.host_ptr().unwrap().write_bytes(mark, bytes) };
                    let mut list = shared[(state >> 40) % 4].lock().unwrap();
                    list.push((b, mark));
                    if list.len() > 20 {
                        let (old, mark) = list.swap_remove((state >> 50) % 20);
                        drop(list);
                        // SAFETY: the block was written in full before it was handed on, and is this thread's now.
                        let bytes =
                            unsafe { std::slice::from_raw_parts(old.host_ptr().unwrap(), old.bytes()) };
                        assert!(bytes.iter().all(|&b| b == mark), "a block was handed out twice");
                    }
                }
            });
        }
    });
    assert_eq!(stats().allocations, 8 * rounds as u64);
    let live: usize = shared
        .iter()
        .flat_map(|l| l.lock().unwrap().iter().map(|(b, _)| b.bytes()).collect::<Vec<_>>())
        .sum();
    assert_eq!(stats().current, live as u64);
    drop(shared);
    assert_eq!(stats().current, 0);
    empty_cache();
    assert_eq!(stats().cached, 0);
}
