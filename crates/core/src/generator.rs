//! Generators: the seed and position that random ops draw from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Philox;

/// Where a [`Generator`] stands: enough to continue it bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GeneratorState {
    /// The seed.
    pub seed: u64,
    /// The 32-bit words drawn since seeding.
    pub offset: u64,
}

/// A source of random numbers, shared by its clones and by threads.
///
/// A random op reserves as many blocks as it needs and computes its numbers from the [`Philox`] stream that it
/// gets: the numbers depend on the seed and on the order of the draws, never on threads or device. Implements
/// rand's `Rng` and `SeedableRng`.
///
/// ```
/// use stridegrad_core::Generator;
/// let g = Generator::new(7);
/// let stream = g.reserve(4);
/// let mut x = [0.0; 16];
/// stream.uniform_f32(0, &mut x);
/// assert!(x.iter().all(|v| (0.0..1.0).contains(v)));
/// ```
#[derive(Clone, Debug)]
pub struct Generator(Arc<Mutex<GeneratorState>>);

impl Generator {
    /// A generator at the start of `seed`'s numbers.
    pub fn new(seed: u64) -> Generator {
        Generator::from_state(GeneratorState { seed, offset: 0 })
    }

    /// A generator that continues from a saved state.
    pub fn from_state(state: GeneratorState) -> Generator {
        Generator(Arc::new(Mutex::new(state)))
    }

    // The state is two numbers, whole at all times: a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, GeneratorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts over from `seed`, for all clones.
    pub fn manual_seed(&self, seed: u64) {
        self.set_state(GeneratorState { seed, offset: 0 });
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.lock().seed
    }

    /// The state, to save.
    pub fn state(&self) -> GeneratorState {
        *self.lock()
    }

    /// Continues from a saved state, for all clones.
    pub fn set_state(&self, state: GeneratorState) {
        *self.lock() = state;
    }

    /// Takes `blocks` blocks of four words, from the next whole block on.
    pub fn reserve(&self, blocks: u64) -> Philox {
        let mut state = self.lock();
        let first = state.offset.div_ceil(4);
        state.offset = first.wrapping_add(blocks).wrapping_mul(4);
        Philox::new(state.seed, first)
    }

    /// The stream for `n` elements: of `f32`, or with `wide` of `f64` and 64-bit integers.
    pub fn stream(&self, n: usize, wide: bool) -> Philox {
        self.reserve(Philox::blocks_for(n as u64, wide))
    }

    // The next word.
    fn word(&self) -> u32 {
        let mut state = self.lock();
        let at = state.offset;
        state.offset = at.wrapping_add(1);
        Philox::new(state.seed, 0).word(at)
    }
}

impl rand_core::TryRng for Generator {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        rand_core::utils::next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Self::Error> {
        rand_core::utils::fill_bytes_via_next_word(dst, || self.try_next_u32())
    }
}

impl rand_core::SeedableRng for Generator {
    type Seed = [u8; 8];

    fn from_seed(seed: [u8; 8]) -> Generator {
        Generator::new(u64::from_le_bytes(seed))
    }

    fn seed_from_u64(seed: u64) -> Generator {
        Generator::new(seed)
    }
}
