//! Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
//! as 1, 2, 3", SC 2011).
//!
//! The n-th number of a stream is a function of seed and n alone, so that any number of threads, in any order,
//! and any device give the same numbers. Everything here uses integer arithmetic and correctly rounded floating-
//! point operations only (`+ - * /`, `sqrt`), never a platform's math library: the bits are the same everywhere.

/// A stream of random numbers: the blocks of `key` from block `start` on.
///
/// A block is four 32-bit words. Element `i` of a stream of `f32` takes word `i % 4` of block `i / 4`, element `i`
/// of a stream of `f64` the 64-bit half `i % 2` of block `i / 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    /// The key, which is the generator's seed.
    pub key: u64,
    /// The counter of the stream's first block.
    pub start: u64,
}

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;
const LANES: usize = 16;

impl Philox {
    /// The stream of `key` from block `start` on.
    pub const fn new(key: u64, start: u64) -> Philox {
        Philox { key, start }
    }

    /// The block of a key at a counter, as Random123 numbers the words: the low word of each first.
    #[inline]
    pub const fn block(key: u64, counter: u128) -> [u32; 4] {
        let mut k = [key as u32, (key >> 32) as u32];
        let mut c = [counter as u32, (counter >> 32) as u32, (counter >> 64) as u32, (counter >> 96) as u32];
        let mut round = 0;
        while round < ROUNDS {
            let a = MULTIPLIERS[0] as u64 * c[0] as u64;
            let b = MULTIPLIERS[1] as u64 * c[2] as u64;
            c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
            k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
            round += 1;
        }
        c
    }

    // LANES blocks from block `i` of the stream on, round by round together, which compilers vectorise.
    #[allow(clippy::needless_range_loop)] // four arrays in step
    #[inline]
    fn blocks(&self, i: u64) -> [[u32; 4]; LANES] {
        let mut c = [[0u32; LANES]; 4];
        for lane in 0..LANES {
            let counter = self.start.wrapping_add(i).wrapping_add(lane as u64);
            (c[0][lane], c[1][lane]) = (counter as u32, (counter >> 32) as u32);
        }
        let mut k = [self.key as u32, (self.key >> 32) as u32];
        for _ in 0..ROUNDS {
            for lane in 0..LANES {
                let a = MULTIPLIERS[0] as u64 * c[0][lane] as u64;
                let b = MULTIPLIERS[1] as u64 * c[2][lane] as u64;
                c[0][lane] = (b >> 32) as u32 ^ c[1][lane] ^ k[0];
                c[2][lane] = (a >> 32) as u32 ^ c[3][lane] ^ k[1];
                (c[1][lane], c[3][lane]) = (b as u32, a as u32);
            }
            k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
        }
        std::array::from_fn(|lane| [c[0][lane], c[1][lane], c[2][lane], c[3][lane]])
    }

    /// Block `i` of the stream.
    #[inline]
    pub const fn nth_block(&self, i: u64) -> [u32; 4] {
        Philox::block(self.key, self.start.wrapping_add(i) as u128)
    }

    /// Word `i` of the stream.
    #[inline]
    pub const fn word(&self, i: u64) -> u32 {
        self.nth_block(i / 4)[(i % 4) as usize]
    }

    /// The 64-bit number `i` of the stream.
    #[inline]
    pub const fn word64(&self, i: u64) -> u64 {
        halves(self.nth_block(i / 2))[(i % 2) as usize]
    }

    /// The blocks that a stream of `n` elements takes: of `f32`, or with `wide` of `f64` and 64-bit integers.
    pub const fn blocks_for(n: u64, wide: bool) -> u64 {
        n.div_ceil(if wide { 2 } else { 4 })
    }

    /// Elements `first..` of the stream of `f32` uniform in [0, 1).
    pub fn uniform_f32(&self, first: u64, out: &mut [f32]) {
        self.fill(first, out, |block| block.map(unit_f32));
    }

    /// Elements `first..` of the stream of `f64` uniform in [0, 1).
    pub fn uniform_f64(&self, first: u64, out: &mut [f64]) {
        self.fill(first, out, |block| halves(block).map(unit_f64));
    }

    /// Elements `first..` of the stream of standard normal `f32`, each rounded from the `f64` value of its words.
    pub fn normal_f32(&self, first: u64, out: &mut [f32]) {
        self.fill(first, out, |[a, b, c, d]| {
            // (0, 1], so that the logarithm is finite; [0, 1) of a turn.
            let unit = |w: u32| (w as f64 + 1.0) / 4294967296.0;
            let turn = |w: u32| w as f64 / 4294967296.0;
            let ([x, y], [z, w]) = (box_muller(unit(a), turn(b)), box_muller(unit(c), turn(d)));
            [x as f32, y as f32, z as f32, w as f32]
        });
    }

    /// Elements `first..` of the stream of standard normal `f64`.
    pub fn normal_f64(&self, first: u64, out: &mut [f64]) {
        self.fill(first, out, |block| {
            let [a, b] = halves(block);
            box_muller(1.0 - unit_f64(a), unit_f64(b))
        });
    }

    /// Elements `first..` of the stream of integers uniform in `0..n` (0 for `n = 0`): the high half of a 64-bit
    /// word times `n`, whose bias is below 2^-64 * n.
    pub fn below(&self, n: u64, first: u64, out: &mut [u64]) {
        self.fill(first, out, |block| halves(block).map(|w| ((w as u128 * n as u128) >> 64) as u64));
    }

    // Writes elements `first..` of the stream in which a block gives N elements.
    #[inline(always)]
    fn fill<T: Copy, const N: usize>(&self, first: u64, out: &mut [T], of: impl Fn([u32; 4]) -> [T; N]) {
        let mut block = first / N as u64;
        let skip = (first % N as u64) as usize;
        let (head, body) = out.split_at_mut(if skip == 0 { 0 } else { out.len().min(N - skip) });
        if !head.is_empty() {
            head.copy_from_slice(&of(self.nth_block(block))[skip..skip + head.len()]);
            block = block.wrapping_add(1);
        }
        let mut many = body.chunks_exact_mut(N * LANES);
        for chunk in &mut many {
            for (to, b) in chunk.chunks_exact_mut(N).zip(self.blocks(block)) {
                to.copy_from_slice(&of(b));
            }
            block = block.wrapping_add(LANES as u64);
        }
        let mut whole = many.into_remainder().chunks_exact_mut(N);
        for chunk in &mut whole {
            chunk.copy_from_slice(&of(self.nth_block(block)));
            block = block.wrapping_add(1);
        }
        let tail = whole.into_remainder();
        if !tail.is_empty() {
            tail.copy_from_slice(&of(self.nth_block(block))[..tail.len()]);
        }
    }
}

#[inline]
const fn halves(b: [u32; 4]) -> [u64; 2] {
    [b[0] as u64 | (b[1] as u64) << 32, b[2] as u64 | (b[3] as u64) << 32]
}

/// 24 bits of a word as a number in [0, 1).
#[inline]
pub fn unit_f32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16777216.0)
}

/// 53 bits of a 64-bit word as a number in [0, 1).
#[inline]
pub fn unit_f64(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / 9007199254740992.0)
}

/// Two independent standard normal numbers from `u` in (0, 1] and `turn` in [0, 1) (Box and Muller, 1958).
#[inline]
pub fn box_muller(u: f64, turn: f64) -> [f64; 2] {
    let radius = (-2.0 * ln(u)).sqrt();
    let (sin, cos) = sin_cos_turn(turn);
    [radius * cos, radius * sin]
}

// The ratios of the series' terms for k = 1, 2, ...: 1 / (2k + 1), 1 / (2k (2k + 1)), 1 / ((2k - 1) 2k).
const ODD: [f64; 10] = ratios(0);
const SINE: [f64; 9] = ratios(1);
const COSINE: [f64; 9] = ratios(2);

const fn ratios<const N: usize>(series: usize) -> [f64; N] {
    let mut table = [0.0; N];
    let mut i = 0;
    while i < N {
        let k = (i + 1) as f64;
        let divisor = match series {
            0 => 2.0 * k + 1.0,
            1 => 2.0 * k * (2.0 * k + 1.0),
            _ => (2.0 * k - 1.0) * (2.0 * k),
        };
        table[i] = 1.0 / divisor;
        i += 1;
    }
    table
}

// The natural logarithm of a positive normal number: u = m * 2^e with m in [sqrt(1/2), sqrt(2)), ln m =
// 2 atanh((m - 1) / (m + 1)), whose series has converged after 11 terms ((m - 1) / (m + 1) <= 0.172).
#[inline]
fn ln(u: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8; // 33 bits of ln 2: times e exact
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let bits = u.to_bits();
    let mut e = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        e += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 0.0;
    for odd in ODD.iter().rev() {
        series = z * (odd + series);
    }
    let e = e as f64;
    e * LN2_HIGH + (2.0 * s + (2.0 * s * series + e * LN2_LOW))
}

// Sine and cosine of `turn` whole turns, 0 <= turn < 1: exact reduction to an eighth of a turn, then Taylor.
#[inline]
fn sin_cos_turn(turn: f64) -> (f64, f64) {
    let quarter = (turn * 4.0 + 0.5) as u32; // nearest quarter turn, 0..=4
    let x = (turn - quarter as f64 * 0.25) * std::f64::consts::TAU;
    let z = x * x;
    let (mut s, mut c) = (0.0, 0.0);
    // s = 1 - z/(2*3) (1 - z/(4*5) (...)), c = 1 - z/(1*2) (1 - z/(3*4) (...))
    for (sine, cosine) in SINE.iter().zip(&COSINE).rev() {
        s = z * sine * (1.0 - s);
        c = z * cosine * (1.0 - c);
    }
    let (s, c) = (x - x * s, 1.0 - c);
    match quarter % 4 {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors of Random123 for philox4x32 with 10 rounds.
    #[test]
    fn known_answers() {
        assert_eq!(Philox::block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(Philox::block(u64::MAX, u128::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        // Digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
        assert_eq!(
            Philox::block(0x299f_31d0_a409_3822, 0x0370_7344_1319_8a2e_85a3_08d3_243f_6a88),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn many_lanes_are_one_block_after_another() {
        let p = Philox::new(0x1234_5678_9abc_def0, u64::MAX - 5); // the counter wraps within the lanes
        for i in [0, 3, 1000] {
            let one_by_one: [[u32; 4]; LANES] = std::array::from_fn(|lane| p.nth_block(i + lane as u64));
            assert_eq!(p.blocks(i), one_by_one);
        }
    }

    #[test]
    fn logarithm() {
        let p = Philox::new(3, 0);
        let mut u = vec![0.0; 100_000];
        p.uniform_f64(0, &mut u);
        let small = (0..64).map(|e| 2f64.powi(-e));
        let edges =
            [std::f64::consts::FRAC_1_SQRT_2, 1.0 - f64::EPSILON / 2.0, 0.5f64.next_down(), f64::EPSILON];
        for v in u.into_iter().filter(|&v| v > 0.0).chain(small).chain(edges) {
            let (got, want) = (ln(v), v.ln());
            assert!((got - want).abs() <= 4e-16 * want.abs(), "ln({v}) = {got}, not {want}");
        }
    }

    #[test]
    fn sine_and_cosine() {
        for i in 0..100_000 {
            let turn = i as f64 / 100_000.0;
            let (s, c) = sin_cos_turn(turn);
            let (want_s, want_c) = (turn * std::f64::consts::TAU).sin_cos();
            assert!((s - want_s).abs() < 1e-15 && (c - want_c).abs() < 1e-15, "{turn}: {s} {c}");
            assert!((s * s + c * c - 1.0).abs() < 5e-16);
        }
        assert_eq!(sin_cos_turn(0.0), (0.0, 1.0));
        assert_eq!(sin_cos_turn(0.25), (1.0, 0.0));
        assert_eq!(sin_cos_turn(0.5), (0.0, -1.0));
        assert_eq!(sin_cos_turn(0.75), (-1.0, 0.0));
    }

    /// Bits that every platform must give: plain IEEE arithmetic in a fixed order (computed apart, in Python).
    #[test]
    fn first_numbers_of_seed_42() {
        let p = Philox::new(42, 0);
        let (mut u, mut n) = ([0f32; 6], [0f64; 3]);
        p.uniform_f32(0, &mut u);
        p.normal_f64(0, &mut n);
        assert_eq!(
            u.map(f32::to_bits),
            [1058859760, 1055910546, 1033239168, 1051624806, 1065147169, 1051161816]
        );
        assert_eq!(n.map(f64::to_bits), [0xbfe371e09f80c7de, 0x3fee46d16bfae948, 0xbfeb510d5acb221c]);
    }
}
