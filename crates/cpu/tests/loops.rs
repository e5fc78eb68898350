//! Elementwise ops, copies, fills and reductions against naive index loops, over layouts, dtypes, instruction sets
//! and numbers of threads.
#![forbid(unsafe_code)]

mod common;
use common::*;
use stridegrad_core::kernel::ReduceKernel;
use stridegrad_core::{Array, DType, Device, Layout, Scalar, exec};

stridegrad_cpu::map_kernel! {
    static SUB("sub") = |[a, b], []| a - b;
    static AXPY("axpy") = |[x, y], [a]| a * x + y;
    static RELU("relu") = |[x], []| x.max(E::lit(0.0));
    static EXP("exp") = |[x], []| x.exp();
    static LT("lt") = |[a, b], []| E::from_mask(a.lt(b));
    static WHERE("where") = |[c, a, b], []| E::select(c.ne(E::lit(0.0)), a, b);
    static SEVEN("seven") = |[], []| E::lit(7.0);
}
stridegrad_cpu::reduce_kernel! {
    static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
    static AMAX("amax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
    static PROD("prod", identity: 1.0, int: 1) = |a, b| a * b;
}

const SHAPES: &[&[usize]] =
    &[&[], &[1], &[7], &[0, 3], &[2, 3, 4], &[5, 1, 7], &[40, 50], &[3, 70, 3], &[2, 3, 2, 5, 3], &[1025]];
const LARGE: &[&[usize]] = &[&[100_003], &[300, 301], &[17, 33, 129], &[2, 40_000], &[40_000, 2]];

fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

#[test]
fn binary_ops_over_pairs_of_layouts() {
    let mut rng = Rng::new(1);
    for &sizes in SHAPES.iter().chain(LARGE) {
        let (x, y) = (rng.values(numel(sizes)), rng.values(numel(sizes)));
        let want: Vec<f64> = x.iter().zip(&y).map(|(a, b)| a - b).collect();
        let small = numel(sizes) < 5000;
        for (i, (ln, l)) in layouts(sizes).into_iter().enumerate() {
            let a = array(l, DType::F32, &x);
            for (j, (mn, m)) in layouts(sizes).into_iter().enumerate() {
                if !small && (i + j) % 3 != 0 {
                    continue;
                }
                let b = array(m, DType::F32, &y);
                let c = exec::map(&SUB, DType::F32, &[], DType::F32, &[&a, &b]).unwrap();
                assert_eq!(values(&c), want, "{sizes:?} {ln} {mn}");
            }
        }
    }
}

#[test]
fn every_dtype_and_mixtures() {
    let mut rng = Rng::new(2);
    let sizes = [6, 35, 9];
    let (x, y) = (rng.values(numel(&sizes)), rng.values(numel(&sizes)));
    for dtype in DType::ALL {
        let (x, y): (Vec<f64>, Vec<f64>) =
            (x.iter().map(|&v| rounded(dtype, v)).collect(), y.iter().map(|&v| rounded(dtype, v)).collect());
        let want: Vec<f64> = match dtype {
            DType::U8 => x.iter().zip(&y).map(|(a, b)| (*a as u8).wrapping_sub(*b as u8) as f64).collect(),
            _ => x.iter().zip(&y).map(|(a, b)| rounded(dtype, a - b)).collect(),
        };
        for (name, l) in layouts(&sizes) {
            let (a, b) = (array(l, dtype, &x), array(l, dtype, &y));
            let c = exec::map(&SUB, dtype, &[], dtype, &[&a, &b]).unwrap();
            assert_eq!(values(&c), want, "{dtype} {name}");
            // A comparison of this dtype with another one, to bool, computed in f64.
            let z = array(l, DType::F16, &y);
            let c = exec::map(&LT, DType::F64, &[], DType::Bool, &[&a, &z]).unwrap();
            let lt: Vec<f64> = x.iter().zip(values(&z)).map(|(a, b)| (*a < b) as u8 as f64).collect();
            assert_eq!(values(&c), lt, "{dtype} {name}");
        }
    }
}

#[test]
fn broadcasts_scalars_and_parameters() {
    let mut rng = Rng::new(3);
    for (sizes, other) in [
        (vec![4, 5, 6], vec![6]),
        (vec![4, 5, 6], vec![5, 1]),
        (vec![4, 5, 6], vec![4, 1, 1]),
        (vec![4, 5, 6], vec![]),
        (vec![300, 3], vec![3]),
        (vec![300, 3], vec![300, 1]),
        (vec![8, 20, 1200], vec![20, 1]),
        (vec![70_000], vec![1]),
    ] {
        let (x, y) = (rng.values(numel(&sizes)), rng.values(numel(&other)));
        let small = Layout::contiguous(&other).unwrap();
        let wide = small.broadcast_to(&sizes).unwrap();
        let at: Vec<usize> = wide.offsets().collect();
        for (name, l) in layouts(&sizes) {
            for dtype in [DType::F32, DType::BF16, DType::I32] {
                let round = |v: f64| rounded(dtype, v);
                let (a, b) = (array(l, dtype, &x), array(small, dtype, &y));
                let c = exec::map(&AXPY, dtype, &[Scalar::Int(3)], dtype, &[&a, &b]).unwrap();
                let want: Vec<f64> =
                    x.iter().zip(&at).map(|(&x, &i)| round(3.0 * round(x) + round(y[i]))).collect();
                assert_eq!(values(&c), want, "{sizes:?} {other:?} {name} {dtype}");
            }
        }
    }
    let seven =
        exec::map_with_layout(&SEVEN, DType::F32, &[], DType::I16, Layout::contiguous(&[3, 4]).unwrap(), &[]);
    // No operand says on which device: the CPU's.
    assert_eq!(values(&seven.unwrap()), [7.0; 12]);
}

#[test]
fn in_place_on_the_same_elements_and_beside_them() {
    let mut rng = Rng::new(4);
    for &sizes in SHAPES.iter().chain(LARGE) {
        let (x, y) = (rng.values(numel(sizes)), rng.values(numel(sizes)));
        for (name, l) in layouts(sizes) {
            for dtype in [DType::F32, DType::F16] {
                let a = array(l, dtype, &x);
                let b = array(Layout::contiguous(sizes).unwrap(), dtype, &y);
                let mut want = storage(&a);
                for (i, o) in l.offsets().enumerate() {
                    want[o] = rounded(dtype, y[i] - rounded(dtype, x[i]));
                }
                exec::map_into(&SUB, dtype, &[], &a, &[&b, &a]).unwrap();
                assert_eq!(storage(&a), want, "{sizes:?} {name}");
            }
        }
    }
    // Columns of one array, interleaved.
    let both = rng.values(2 * 5000);
    let base = array(Layout::contiguous(&[5000, 2]).unwrap(), DType::F32, &both);
    let even = base.with_layout(Layout::new(&[5000], &[2], 0).unwrap()).unwrap();
    let odd = base.with_layout(Layout::new(&[5000], &[2], 1).unwrap()).unwrap();
    exec::map_into(&SUB, DType::F32, &[], &even, &[&even, &odd]).unwrap();
    let got = storage(&base);
    for i in 0..5000 {
        assert_eq!((got[2 * i], got[2 * i + 1]), (both[2 * i] - both[2 * i + 1], both[2 * i + 1]));
    }
}

#[test]
fn writing_into_layouts_leaves_the_rest_alone() {
    let mut rng = Rng::new(5);
    for &sizes in SHAPES {
        let x = rng.values(numel(sizes));
        for (name, l) in layouts(sizes) {
            for (other, m) in layouts(sizes) {
                for dtype in [DType::F32, DType::I8] {
                    let out = array(l, dtype, &vec![1.0; numel(sizes)]);
                    let a = array(m, DType::F32, &x);
                    let mut want = storage(&out);
                    for (i, o) in l.offsets().enumerate() {
                        want[o] = rounded(dtype, x[i].max(0.0));
                    }
                    exec::map_into(&RELU, DType::F32, &[], &out, &[&a]).unwrap();
                    assert_eq!(storage(&out), want, "{sizes:?} {name} {other} {dtype}");
                }
            }
        }
    }
}

#[test]
fn three_operands_of_three_dtypes() {
    let mut rng = Rng::new(6);
    let sizes = [37, 41];
    let n = numel(&sizes);
    let (c, a, b) =
        ((0..n).map(|i| (i % 3 == 0) as u8 as f64).collect::<Vec<_>>(), rng.values(n), rng.values(n));
    let want: Vec<f64> = (0..n).map(|i| if c[i] != 0.0 { a[i] } else { b[i] }).collect();
    let l = layouts(&sizes);
    for i in 0..l.len() {
        let (p, q, r) = (l[i].1, l[(i + 3) % l.len()].1, l[(i + 5) % l.len()].1);
        let (c, a, b) = (array(p, DType::Bool, &c), array(q, DType::F32, &a), array(r, DType::F64, &b));
        let out = exec::map(&WHERE, DType::F64, &[], DType::F64, &[&c, &a, &b]).unwrap();
        assert_eq!(values(&out), want, "{i}");
    }
}

#[test]
fn bool_bytes_other_than_one_are_true() {
    let bytes: Vec<f64> = (0..100).map(|i| (i % 4) as f64).collect();
    let b = array(Layout::contiguous(&[100]).unwrap(), DType::U8, &bytes).bitcast(DType::Bool).unwrap();
    let sum = exec::reduce(&SUM, DType::I64, DType::I64, &[true], false, &b).unwrap();
    assert_eq!(sum.to_vec::<i64>().unwrap()[0], bytes.iter().filter(|&&v| v != 0.0).count() as i64);
    let as_int = exec::copy_to(&b, *b.layout(), DType::I32).unwrap();
    assert!(values(&as_int).iter().zip(&bytes).all(|(a, b)| *a == (*b != 0.0) as u8 as f64));
}

#[test]
fn copies_between_layouts() {
    let mut rng = Rng::new(7);
    for &sizes in SHAPES.iter().chain(LARGE) {
        let x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
        for (j, (name, l)) in layouts(sizes).into_iter().enumerate() {
            for (i, (other, m)) in layouts(sizes).into_iter().enumerate() {
                if numel(sizes) > 5000 && (i + j) % 3 != 0 {
                    continue;
                }
                // One dtype of each size.
                let dtype = [DType::F32, DType::F64, DType::BF16, DType::I8][i % 4];
                let (out, a) = (array(l, dtype, &vec![1.0; numel(sizes)]), array(m, dtype, &x));
                let mut want = storage(&out);
                l.offsets().enumerate().for_each(|(i, o)| want[o] = x[i]);
                exec::copy_into(&out, &a).unwrap();
                assert_eq!(storage(&out), want, "{sizes:?} {name} {other} {dtype}");
            }
        }
    }
}

#[test]
fn casts_between_all_dtypes() {
    let sizes = [9, 150];
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -1.5,
        127.0,
        128.0,
        255.0,
        256.0,
        -129.0,
        300.0,
        65504.0,
        1e5,
        -1e5,
        3e9,
        -3e9,
        1e19,
        -1e19,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-8,
        6e-5,
    ];
    let x: Vec<f64> = (0..numel(&sizes)).map(|i| special[i % special.len()]).collect();
    for from in DType::ALL {
        for to in DType::ALL {
            for (name, l) in layouts(&sizes).into_iter().step_by(2) {
                let a = array(l, from, &x);
                let c = exec::copy_to(&a, Layout::contiguous(&sizes).unwrap(), to).unwrap();
                let want = values(&a);
                for (i, (&got, &v)) in values(&c).iter().zip(&want).enumerate() {
                    let wrapped = |bits: u32| {
                        let v = v as i64;
                        if bits == 64 { v } else { v << (64 - bits) >> (64 - bits) }
                    };
                    let want = match (from.category() == stridegrad_core::Category::Floating, to) {
                        (_, DType::Bool) => (v != 0.0) as u8 as f64,
                        (true, DType::F16 | DType::BF16) => rounded(to, v as f32 as f64),
                        (_, to) if to.is_floating() => rounded(to, v),
                        (true, to) => rounded(to, v),
                        (false, DType::U8) => (v as i64 as u8) as f64,
                        (false, to) => wrapped(8 * to.size() as u32) as f64,
                    };
                    assert!(
                        got == want || got.is_nan() && want.is_nan(),
                        "{from} -> {to} {name} element {i}: {v} became {got}, not {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn fills_every_layout_and_overlapping_ones() {
    for &sizes in SHAPES.iter().chain(LARGE) {
        for (name, l) in layouts(sizes) {
            for dtype in [DType::F32, DType::I64, DType::Bool, DType::F16] {
                let a = array(l, dtype, &vec![0.0; numel(sizes)]);
                let mut want = storage(&a);
                l.offsets().for_each(|o| want[o] = rounded(dtype, 2.5));
                exec::fill(&a, Scalar::Float(2.5)).unwrap();
                assert_eq!(storage(&a), want, "{sizes:?} {name} {dtype}");
            }
        }
    }
    let windows = Layout::new(&[60_000, 5], &[1, 1], 2).unwrap();
    let a = array(windows, DType::F32, &[]);
    exec::fill(&a, Scalar::Int(4)).unwrap();
    assert!(values(&a).iter().all(|&v| v == 4.0));
    let full =
        exec::full(Layout::contiguous(&[3]).unwrap(), Scalar::Bool(true), DType::F64, Device::CPU).unwrap();
    assert_eq!(values(&full), [1.0; 3]);
}

fn naive_reduce(
    sizes: &[usize],
    dims: &[bool],
    x: &[f64],
    identity: f64,
    f: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let strides = |sizes: &[usize]| Layout::contiguous(sizes).unwrap().strides().to_vec();
    let kept: Vec<usize> = sizes.iter().zip(dims).map(|(&n, &r)| if r { 1 } else { n }).collect();
    let (from, to) = (strides(sizes), strides(&kept));
    let mut out = vec![identity; numel(&kept)];
    for (i, &v) in x.iter().enumerate() {
        let o: isize = (0..sizes.len())
            .map(|d| if dims[d] { 0 } else { (i as isize / from[d]) % sizes[d] as isize * to[d] })
            .sum();
        out[o as usize] = f(out[o as usize], v);
    }
    out
}

fn check_reduce(sizes: &[usize], x: &[f64], dtypes: &[DType]) {
    type Case = (&'static ReduceKernel, fn(f64, f64) -> f64, f64);
    let sum: Case = (&SUM, |a, b| a + b, 0.0);
    let max: Case = (&AMAX, f64::max, f64::NEG_INFINITY);
    let arrays: Vec<(&str, Array)> = dtypes
        .iter()
        .flat_map(|&dtype| layouts(sizes).into_iter().map(move |(name, l)| (name, array(l, dtype, x))))
        .collect();
    for mask in 0..1usize << sizes.len() {
        let dims: Vec<bool> = (0..sizes.len()).map(|d| mask >> d & 1 == 1).collect();
        let empty = numel(sizes) == 0;
        for (kernel, f, identity) in if empty { vec![sum] } else { vec![sum, max] } {
            let want = naive_reduce(sizes, &dims, x, identity, f);
            for (name, a) in &arrays {
                let dtype = a.dtype();
                let compute = if dtype.is_floating() { dtype } else { DType::I64 };
                let out = if dtype.is_floating() { DType::F32.promote(dtype) } else { DType::I64 };
                let r = exec::reduce(kernel, compute, out, &dims, true, a).unwrap();
                // Multiples of 1/8 add up exactly.
                assert_eq!(values(&r), want, "{} {sizes:?} {dims:?} {name} {dtype}", kernel.name);
            }
        }
    }
}

#[test]
fn reductions_over_all_sets_of_dims() {
    let mut rng = Rng::new(8);
    for &sizes in SHAPES {
        let x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
        check_reduce(sizes, &x, &[DType::F32, DType::F64, DType::BF16, DType::I8]);
    }
    for &sizes in LARGE {
        check_reduce(sizes, &rng.values(numel(sizes)), &[DType::F32]);
    }
    for sizes in [&[64, 6, 900][..], &[5000, 64], &[64, 5000], &[3, 90_000], &[90_000, 3], &[9, 4096, 8]] {
        let x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
        check_reduce(sizes, &x, &[DType::F32, DType::I32]);
    }
}

#[test]
fn sums_over_broadcast_dims_count_every_repetition() {
    let x = Rng::new(9).values(12);
    let base = array(Layout::contiguous(&[3, 1, 4]).unwrap(), DType::F32, &x);
    for reps in [1, 5, 70_000] {
        let l = base.layout().broadcast_to(&[3, reps, 4]).unwrap();
        let a = base.with_layout(l).unwrap();
        for dims in [[false, true, false], [true, true, false], [true, true, true], [false, true, true]] {
            let r = exec::reduce(&SUM, DType::F32, DType::F32, &dims, true, &a).unwrap();
            let all: Vec<f64> = l.offsets().map(|o| x[o]).collect();
            assert_eq!(
                values(&r),
                naive_reduce(&[3, reps, 4], &dims, &all, 0.0, |a, b| a + b),
                "{reps} {dims:?}"
            );
        }
    }
}

#[test]
fn products_and_empty_reductions() {
    let a = array(Layout::contiguous(&[3, 2]).unwrap(), DType::I16, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let p = exec::reduce(&PROD, DType::I64, DType::I64, &[true, false], false, &a).unwrap();
    assert_eq!(values(&p), [15.0, 48.0]);
    let none = array(Layout::contiguous(&[0, 2]).unwrap(), DType::F32, &[]);
    let p = exec::reduce(&PROD, DType::F32, DType::F32, &[true, false], false, &none).unwrap();
    assert_eq!(values(&p), [1.0, 1.0]);
    let m = exec::reduce(&AMAX, DType::I64, DType::I64, &[true, false], false, &none).unwrap();
    assert_eq!(m.to_vec::<i64>().unwrap(), [i64::MIN; 2]);
}

#[test]
fn maxima_propagate_nan_from_anywhere() {
    for n in [1, 5, 63, 64, 65, 1000, 70_000] {
        for at in [0, n / 2, n - 1] {
            let mut x = Rng::new(10).values(n);
            x[at] = f64::NAN;
            for (name, l) in layouts(&[n]) {
                let r =
                    exec::reduce(&AMAX, DType::F32, DType::F32, &[true], false, &array(l, DType::F32, &x))
                        .unwrap();
                assert!(values(&r)[0].is_nan(), "{n} {at} {name}");
            }
        }
    }
}

#[test]
fn long_sums_are_accurate() {
    // 0.1 is not exact in f32: a naive loop over a million is off by about 1e-3 relative. Here no chain of additions is
    // longer than 64 or so, each off by at most 2^-24, on average half of that in one direction.
    let bound = 64.0 * 2f64.powi(-25);
    let n = 1 << 20;
    let x = vec![0.1; n];
    for l in [Layout::contiguous(&[n]).unwrap(), Layout::new(&[n], &[2], 0).unwrap()] {
        let a = array(l, DType::F32, &x);
        let got = values(&exec::reduce(&SUM, DType::F32, DType::F32, &[true], false, &a).unwrap())[0];
        let want = n as f64 * 0.1f32 as f64;
        assert!(((got - want) / want).abs() < bound, "{got} {want}");
    }
    let columns = array(Layout::contiguous(&[n / 16, 16]).unwrap(), DType::F32, &x);
    let got = values(&exec::reduce(&SUM, DType::F32, DType::F32, &[true, false], false, &columns).unwrap());
    let want = (n / 16) as f64 * 0.1f32 as f64;
    assert!(got.iter().all(|g| ((g - want) / want).abs() < bound), "{got:?} {want}");
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let mut rng = Rng::new(11);
    // Values whose sums are not exact.
    let mut irregular = |n: usize| -> Vec<f64> { (0..n).map(|_| (rng.value() * 0.7).sin()).collect() };
    let mut cases: Vec<(Array, Vec<Vec<bool>>)> = Vec::new();
    for sizes in [vec![300_007], vec![7, 30_001], vec![30_001, 7], vec![100, 5, 400], vec![16, 64, 300]] {
        let x = irregular(numel(&sizes));
        let masks: Vec<Vec<bool>> = (1..1usize << sizes.len())
            .map(|mask| (0..sizes.len()).map(|d| mask >> d & 1 == 1).collect())
            .collect();
        for (_, l) in layouts(&sizes).into_iter().step_by(3) {
            cases.push((array(l, DType::F32, &x), masks.clone()));
        }
    }
    let runs = everywhere(|| {
        cases
            .iter()
            .map(|(a, masks)| {
                let sum = |dims: &Vec<bool>| {
                    values(&exec::reduce(&SUM, DType::F32, DType::F32, dims, true, a).unwrap())
                };
                let e = exec::map(&EXP, DType::F32, &[], DType::F32, &[a]).unwrap();
                (masks.iter().flat_map(sum).collect::<Vec<f64>>(), values(&e))
            })
            .collect::<Vec<_>>()
    });
    for per_isa in &runs {
        assert!(per_isa.iter().all(|r| r == &per_isa[0]));
    }
    // Instruction sets may differ in the last bits only.
    for (a, b) in runs[0][0].iter().zip(&runs[2][0]) {
        assert!(a.0.iter().zip(&b.0).all(|(x, y)| (x - y).abs() <= 1e-5 * x.abs().max(1.0)));
        assert!(a.1.iter().zip(&b.1).all(|(x, y)| (x - y).abs() <= 1e-6 * x.abs()));
    }
}
