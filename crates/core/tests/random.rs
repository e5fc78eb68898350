//! Random streams and generators.

use rand_core::{Rng, SeedableRng};
use stridegrad_core::{Generator, GeneratorState, Philox, box_muller, unit_f32, unit_f64};

/// Element `i` is the same in whatever pieces a stream is written.
#[test]
fn any_piece_of_a_stream() {
    let p = Philox::new(9, 100);
    fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(write: impl Fn(u64, &mut [T])) {
        let mut whole = vec![T::default(); 300];
        write(0, &mut whole);
        for first in 0..10 {
            for len in [0, 1, 2, 3, 5, 8, 63, 64, 65, 131, 200] {
                let mut part = vec![T::default(); len];
                write(first as u64, &mut part);
                assert_eq!(part, whole[first..first + len], "{first}, {len}");
            }
        }
        let distinct = (1..300).filter(|&i| whole[i] != whole[i - 1]).count();
        assert!(distinct > 200);
    }
    check(|i, out| p.uniform_f32(i, out));
    check(|i, out| p.uniform_f64(i, out));
    check(|i, out| p.normal_f32(i, out));
    check(|i, out| p.normal_f64(i, out));
    check(|i, out| p.below(1000, i, out));
    let mut x = [0f32; 9];
    p.uniform_f32(0, &mut x);
    let words: Vec<f32> = (0..9).map(|i| unit_f32(p.word(i))).collect();
    assert_eq!(x[..], words);
    let mut y = [0f64; 5];
    p.uniform_f64(0, &mut y);
    let words: Vec<f64> = (0..5).map(|i| unit_f64(p.word64(i))).collect();
    assert_eq!(y[..], words);
}

#[test]
fn ranges() {
    assert_eq!((unit_f32(0), unit_f64(0)), (0.0, 0.0));
    assert_eq!(unit_f32(u32::MAX), 1f32.next_down());
    assert_eq!(unit_f64(u64::MAX), 1f64.next_down());
    // The corners of Box and Muller: u = 1 gives 0, the smallest u a finite number.
    assert!(box_muller(1.0, 0.3).iter().all(|v| *v == 0.0));
    let [x, y] = box_muller(1.0 / 9007199254740992.0, 0.0);
    assert!((x - 8.571).abs() < 1e-3 && y == 0.0, "{x} {y}");
    let p = Philox::new(1, 0);
    let mut few = [0; 1000];
    for n in [1u64, 2, 3, 10, u64::MAX] {
        p.below(n, 0, &mut few);
        assert!(few.iter().all(|&v| v < n));
    }
    p.below(3, 0, &mut few);
    assert!((0..3).all(|v| few.iter().filter(|&&x| x == v).count() > 280));
    p.below(0, 0, &mut few);
    assert!(few.iter().all(|&v| v == 0));
}

/// Mean, variance, skewness, kurtosis and tails, each within 5 standard errors; neighbours are uncorrelated.
#[test]
fn moments() {
    const N: usize = 1 << 20;
    let p = Philox::new(2024, 0);
    let se = 5.0 / (N as f64).sqrt();
    let mean = |x: &[f64], f: &dyn Fn(f64) -> f64| x.iter().map(|&v| f(v)).sum::<f64>() / N as f64;
    let pairs = |x: &[f64]| x.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / N as f64;

    let mut wide = vec![0f64; N];
    let mut narrow = vec![0f32; N];
    let as_wide = |x: &[f32]| x.iter().map(|&v| v as f64).collect::<Vec<_>>();
    p.uniform_f64(0, &mut wide);
    p.uniform_f32(0, &mut narrow);
    for x in [wide.clone(), as_wide(&narrow)] {
        let x: Vec<f64> = x.iter().map(|v| (v - 0.5) * 12f64.sqrt()).collect();
        assert!(mean(&x, &|v| v).abs() < se);
        assert!((mean(&x, &|v| v * v) - 1.0).abs() < se * 0.9);
        assert!(pairs(&x).abs() < se);
    }
    p.normal_f64(0, &mut wide);
    p.normal_f32(0, &mut narrow);
    for x in [wide, as_wide(&narrow)] {
        assert!(mean(&x, &|v| v).abs() < se);
        assert!((mean(&x, &|v| v * v) - 1.0).abs() < se * 2f64.sqrt());
        assert!(mean(&x, &|v| v * v * v).abs() < se * 15f64.sqrt());
        assert!((mean(&x, &|v| v.powi(4)) - 3.0).abs() < se * 96f64.sqrt());
        assert!(pairs(&x).abs() < se);
        // P(|x| > 2) = 0.0455, P(|x| > 4) = 6.33e-5.
        let beyond = |t: f64| mean(&x, &|v| f64::from(v.abs() > t));
        assert!((beyond(2.0) - 0.0455003).abs() < se * 0.21);
        assert!((beyond(4.0) - 6.334e-5).abs() < se * 0.008);
    }
}

#[test]
fn generators_continue_and_start_over() {
    let g = Generator::new(5);
    assert_eq!((g.seed(), g.state()), (5, GeneratorState { seed: 5, offset: 0 }));
    let first = g.stream(5, false); // two blocks
    let second = g.stream(5, true); // three
    assert_eq!((first.start, second.start, g.state().offset), (0, 2, 20));
    assert_eq!((first.key, g.reserve(0).start), (5, 5));
    // Clones and threads share the position.
    let saved = g.state();
    let other = g.clone();
    let taken = std::thread::spawn(move || other.reserve(7)).join().unwrap();
    assert_eq!((taken.start, g.reserve(1).start), (5, 12));
    // A saved state gives the same numbers again, in the same generator and in another one.
    g.set_state(saved);
    assert_eq!(g.reserve(7), taken);
    assert_eq!(Generator::from_state(saved).reserve(7), taken);
    g.manual_seed(6);
    assert_eq!(g.reserve(1), Philox::new(6, 0));
}

#[test]
fn implements_rands_traits() {
    let mut g = Generator::seed_from_u64(11);
    let words: Vec<u32> = (0..5).map(|_| g.next_u32()).collect();
    let p = Philox::new(11, 0);
    assert_eq!(words, (0..5).map(|i| p.word(i)).collect::<Vec<_>>());
    assert_eq!(g.next_u64(), u64::from(p.word(5)) | u64::from(p.word(6)) << 32);
    let mut bytes = [0; 6];
    g.fill_bytes(&mut bytes);
    assert_eq!(bytes[..4], p.word(7).to_le_bytes());
    assert_eq!(bytes[4..], p.word(8).to_le_bytes()[..2]);
    // A tensor drawn next starts at a whole block, past the words taken.
    assert_eq!(g.reserve(1).start, 3);
    let mut same = Generator::from_seed(11u64.to_le_bytes());
    assert_eq!(same.next_u32(), words[0]);
}
