//! Accumulation, matrix products and convolutions through the backend, against naive index loops.
#![forbid(unsafe_code)]

mod common;
use common::*;
use stridegrad_core::kernel::{Conv2dParams, ConvPass, Pool2dParams, PoolPass};
use stridegrad_core::{DType, ErrorKind, Layout, exec};

#[test]
fn accumulate_adds_whatever_the_layouts() {
    let mut rng = Rng::new(21);
    for sizes in [&[][..], &[5], &[40, 33], &[3, 70, 3], &[2, 3, 2, 5, 3], &[300, 301], &[100_003]] {
        let n = sizes.iter().product();
        let (x, y) = (rng.values(n), rng.values(n));
        for (i, (name, l)) in layouts(sizes).into_iter().enumerate() {
            for (j, (other, m)) in layouts(sizes).into_iter().enumerate() {
                let dtype = [DType::F32, DType::F64, DType::BF16, DType::I16, DType::U8][(i + j) % 5];
                let (a, b) = (array(l, dtype, &x), array(m, dtype, &y));
                let (before, term) = (values(&a), values(&b));
                let mut want = storage(&a);
                for (i, o) in l.offsets().enumerate() {
                    let sum = before[i] + term[i];
                    want[o] = if dtype == DType::U8 { sum as i64 as u8 as f64 } else { rounded(dtype, sum) };
                }
                exec::accumulate(&a, &b).unwrap();
                assert_eq!(storage(&a), want, "{sizes:?} {name} {other} {dtype}");
            }
        }
    }
}

#[test]
fn accumulate_counts_every_contribution_to_an_overlapping_destination() {
    let mut rng = Rng::new(22);
    for (sizes, strides, offset) in [
        (vec![6, 5], vec![1, 1], 0),
        (vec![6, 5], vec![-1, 1], 9),
        (vec![4, 3000], vec![0, 1], 2),
        (vec![3000, 4], vec![1, 0], 2),
        (vec![7], vec![0], 1),
        (vec![3, 4, 5, 6], vec![6, 2, 3, 1], 0),
    ] {
        let l = Layout::new(&sizes, &strides, offset).unwrap();
        let x = rng.values(l.numel());
        for (name, m) in layouts(&sizes) {
            for dtype in [DType::F32, DType::I64] {
                let zeros = vec![0.0; l.numel()];
                let (a, b) = (array(l, dtype, &zeros), array(m, dtype, &x));
                let mut want = storage(&a);
                l.offsets().zip(values(&b)).for_each(|(o, v)| want[o] += v);
                exec::accumulate(&a, &b).unwrap();
                assert_eq!(storage(&a), want, "{sizes:?} {strides:?} {name} {dtype}");
            }
        }
    }
}

#[test]
fn products_of_every_dtype_and_layout() {
    let mut rng = Rng::new(23);
    for [batch, m, n, k] in [[1, 1, 1, 1], [2, 7, 5, 3], [3, 20, 33, 17], [1, 65, 40, 70], [2, 4, 5, 0]] {
        let (sa, sb) = ([batch, m, k], [batch, k, n]);
        let small = |v: Vec<f64>| v.iter().map(|x| (x / 2.0).round()).collect::<Vec<_>>();
        let (x, y) = (small(rng.values(batch * m * k)), small(rng.values(batch * k * n)));
        for (i, (name, l)) in layouts(&sa).into_iter().enumerate() {
            for (other, r) in layouts(&sb) {
                let dtype = [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64, DType::I8][i % 6];
                let (a, b) = (array(l, dtype, &x), array(r, dtype, &y));
                let c = exec::gemm(&a, &b, None).unwrap();
                for (i, got) in values(&c).iter().enumerate() {
                    let (g, row, col) = (i / (m * n), i / n % m, i % n);
                    let sum: f64 = (0..k).map(|d| x[(g * m + row) * k + d] * y[(g * k + d) * n + col]).sum();
                    let want = if dtype == DType::I8 { sum as i64 as i8 as f64 } else { rounded(dtype, sum) };
                    assert_eq!(*got, want, "{dtype} {batch} {m} {n} {k} {name} {other}");
                }
            }
        }
    }
}

#[test]
fn convolutions_of_every_dtype() {
    let mut rng = Rng::new(24);
    let (xs, ws, ys) = ([2, 4, 9, 7], [6, 2, 3, 2], [2, 6, 5, 8]);
    let params = Conv2dParams { stride: [2, 1], padding: [[1, 1], [1, 1]], dilation: [1, 1], groups: 2 };
    let small = |v: Vec<f64>| v.iter().map(|x| (x / 4.0).round()).collect::<Vec<_>>();
    let (x, w) = (small(rng.values(2 * 4 * 9 * 7)), small(rng.values(6 * 2 * 3 * 2)));
    let bias = [1.0, -2.0, 3.0, 0.0, 2.0, 1.0];
    let mut want = vec![0.0; 2 * 6 * 5 * 8];
    let mut dx = vec![0.0; x.len()]; // of a gradient of ones
    let mut dw = vec![0.0; w.len()];
    for (i, y) in want.iter_mut().enumerate() {
        let (n, k, p, q) = (i / 240, i / 40 % 6, i / 8 % 5, i % 8);
        *y = bias[k];
        for (c, r, s) in (0..12).map(|j| (j / 6, j / 2 % 3, j % 2)) {
            let (h, v) = ((2 * p + r).wrapping_sub(1), (q + s).wrapping_sub(1));
            if h < 9 && v < 7 {
                let at = ((n * 4 + k / 3 * 2 + c) * 9 + h) * 7 + v;
                let wt = ((k * 2 + c) * 3 + r) * 2 + s;
                *y += x[at] * w[wt];
                dx[at] += w[wt];
                dw[wt] += x[at];
            }
        }
    }
    for (i, dtype) in DType::ALL.into_iter().filter(|d| !matches!(d, DType::Bool | DType::U8)).enumerate() {
        for (name, l) in layouts(&xs) {
            let a = array(l, dtype, &x);
            let b = array(layouts(&ws)[i % 8].1, dtype, &w);
            let c = array(Layout::new(&[6], &[2], 1).unwrap(), dtype, &bias);
            let out = Layout::contiguous(&ys).unwrap();
            let y = exec::conv2d(ConvPass::Forward, &params, out, &[&a, &b, &c]).unwrap();
            assert_eq!(values(&y), want, "{dtype} {name}");
            let dy = array(out, dtype, &vec![1.0; want.len()]);
            let gx = exec::conv2d(ConvPass::InputGrad, &params, Layout::contiguous(&xs).unwrap(), &[&dy, &b]);
            let gw =
                exec::conv2d(ConvPass::WeightGrad, &params, Layout::contiguous(&ws).unwrap(), &[&dy, &a]);
            if dtype.is_floating() {
                assert_eq!(values(&gx.unwrap()), dx, "{dtype} {name}");
                assert_eq!(values(&gw.unwrap()), dw, "{dtype} {name}");
            } else {
                assert_eq!(gx.unwrap_err().kind(), ErrorKind::Unsupported);
                assert_eq!(gw.unwrap_err().kind(), ErrorKind::Unsupported);
            }
        }
    }
}

fn pool_params(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Pool2dParams {
    Pool2dParams { kernel, stride, padding, dilation: [1, 1], count_include_pad: true, divisor: None }
}

#[test]
fn pooling_of_every_dtype() {
    let mut rng = Rng::new(25);
    let (xs, ys) = ([2, 5, 7, 6], [2, 5, 4, 3]);
    let params = pool_params([2, 2], [2, 2], [1, 0]);
    let x: Vec<f64> = (0..420).map(|i| ((i * 37) % 101) as f64).collect();
    let (mut best, mut at, mut mean) = (vec![0.0; 120], vec![0.0; 120], vec![0.0; 120]);
    for k in 0..120 {
        let (plane, p, q) = (k / 12, k / 3 % 4, k % 3);
        best[k] = f64::NEG_INFINITY;
        for (r, s) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (h, w) = ((2 * p + r).wrapping_sub(1), 2 * q + s);
            if h < 7 && w < 6 {
                let v = x[plane * 42 + h * 6 + w];
                mean[k] += v / 4.0;
                if v > best[k] {
                    (best[k], at[k]) = (v, (h * 6 + w) as f64);
                }
            }
        }
    }
    let dy: Vec<f64> = rng.values(120).iter().map(|v| v.round()).collect();
    let (mut dmax, mut dmean) = (vec![0.0; 420], vec![0.0; 420]);
    for k in 0..120 {
        let (plane, p, q) = (k / 12, k / 3 % 4, k % 3);
        dmax[plane * 42 + at[k] as usize] += dy[k];
        for (r, s) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (h, w) = ((2 * p + r).wrapping_sub(1), 2 * q + s);
            if h < 7 && w < 6 {
                dmean[plane * 42 + h * 6 + w] += dy[k] / 4.0;
            }
        }
    }
    let (out, grad) = (Layout::contiguous(&ys).unwrap(), Layout::contiguous(&xs).unwrap());
    for dtype in DType::ALL.into_iter().filter(|&d| d != DType::Bool) {
        for (name, l) in layouts(&xs) {
            let a = array(l, dtype, &x);
            let r = exec::pool2d(PoolPass::Max, &params, &[(out, dtype), (out, DType::I64)], &[&a]).unwrap();
            assert_eq!((values(&r[0]), values(&r[1])), (best.clone(), at.clone()), "{dtype} {name}");
            let m = exec::pool2d(PoolPass::Avg, &params, &[(out, dtype)], &[&a]);
            if !dtype.is_floating() {
                assert_eq!(m.unwrap_err().kind(), ErrorKind::Unsupported);
                continue;
            }
            let want: Vec<f64> = mean.iter().map(|&v| rounded(dtype, v)).collect();
            assert_eq!(values(&m.unwrap()[0]), want, "{dtype} {name}");
            let b = array(out, dtype, &dy);
            let g = exec::pool2d(PoolPass::MaxGrad, &params, &[(grad, dtype)], &[&b, &r[1]]).unwrap();
            assert_eq!(values(&g[0]), dmax, "{dtype} {name}");
            let g = exec::pool2d(PoolPass::AvgGrad, &params, &[(grad, dtype)], &[&b]).unwrap();
            assert_eq!(values(&g[0]), dmean, "{dtype} {name}");
            let one = Layout::contiguous(&[2, 5, 1, 1]).unwrap();
            let g = exec::pool2d(
                PoolPass::AdaptiveAvg,
                &params,
                &[(one, DType::F32)],
                &[&array(l, DType::F32, &x)],
            );
            for (k, v) in values(&g.unwrap()[0]).into_iter().enumerate() {
                let want = x[k * 42..(k + 1) * 42].iter().sum::<f64>() / 42.0;
                assert!((v - want).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn positions_outside_the_plane_are_refused() {
    let (out, grad) =
        (Layout::contiguous(&[1, 1, 2, 2]).unwrap(), Layout::contiguous(&[1, 1, 4, 4]).unwrap());
    let dy = array(out, DType::F32, &[1.0; 4]);
    for bad in [-1.0, 16.0] {
        let at = array(out, DType::I64, &[0.0, 2.0, bad, 10.0]);
        let params = pool_params([2, 2], [2, 2], [0, 0]);
        let e = exec::pool2d(PoolPass::MaxGrad, &params, &[(grad, DType::F32)], &[&dy, &at]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Index);
    }
}
