//! The loader: order, workers, errors, panics, resuming.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use stridegrad_core::{Error, ErrorKind, Result};
use stridegrad_data::{DataLoader, Dataset, Sampler};

/// Batches are their own indices; `fault` fails or panics at one example.
struct Numbers {
    len: usize,
    fault: Option<(usize, Fault)>,
    made: Arc<AtomicUsize>,
    slow_at: Option<usize>,
}

#[derive(Clone, Copy)]
enum Fault {
    Error,
    Panic,
}

impl Numbers {
    fn new(len: usize) -> Numbers {
        Numbers { len, fault: None, made: Arc::default(), slow_at: None }
    }
}

impl Dataset for Numbers {
    type Batch = Vec<usize>;

    fn len(&self) -> usize {
        self.len
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<usize>> {
        self.made.fetch_add(1, Ordering::SeqCst);
        if self.slow_at.is_some_and(|at| indices.contains(&at)) {
            std::thread::sleep(Duration::from_millis(30));
        }
        match self.fault {
            Some((at, Fault::Error)) if indices.contains(&at) => {
                Err(Error::new(ErrorKind::Argument, "test", "a bad example"))
            }
            Some((at, Fault::Panic)) if indices.contains(&at) => panic!("example {at} is rotten"),
            _ => Ok(indices.to_vec()),
        }
    }
}

fn epoch(loader: &DataLoader<Numbers>, n: u64) -> Vec<Vec<usize>> {
    loader.epoch(n).collect::<Result<_>>().unwrap()
}

#[test]
fn workers_never_change_the_batches() {
    for len in [0, 1, 7, 8, 9, 64] {
        for drop_last in [false, true] {
            let make = |workers, ahead| {
                let loader = DataLoader::new(Numbers::new(len)).batch_size(4).shuffle(7).drop_last(drop_last);
                loader.workers(workers).prefetch(ahead)
            };
            let alone = make(0, 1);
            assert_eq!(alone.len(), if drop_last { len / 4 } else { len.div_ceil(4) });
            for n in [0, 1, 5] {
                let want = epoch(&alone, n);
                assert_eq!(want.len(), alone.len());
                for workers in [1, 2, 3, 20] {
                    for ahead in [1, 2, 5] {
                        assert_eq!(epoch(&make(workers, ahead), n), want);
                    }
                }
            }
        }
    }
}

#[test]
fn a_slow_worker_does_not_change_the_order() {
    let slow = Numbers { slow_at: Some(0), ..Numbers::new(40) };
    let loader = DataLoader::new(slow).batch_size(3).workers(3);
    assert_eq!(epoch(&loader, 0).concat(), (0..40).collect::<Vec<_>>());
}

#[test]
fn epochs_are_permutations_and_differ() {
    let loader = DataLoader::new(Numbers::new(100)).batch_size(7).shuffle(3);
    let mut seen = Vec::new();
    for n in 0..4 {
        let order = epoch(&loader, n).concat();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        assert!(!seen.contains(&order));
        seen.push(order);
    }
    assert_eq!(epoch(&loader, 2).concat(), seen[2]);
    let other = DataLoader::new(Numbers::new(100)).batch_size(7).shuffle(4);
    assert_ne!(epoch(&other, 0).concat(), seen[0]);
}

#[test]
fn resumes_in_the_middle_of_an_epoch() {
    for workers in [0, 2] {
        let loader = DataLoader::new(Numbers::new(50)).batch_size(4).shuffle(1).workers(workers);
        let whole = epoch(&loader, 6);
        let mut half = loader.epoch(6);
        for want in &whole[..5] {
            assert_eq!(&half.next().unwrap().unwrap(), want);
        }
        let rest: Result<Vec<_>> = loader.epoch_from(6, half.position()).collect();
        assert_eq!(rest.unwrap(), whole[5..]);
        assert_eq!(loader.epoch_from(6, 99).count(), 0);
    }
}

#[test]
fn an_error_comes_in_its_place_and_ends_the_epoch() {
    for workers in [0, 1, 3] {
        let bad = Numbers { fault: Some((10, Fault::Error)), ..Numbers::new(40) };
        let mut epoch = DataLoader::new(bad).batch_size(4).workers(workers).epoch(0);
        assert_eq!(epoch.next().unwrap().unwrap(), [0, 1, 2, 3]);
        assert_eq!(epoch.next().unwrap().unwrap(), [4, 5, 6, 7]);
        assert_eq!(epoch.next().unwrap().unwrap_err().kind(), ErrorKind::Argument);
        assert!(epoch.next().is_none());
    }
}

#[test]
fn a_panic_in_a_worker_becomes_an_error() {
    for workers in [1, 3] {
        let bad = Numbers { fault: Some((10, Fault::Panic)), ..Numbers::new(40) };
        let mut epoch = DataLoader::new(bad).batch_size(4).workers(workers).epoch(0);
        assert!(epoch.next().unwrap().is_ok() && epoch.next().unwrap().is_ok());
        let e = epoch.next().unwrap().unwrap_err();
        assert!(e.to_string().contains("example 10 is rotten"), "{e}");
        assert!(epoch.next().is_none());
    }
}

#[test]
fn dropping_an_epoch_stops_its_workers() {
    let numbers = Numbers::new(100_000);
    let made = numbers.made.clone();
    let loader = DataLoader::new(numbers).workers(2).prefetch(3);
    let mut epoch = loader.epoch(0);
    epoch.next().unwrap().unwrap();
    drop(epoch);
    // All threads are joined: nothing is made any more, and what was made is bounded by the channels.
    let after = made.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(made.load(Ordering::SeqCst), after);
    assert!(after <= 2 * 4 + 2, "{after} batches for one");
}

#[test]
fn map_runs_on_the_workers() {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let seen = threads.clone();
    let loader = DataLoader::new(Numbers::new(6)).batch_size(2).workers(1).map(move |b| {
        seen.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
        Ok(b.iter().sum::<usize>())
    });
    assert_eq!(loader.epoch(0).collect::<Result<Vec<_>>>().unwrap(), [1, 5, 9]);
    assert!(threads.lock().unwrap().iter().all(|n| n.as_deref() == Some("stridegrad-data")));
}

#[test]
#[should_panic(expected = "a batch size of 0")]
fn empty_batches_are_refused() {
    let _ = DataLoader::new(Numbers::new(1)).batch_size(0);
}

/// Each value should come to each place about equally often: chi-squared over 8! orders would be too fine, one
/// over the 64 (value, place) pairs is not.
#[test]
fn shuffles_are_uniform() {
    const N: usize = 8;
    const EPOCHS: u64 = 8_000;
    let sampler = Sampler::shuffled(N, 42);
    let mut counts = [[0f64; N]; N];
    for e in 0..EPOCHS {
        sampler.order(e).iter().enumerate().for_each(|(place, &v)| counts[v][place] += 1.0);
    }
    let want = EPOCHS as f64 / N as f64;
    let chi2: f64 = counts.iter().flatten().map(|c| (c - want).powi(2) / want).sum();
    // 49 degrees of freedom: the mean is 49, and 100 is beyond the 99.99% quantile.
    assert!(chi2 < 100.0, "chi-squared {chi2}");
}

#[test]
fn the_order_never_changes_between_versions() {
    assert_eq!(Sampler::shuffled(8, 7).order(0), [5, 6, 0, 1, 4, 2, 7, 3]);
    assert_eq!(Sampler::sequential(3).order(9), [0, 1, 2]);
}

proptest! {
    #[test]
    fn any_order_is_a_permutation(len in 0usize..200, seed in any::<u64>(), epoch in any::<u64>()) {
        let mut order = Sampler::shuffled(len, seed).order(epoch);
        order.sort_unstable();
        prop_assert_eq!(order, (0..len).collect::<Vec<_>>());
    }
}
