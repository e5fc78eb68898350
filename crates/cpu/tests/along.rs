//! What works along one dim (positions of extremes, scans, indexing) and random numbers.
#![forbid(unsafe_code)]

mod common;
use common::*;
use stridegrad_core::kernel::{Distribution, Extreme, IndexPass, Scan};
use stridegrad_core::{Array, DType, Device, ErrorKind, Layout, Philox, exec};

const SHAPES: &[&[usize]] = &[
    &[7],
    &[2, 3, 4],
    &[5, 1, 7],
    &[40, 50],
    &[3, 70, 9],
    &[2, 3, 2, 5, 3],
    &[1500],
    &[300, 301],
    &[2, 40_000],
];

fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// (outer, n, inner) around a dim.
fn around(sizes: &[usize], dim: usize) -> (usize, usize, usize) {
    (numel(&sizes[..dim]), sizes[dim], numel(&sizes[dim + 1..]))
}

#[test]
fn extremes_are_the_first_ones_and_nan_wins() {
    let mut rng = Rng::new(31);
    for &sizes in SHAPES {
        // Few distinct values: many ties.
        let mut x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
        for nans in [false, true] {
            if nans {
                (0..x.len()).step_by(11).for_each(|i| x[i] = f64::NAN);
            }
            for dim in 0..sizes.len() {
                let (outer, n, inner) = around(sizes, dim);
                for (which, sign) in [(Extreme::Max, 1.0), (Extreme::Min, -1.0)] {
                    let want: Vec<usize> = (0..outer * inner)
                        .map(|k| {
                            let at = |i: usize| sign * x[(k / inner * n + i) * inner + k % inner];
                            (1..n).fold(0, |b, i| {
                                let wins = at(i) > at(b) || at(i).is_nan() && !at(b).is_nan();
                                if wins { i } else { b }
                            })
                        })
                        .collect();
                    let dtypes = if nans {
                        &[DType::F32, DType::F64][..]
                    } else {
                        &[DType::F32, DType::BF16, DType::I8]
                    };
                    for (i, (name, l)) in layouts(sizes).into_iter().enumerate() {
                        let dtype = dtypes[i % dtypes.len()];
                        let (at, value) =
                            exec::arg_reduce("argmax", which, dim, false, &array(l, dtype, &x)).unwrap();
                        let got: Vec<usize> = values(&at).iter().map(|v| *v as usize).collect();
                        assert_eq!(got, want, "{sizes:?} {dim} {which:?} {name} {dtype}");
                        for (k, v) in values(&value).into_iter().enumerate() {
                            let e = x[(k / inner * n + want[k]) * inner + k % inner];
                            assert!(v == e || v.is_nan() && e.is_nan());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn scans_run_along_the_dim() {
    let mut rng = Rng::new(32);
    for &sizes in SHAPES {
        let x = rng.values(numel(sizes));
        for dim in 0..sizes.len() {
            let (outer, n, inner) = around(sizes, dim);
            let run = |f: fn(f64, f64) -> f64, x: &[f64]| {
                let mut y = x.to_vec();
                for (o, i, k) in
                    (0..outer).flat_map(|o| (1..n).flat_map(move |i| (0..inner).map(move |k| (o, i, k))))
                {
                    let at = (o * n + i) * inner + k;
                    y[at] = f(y[at - inner], x[at]);
                }
                y
            };
            let signs: Vec<f64> = x.iter().map(|v| if *v < 0.0 { -1.0 } else { 1.0 }).collect();
            let (sums, products) = (run(|a, b| a + b, &x), run(|a, b| a * b, &signs));
            for (i, (name, l)) in layouts(sizes).into_iter().enumerate() {
                let dtype = [DType::F32, DType::F64][i % 2];
                let y = exec::scan("cumsum", Scan::Sum, dim, &array(l, dtype, &x)).unwrap();
                assert_eq!(values(&y), sums, "{sizes:?} {dim} {name} {dtype}");
                let dtype = [DType::BF16, DType::I16][i % 2];
                let y = exec::scan("cumprod", Scan::Prod, dim, &array(l, dtype, &signs)).unwrap();
                assert_eq!(values(&y), products, "{sizes:?} {dim} {name} {dtype}");
            }
        }
    }
}

fn random_index(rng: &mut Rng, layout: Layout, below: usize) -> (Array, Vec<usize>) {
    let want: Vec<usize> = (0..layout.numel()).map(|_| rng.below(below)).collect();
    let v: Vec<f64> = want.iter().map(|&i| i as f64).collect();
    (array(layout, DType::I64, &v), want)
}

/// The position of a row-major number with its coordinate along `dim` replaced, in an array of sizes `to`.
fn moved(sizes: &[usize], k: usize, dim: usize, coordinate: usize, to: &[usize]) -> usize {
    let mut rest = k;
    let mut index = vec![0; sizes.len()];
    for d in (0..sizes.len()).rev() {
        index[d] = rest % sizes[d];
        rest /= sizes[d];
    }
    index[dim] = coordinate;
    index.iter().zip(to).fold(0, |at, (i, n)| at * n + i)
}

fn coordinate(sizes: &[usize], k: usize, dim: usize) -> usize {
    k / numel(&sizes[dim + 1..]) % sizes[dim]
}

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::BF16, DType::I8, DType::I64, DType::F16];

#[test]
fn select_and_add_move_slabs() {
    let mut rng = Rng::new(33);
    for &sizes in SHAPES {
        for dim in 0..sizes.len() {
            for count in [1, 5, sizes[dim] + 3] {
                let mut out_sizes = sizes.to_vec();
                out_sizes[dim] = count;
                let x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
                let y: Vec<f64> = rng.values(numel(&out_sizes)).iter().map(|v| (v / 8.0).round()).collect();
                for (i, (name, l)) in layouts(sizes).into_iter().enumerate() {
                    let dtype = DTYPES[i % 6];
                    let steps = Layout::new(&[count], &[1 + (i % 2) as isize], i % 3).unwrap();
                    let (index, want) = random_index(&mut rng, steps, sizes[dim]);
                    let a = array(l, dtype, &x);
                    let got =
                        exec::index("index_select", IndexPass::Select, dim, &out_sizes, &a, &index).unwrap();
                    let picked: Vec<f64> = (0..numel(&out_sizes))
                        .map(|k| x[moved(&out_sizes, k, dim, want[coordinate(&out_sizes, k, dim)], sizes)])
                        .collect();
                    assert_eq!(values(&got), picked, "{sizes:?} {dim} {count} {name}");

                    let b = array(layouts(&out_sizes)[(i + 3) % 8].1, dtype, &y);
                    let mut sums = x.clone();
                    for (k, v) in y.iter().enumerate() {
                        let at = moved(&out_sizes, k, dim, want[coordinate(&out_sizes, k, dim)], sizes);
                        sums[at] = rounded(dtype, sums[at] + v);
                    }
                    exec::index_into("index_add", IndexPass::Add, dim, &a, &b, &index).unwrap();
                    assert_eq!(values(&a), sums, "{sizes:?} {dim} {count} {name} {dtype}");
                }
            }
        }
    }
}

#[test]
fn gather_and_scatter_move_elements() {
    let mut rng = Rng::new(34);
    for &sizes in SHAPES {
        for dim in 0..sizes.len() {
            // Along other dims the index may be smaller than the indexed array.
            let mut few: Vec<usize> = sizes.iter().map(|&n| n.div_ceil(2)).collect();
            few[dim] = sizes[dim] + 2;
            let x: Vec<f64> = rng.values(numel(sizes)).iter().map(|v| v.round()).collect();
            let y: Vec<f64> = rng.values(numel(&few)).iter().map(|v| (v / 8.0).round()).collect();
            for (i, (name, l)) in layouts(sizes).into_iter().enumerate() {
                let dtype = DTYPES[i % 6];
                let (index, want) = random_index(&mut rng, layouts(&few)[(i + 5) % 8].1, sizes[dim]);
                let at: Vec<usize> = (0..numel(&few)).map(|k| moved(&few, k, dim, want[k], sizes)).collect();
                let a = array(l, dtype, &x);
                let got = exec::index("gather", IndexPass::Gather, dim, &few, &a, &index).unwrap();
                assert_eq!(
                    values(&got),
                    at.iter().map(|&k| x[k]).collect::<Vec<_>>(),
                    "{sizes:?} {dim} {name}"
                );

                let b = array(layouts(&few)[(i + 2) % 8].1, dtype, &y);
                let (mut last, mut sums) = (x.clone(), x.clone());
                for (k, &v) in at.iter().zip(&y) {
                    last[*k] = v;
                    sums[*k] = rounded(dtype, sums[*k] + v);
                }
                let c = array(l, dtype, &x);
                exec::index_into("scatter_add", IndexPass::ScatterAdd, dim, &c, &b, &index).unwrap();
                assert_eq!(values(&c), sums, "{sizes:?} {dim} {name} {dtype}");
                exec::index_into("scatter", IndexPass::Scatter, dim, &a, &b, &index).unwrap();
                assert_eq!(values(&a), last, "{sizes:?} {dim} {name} {dtype}");
            }
        }
    }
}

#[test]
fn indices_out_of_range_are_refused_before_any_write() {
    let x = Rng::new(35).values(12);
    let a = array(Layout::contiguous(&[4, 3]).unwrap(), DType::F32, &x);
    for bad in [-1.0, 4.0, 1e15] {
        let index = array(Layout::contiguous(&[3]).unwrap(), DType::I64, &[0.0, bad, 2.0]);
        let e = exec::index("index_select", IndexPass::Select, 0, &[3, 3], &a, &index).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Index);
        let text = format!("index_select: index {bad} is out of bounds for dimension 0 with size 4");
        assert!(e.to_string().starts_with(&text), "{e}");
        let y = array(Layout::contiguous(&[3, 3]).unwrap(), DType::F32, &[1.0; 9]);
        let whole = array(
            Layout::contiguous(&[3, 3]).unwrap(),
            DType::I64,
            &[0.0, 1.0, 2.0, 3.0, bad, 0.0, 0.0, 0.0, 0.0],
        );
        let refused = [
            exec::index_into("index_add", IndexPass::Add, 0, &a, &y, &index),
            exec::index_into("scatter", IndexPass::Scatter, 0, &a, &y, &whole),
            exec::index_into("scatter_add", IndexPass::ScatterAdd, 0, &a, &y, &whole),
        ];
        assert!(refused.into_iter().all(|r| r.unwrap_err().kind() == ErrorKind::Index));
        assert_eq!(values(&a), x);
    }
}

fn draw(dist: Distribution, layout: Layout, dtype: DType) -> Array {
    stridegrad_cpu::register();
    exec::random(dist, &Philox::new(7, 3), layout, dtype, Device::CPU).unwrap()
}

#[test]
fn random_numbers_follow_the_stream_whatever_the_layout() {
    let stream = Philox::new(7, 3);
    let n = 40_000;
    let flat = Layout::contiguous(&[n]).unwrap();
    let uniform = Distribution::Uniform { low: 0.0, high: 1.0 };
    let (mut narrow, mut wide) = (vec![0f32; n], vec![0f64; n]);
    stream.uniform_f32(0, &mut narrow);
    assert_eq!(draw(uniform, flat, DType::F32).to_vec::<f32>().unwrap(), narrow);
    stream.uniform_f64(0, &mut wide);
    assert_eq!(draw(uniform, flat, DType::F64).to_vec::<f64>().unwrap(), wide);
    let normal = Distribution::Normal { mean: 1.0, std: 2.0 };
    stream.normal_f32(0, &mut narrow);
    let got = draw(normal, flat, DType::F32).to_vec::<f32>().unwrap();
    assert!(got.iter().zip(&narrow).all(|(g, w)| *g == 1.0 + w * 2.0));
    stream.normal_f64(0, &mut wide);
    let got = draw(normal, flat, DType::F64).to_vec::<f64>().unwrap();
    assert!(got.iter().zip(&wide).all(|(g, w)| *g == 1.0 + w * 2.0));

    let flat = values(&draw(normal, Layout::contiguous(&[n]).unwrap(), DType::F32));
    for sizes in [&[40, 1000][..], &[8, 5, 1000], &[2000, 20]] {
        let l = Layout::contiguous(sizes).unwrap();
        let column_major = l.permute(&(0..sizes.len() as i64).rev().collect::<Vec<_>>()).unwrap();
        let fresh: Vec<usize> = column_major.sizes().to_vec();
        assert_eq!(values(&draw(normal, l, DType::F32)), flat);
        // The same logical values in another memory order.
        let other = values(&draw(normal, column_major, DType::F32));
        assert_eq!(other, values(&draw(normal, Layout::contiguous(&fresh).unwrap(), DType::F32)));
    }
    for runs in everywhere(|| values(&draw(normal, Layout::contiguous(&[100_001]).unwrap(), DType::F32))) {
        assert!(runs.iter().all(|r| r == &runs[0]));
    }
}

#[test]
fn random_numbers_stay_in_range_and_have_the_moments() {
    let l = Layout::contiguous(&[100_000]).unwrap();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for (low, high) in [(0.0, 1.0), (-3.0, 5.0), (0.1, 0.3), (1000.0, 1001.0)] {
            let v = values(&draw(Distribution::Uniform { low, high }, l, dtype));
            let start = rounded(dtype, low);
            assert!(v.iter().all(|&x| x >= start && x < high), "{dtype} {low} {high}");
            if high - low <= 8.0 && low.abs() < 10.0 {
                let middle = (low + high) / 2.0;
                assert!((mean(&v) - middle).abs() < 0.02 * (high - low), "{dtype} {low} {high} {}", mean(&v));
            }
        }
        let v = values(&draw(Distribution::Bernoulli { p: 0.3 }, l, dtype));
        assert!((mean(&v) - 0.3).abs() < 0.01 && v.iter().all(|&x| x == 0.0 || x == 1.0));
    }
    for (dtype, low, high) in
        [(DType::I64, -5, 6), (DType::U8, 0, 256), (DType::F32, 10, 12), (DType::I32, 3, 4)]
    {
        let v = values(&draw(Distribution::Integer { low, high }, l, dtype));
        assert!(v.iter().all(|&x| x >= low as f64 && x < high as f64 && x.fract() == 0.0));
        for want in [low, high - 1] {
            assert!(v.contains(&(want as f64)), "{dtype}");
        }
        let middle = (low + high - 1) as f64 / 2.0;
        assert!((mean(&v) - middle).abs() < 0.02 * (high - low) as f64, "{dtype}");
    }
    for (p, want) in [(0.0, 0.0), (1.0, 1.0)] {
        assert!(values(&draw(Distribution::Bernoulli { p }, l, DType::Bool)).iter().all(|&x| x == want));
    }
}
