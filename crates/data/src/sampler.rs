//! The order in which a dataset is walked.

use std::ops::Range;

use stridegrad_core::Philox;

/// The order of the examples in each epoch: a function of length, seed and epoch alone, on every machine.
///
/// ```
/// use stridegrad_data::Sampler;
/// let sampler = Sampler::shuffled(10, 7);
/// assert_eq!(sampler.order(3), sampler.order(3));
/// assert_ne!(sampler.order(3), sampler.order(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampler {
    len: usize,
    seed: Option<u64>,
}

impl Sampler {
    /// `0..len`, in every epoch.
    pub fn sequential(len: usize) -> Sampler {
        Sampler { len, seed: None }
    }

    /// A random permutation of `0..len`, another one each epoch.
    pub fn shuffled(len: usize, seed: u64) -> Sampler {
        Sampler { len, seed: Some(seed) }
    }

    /// The order in epoch `epoch`.
    pub fn order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len).collect();
        if let Some(seed) = self.seed {
            // Fisher and Yates, from the top. Number i of epoch e is at counter e * 2^64 + i: epochs never share one.
            for i in (1..self.len).rev() {
                let [a, b, ..] = Philox::block(seed, u128::from(epoch) << 64 | i as u128);
                let word = u64::from(a) | u64::from(b) << 32;
                let below = (u128::from(word) * (i as u128 + 1)) >> 64;
                order.swap(i, below as usize);
            }
        }
        order
    }
}

/// How an epoch is cut into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batches {
    pub len: usize,
    pub size: usize,
    pub drop_last: bool,
}

impl Batches {
    /// The number of batches.
    pub fn count(self) -> usize {
        if self.drop_last { self.len / self.size } else { self.len.div_ceil(self.size) }
    }

    /// Which part of the order batch `i` takes.
    pub fn range(self, i: usize) -> Range<usize> {
        let start = i * self.size;
        start..(start + self.size).min(self.len)
    }
}
