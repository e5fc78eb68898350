use super::*;
use crate::isa::{Isa, with_isa};
use ::half::{bf16, f16};

/// A buffer in which a matrix of any strides lies somewhere in the middle, with guards around it.
struct Placed<T> {
    data: Vec<T>,
    base: isize,
    rs: isize,
    cs: isize,
}

impl<T: Copy> Placed<T> {
    fn new(rows: usize, cols: usize, (rs, cs): (isize, isize), value: impl Fn(usize) -> T) -> Self {
        let span = |n: usize, s: isize| (n.max(1) as isize - 1) * s;
        let low = span(rows, rs).min(0) + span(cols, cs).min(0);
        let high = span(rows, rs).max(0) + span(cols, cs).max(0);
        let data = (0..(high - low) as usize + 1).map(value).collect();
        Placed { data, base: -low, rs, cs }
    }
    fn mat(&self) -> Mat<T> {
        Mat::new(self.data.as_ptr().wrapping_offset(self.base), self.rs, self.cs)
    }
    fn mat_mut(&mut self) -> MatMut<T> {
        MatMut::new(self.data.as_mut_ptr().wrapping_offset(self.base), self.rs, self.cs)
    }
    fn at(&self, i: usize, j: usize) -> T {
        self.data[(self.base + i as isize * self.rs + j as isize * self.cs) as usize]
    }
}

fn value(i: usize) -> f64 {
    ((i * 7919 + 13) % 101) as f64 / 50.0 - 1.0
}

type Strides = (isize, isize);
/// From and to f64.
type Conversions<T> = (fn(f64) -> T, fn(T) -> f64);

fn check<T: Float>(
    (m, n, k): (usize, usize, usize),
    [sa, sb, sc]: [Strides; 3],
    accumulate: bool,
    (from, to): Conversions<T>,
    eps: f64,
) {
    let a = Placed::new(m, k, sa, |i| from(value(i)));
    let b = Placed::new(k, n, sb, |i| from(value(i + 55)));
    let mut c = Placed::new(m, n, sc, |i| from(value(i + 7)));
    let before = c.data.clone();
    let start = Placed::new(m, n, sc, |i| from(value(i + 7)));
    // SAFETY: the buffers hold what the strides name.
    unsafe { gemm((m, n, k), a.mat(), b.mat(), c.mat_mut(), accumulate) };
    let mut written = vec![false; c.data.len()];
    for i in 0..m {
        for j in 0..n {
            let mut want = if accumulate { to(start.at(i, j)) } else { 0.0 };
            let mut size = want.abs();
            for kk in 0..k {
                let x = to(a.at(i, kk)) * to(b.at(kk, j));
                want += x;
                size += x.abs();
            }
            let got = to(c.at(i, j));
            assert!(
                (got - want).abs() <= eps * (size + 1.0) * ((k + 1) as f64).sqrt(),
                "{m}x{n}x{k} strides {sa:?} {sb:?} {sc:?} at {i},{j}: {got} for {want}"
            );
            written[(c.base + i as isize * sc.0 + j as isize * sc.1) as usize] = true;
        }
    }
    for (i, w) in written.iter().enumerate() {
        assert!(*w || c.data[i] == before[i], "wrote outside C at {i}");
    }
}

fn both(dims: (usize, usize, usize), strides: [Strides; 3], accumulate: bool) {
    check::<f32>(dims, strides, accumulate, (|x| x as f32, f64::from), 3e-7);
    check::<f64>(dims, strides, accumulate, (|x| x, |x| x), 1e-15);
}

fn on_every_isa(f: impl Fn()) {
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        with_isa(isa, &f);
    }
}

/// Layouts of an r x c matrix.
fn layouts(r: usize, c: usize) -> Vec<Strides> {
    let (r, c) = (r.max(1) as isize, c.max(1) as isize);
    vec![(c, 1), (1, r), (c + 3, 1), (2 * c, 2), (-c, 1), (c, -1), (-2, -2 * r)]
}

#[test]
fn every_layout_on_every_isa() {
    on_every_isa(|| {
        for dims @ (m, n, k) in [(5, 7, 3), (16, 33, 20), (40, 70, 19)] {
            let (la, lb, lc) = (layouts(m, k), layouts(k, n), layouts(m, n));
            for (i, &a) in la.iter().enumerate() {
                for (j, &b) in lb.iter().enumerate() {
                    let l = (i + 2 * j) % lc.len();
                    both(dims, [a, b, lc[l]], (i + j) % 2 == 1);
                }
            }
        }
    });
}

#[test]
fn sizes_around_every_edge() {
    on_every_isa(|| {
        for m in [1, 2, 3, 4, 6, 7, 12, 13, 14, 15, 28, 29, 57] {
            for n in [1, 2, 4, 8, 15, 16, 17, 31, 32, 33, 65] {
                for k in [1, 2, 9, 65] {
                    let rm = [(k as isize, 1), (n as isize, 1), (n as isize, 1)];
                    both((m, n, k), rm, false);
                }
            }
        }
    });
}

#[test]
fn blocks_of_k_and_n_and_split_k() {
    on_every_isa(|| {
        for (m, n, k) in
            [(30, 40, 700), (3, 2100, 300), (130, 4200, 20), (6, 5, 5000), (70, 33, 4500), (1, 1, 9000)]
        {
            let (kk, nn, mm) = (k as isize, n as isize, m as isize);
            both((m, n, k), [(kk, 1), (nn, 1), (nn, 1)], false);
            both((m, n, k), [(1, mm), (1, kk), (1, mm)], true);
            both((m, n, k), [(kk, 1), (1, kk), (2 * nn, 2)], true);
        }
    });
}

#[test]
fn zero_strides_repeat() {
    on_every_isa(|| {
        for dims in [(9, 40, 20), (40, 9, 300), (1, 5, 7)] {
            let c = (dims.1 as isize, 1);
            for a in [(0, 1), (1, 0), (0, 0)] {
                for b in [(0, 1), (1, 0), (0, 0)] {
                    both(dims, [a, b, c], false);
                }
            }
        }
    });
}

#[test]
fn empty_sizes() {
    both((0, 5, 3), [(3, 1), (5, 1), (5, 1)], false);
    both((5, 0, 3), [(3, 1), (1, 1), (1, 1)], false);
    both((5, 4, 0), [(1, 1), (4, 1), (4, 1)], false);
    both((5, 4, 0), [(1, 1), (4, 1), (4, 1)], true);
}

#[test]
fn same_bits_for_any_number_of_threads() {
    for (m, n, k) in [(200, 300, 400), (64, 576, 9000), (1000, 10, 84), (7, 3000, 900)] {
        let a: Vec<f32> = (0..m * k).map(|i| value(i) as f32).collect();
        let b: Vec<f32> = (0..n * k).map(|i| value(i + 5) as f32).collect();
        let run = || {
            let mut c = vec![0f32; m * n];
            // SAFETY: row-major matrices of these sizes.
            unsafe {
                let (a, b) = (Mat::new(a.as_ptr(), k as isize, 1), Mat::new(b.as_ptr(), n as isize, 1));
                gemm((m, n, k), a, b, MatMut::new(c.as_mut_ptr(), n as isize, 1), false)
            };
            c
        };
        let pool = |t: usize| rayon::ThreadPoolBuilder::new().num_threads(t).build().unwrap();
        let one = pool(1).install(run);
        for t in [2, 3, 8] {
            assert!(pool(t).install(run).iter().zip(&one).all(|(x, y)| x.to_bits() == y.to_bits()));
        }
    }
}

#[test]
fn batches() {
    let (m, n, k) = (5, 6, 7);
    let a: Vec<f64> = (0..4 * m * k).map(value).collect();
    let b: Vec<f64> = (0..3 * n * k).map(|i| value(i + 3)).collect();
    // 4 x 3 grid: A varies along the first, B along the second; C is written backwards along the first.
    let mut c = vec![0f64; 12 * m * n];
    let mn = (m * n) as isize;
    // SAFETY: the grid lies within the buffers.
    unsafe {
        gemm_batched(
            &[4, 3],
            [&[(m * k) as isize, 0], &[0, (k * n) as isize], &[-3 * mn, mn]],
            (m, n, k),
            Mat::new(a.as_ptr(), k as isize, 1),
            Mat::new(b.as_ptr(), n as isize, 1),
            MatMut::new(c.as_mut_ptr().offset(9 * mn), n as isize, 1),
            false,
        )
    };
    for g in 0..4 {
        for h in 0..3 {
            for i in 0..m {
                for j in 0..n {
                    let want: f64 = (0..k).map(|kk| a[(g * m + i) * k + kk] * b[(h * k + kk) * n + j]).sum();
                    let got = c[((3 - g) * 3 + h) * m * n + i * n + j];
                    assert!((got - want).abs() < 1e-12);
                }
            }
        }
    }
    // One taller matrix, and an empty grid.
    let mut c = vec![0f64; 4 * m * n];
    // SAFETY: as above.
    unsafe {
        let (am, bm) = (Mat::new(a.as_ptr(), k as isize, 1), Mat::new(b.as_ptr(), n as isize, 1));
        let cm = MatMut::new(c.as_mut_ptr(), n as isize, 1);
        gemm_batched(&[4], [&[(m * k) as isize], &[0], &[mn]], (m, n, k), am, bm, cm, false);
        gemm_batched(&[0], [&[1], &[1], &[1]], (m, n, k), am, bm, cm, false);
    }
    for i in 0..4 * m {
        for j in 0..n {
            let want: f64 = (0..k).map(|kk| a[i * k + kk] * b[kk * n + j]).sum();
            assert!((c[i * n + j] - want).abs() < 1e-12);
        }
    }
}

#[test]
fn integers_wrap() {
    let a = Placed::new(4, 5, (5, 1), |i| i as i64 - 7);
    let b = Placed::new(5, 3, (1, 5), |i| if i == 3 { i64::MAX } else { i as i64 * 3 - 11 });
    let mut c = Placed::new(4, 3, (-3, 1), |i| i as i64);
    let start = Placed::new(4, 3, (-3, 1), |i| i as i64);
    for accumulate in [true, false] {
        // SAFETY: the buffers hold what the strides name.
        unsafe { gemm_i64((4, 3, 5), a.mat(), b.mat(), c.mat_mut(), accumulate) };
        for i in 0..4 {
            for j in 0..3 {
                let first = if accumulate { start.at(i, j) } else { 0 };
                let want = (0..5).fold(first, |s, kk| s.wrapping_add(a.at(i, kk).wrapping_mul(b.at(kk, j))));
                assert_eq!(c.at(i, j), want);
            }
        }
    }
}

fn half_is_right<H: HalfElement>(from: fn(f32) -> H, to: fn(H) -> f32) {
    for (m, n, k) in [(3, 5, 300), (33, 40, 700), (2, 2, 0), (0, 3, 4)] {
        let a = Placed::new(m, k, (1, m.max(1) as isize), |i| from(value(i) as f32));
        let b = Placed::new(k, n, (-(n as isize), 1), |i| from(value(i + 9) as f32));
        let mut c = Placed::new(m, n, (2 * n as isize, 2), |i| from(value(i) as f32));
        let start = Placed::new(m, n, (2 * n as isize, 2), |i| from(value(i) as f32));
        // SAFETY: the buffers hold what the strides name.
        unsafe { gemm_half((m, n, k), a.mat(), b.mat(), c.mat_mut(), true) };
        for i in 0..m {
            for j in 0..n {
                let mut want = f64::from(to(start.at(i, j)));
                let mut size = 1.0;
                for kk in 0..k {
                    let x = f64::from(to(a.at(i, kk))) * f64::from(to(b.at(kk, j)));
                    want += x;
                    size += x.abs();
                }
                // One rounding of the result, besides the f32 sum: compare through the type's own rounding.
                let (lo, hi) = ((want - 1e-6 * size) as f32, (want + 1e-6 * size) as f32);
                let got = to(c.at(i, j));
                assert!(to(from(lo)) <= got && got <= to(from(hi)), "{got} for {want}");
            }
        }
    }
}

#[test]
fn halves_round_once() {
    half_is_right::<f16>(f16::from_f32, f16::to_f32);
    half_is_right::<bf16>(bf16::from_f32, bf16::to_f32);
}
