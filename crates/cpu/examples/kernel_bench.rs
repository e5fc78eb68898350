//! Prints GFLOP/s of the CPU kernels on the layers and matrices that the project compares itself on.
//!
//! `cargo run --release -p stridegrad-cpu --example kernel_bench [-- FILTER]`; `STRIDEGRAD_ISA` lowers the instruction
//! set. Figures are the best of many runs, on one thread and on all.

use std::hint::black_box;
use std::time::Instant;
use stridegrad_cpu::conv2d::{self, ConvGeometry, View4, View4Mut};
use stridegrad_cpu::gemm::{Mat, MatMut, gemm};
use stridegrad_cpu::pool2d::{self, PoolGeometry};
use stridegrad_cpu::{isa, team};

/// The least seconds of a call: what it takes when nothing else runs.
fn best(mut f: impl FnMut()) -> f64 {
    f();
    let (mut times, start) = (vec![], Instant::now());
    while times.len() < 5 || (start.elapsed().as_secs_f64() < 0.25 && times.len() < 200) {
        let t = Instant::now();
        f();
        times.push(t.elapsed().as_secs_f64());
    }
    times.into_iter().fold(f64::INFINITY, f64::min)
}

fn values(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 16_777_216.0 - 0.5)
        .collect()
}

/// GFLOP/s on one thread and on all, with the milliseconds of the latter.
fn report(flops: f64, mut f: impl FnMut()) -> String {
    team::set_num_threads(1);
    let one = best(&mut f);
    team::set_num_threads(0);
    let all = best(&mut f);
    format!("{:7.1} {:7.1} ({:8.3} ms)", flops / one / 1e9, flops / all / 1e9, all * 1e3)
}

fn gemms(filter: &str) {
    println!(
        "gemm f32 (m x n x k): GFLOP/s on 1 and on {} threads; row-major, then B transposed",
        team::num_threads()
    );
    for (m, n, k) in [
        (16, 16, 16),
        (64, 64, 64),
        (256, 256, 256),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (64, 3136, 576),
        (512, 49, 4608),
        (128, 784, 1152),
        (128, 120, 400),
        (64, 576, 25088),
        (25088, 64, 256),
        (1, 1024, 1024),
        (64, 10, 84),
    ] {
        let name = format!("gemm_{m}x{n}x{k}");
        if !name.contains(filter) {
            continue;
        }
        let (a, b) = (values(m * k), values(n * k));
        let mut c = vec![0f32; m * n];
        let flops = 2.0 * m as f64 * n as f64 * k as f64;
        let mut run = |(rs, cs): (usize, usize)| {
            report(flops, || {
                let (a, b) =
                    (Mat::new(a.as_ptr(), k as isize, 1), Mat::new(b.as_ptr(), rs as isize, cs as isize));
                // SAFETY: matrices of these sizes and strides.
                unsafe { gemm((m, n, k), a, b, MatMut::new(c.as_mut_ptr(), n as isize, 1), false) };
                black_box(&mut c);
            })
        };
        let (plain, transposed) = (run((n, 1)), run((1, k)));
        println!("{name:24} {plain}  | {transposed}");
    }
}

/// Name, n, c, h, k, r, stride, pad, groups.
type Layer = (&'static str, usize, usize, usize, usize, usize, usize, usize, usize);
const LAYERS: [Layer; 19] = [
    ("r50_conv1_7x7s2", 8, 3, 224, 64, 7, 2, 3, 1),
    ("r18_l1_3x3", 8, 64, 56, 64, 3, 1, 1, 1),
    ("r18_l2_3x3", 8, 128, 28, 128, 3, 1, 1, 1),
    ("r18_l3_3x3", 8, 256, 14, 256, 3, 1, 1, 1),
    ("r18_l4_3x3", 8, 512, 7, 512, 3, 1, 1, 1),
    ("r18_l2_3x3s2", 8, 64, 56, 128, 3, 2, 1, 1),
    ("r50_1x1_256_64", 8, 256, 56, 64, 1, 1, 0, 1),
    ("r50_1x1_64_256", 8, 64, 56, 256, 1, 1, 0, 1),
    ("r50_1x1_512_2048", 8, 512, 7, 2048, 1, 1, 0, 1),
    ("r50_1x1s2_256_512", 8, 256, 56, 512, 1, 2, 0, 1),
    ("lenet_1_6_5x5", 64, 1, 28, 6, 5, 1, 0, 1),
    ("lenet_6_16_5x5", 64, 6, 12, 16, 5, 1, 0, 1),
    ("mnist_1_32_3x3", 64, 1, 28, 32, 3, 1, 0, 1),
    ("mnist_32_64_3x3", 64, 32, 26, 64, 3, 1, 0, 1),
    ("cifar_3_32_3x3", 64, 3, 32, 32, 3, 1, 1, 1),
    ("cifar_32_32_3x3", 64, 32, 32, 32, 3, 1, 1, 1),
    ("cifar_64_64_3x3", 64, 64, 16, 64, 3, 1, 1, 1),
    ("dw_3x3_128x56", 8, 128, 56, 128, 3, 1, 1, 128),
    ("dw_3x3_512x14", 8, 512, 14, 512, 3, 1, 1, 512),
];

fn convs(filter: &str) {
    println!(
        "conv2d f32: GFLOP/s on 1 and on {} threads; forward | input gradient | weight gradient",
        team::num_threads()
    );
    for (name, n, c, h, k, r, stride, pad, groups) in LAYERS {
        if !name.contains(filter) {
            continue;
        }
        let p = ConvGeometry::output_size(h, r, stride, (pad, pad), 1).expect("the kernel fits");
        let g = ConvGeometry {
            n,
            c,
            h,
            w: h,
            k,
            r,
            s: r,
            stride: [stride; 2],
            pad_before: [pad; 2],
            pad_after: [pad; 2],
            dilation: [1; 2],
            groups,
            p,
            q: p,
        };
        let cg = c / groups;
        let (x, w, dy) = (values(n * c * h * h), values(k * cg * r * r), values(n * k * p * p));
        let (mut y, mut dx, mut dw) = (vec![0f32; dy.len()], vec![0f32; x.len()], vec![0f32; w.len()]);
        let flops = 2.0 * (n * k * p * p * cg * r * r) as f64;
        for last in [false, true] {
            let strides = |s: [usize; 4]| {
                let [_, c, h, w] = s.map(|s| s as isize);
                if last { [c * h * w, 1, w * c, c] } else { [c * h * w, h * w, w, 1] }
            };
            let (xs, ws, ys) = (strides([n, c, h, h]), strides([k, cg, r, r]), strides([n, k, p, p]));
            let (xv, wv, dyv) =
                (View4::new(x.as_ptr(), xs), View4::new(w.as_ptr(), ws), View4::new(dy.as_ptr(), ys));
            // SAFETY: dense operands of these sizes and strides.
            let (forward, input, weight) = unsafe {
                (
                    report(flops, || conv2d::forward(&g, xv, wv, None, View4Mut::new(y.as_mut_ptr(), ys))),
                    report(flops, || conv2d::input_grad(&g, dyv, wv, View4Mut::new(dx.as_mut_ptr(), xs))),
                    report(flops, || conv2d::weight_grad(&g, xv, dyv, View4Mut::new(dw.as_mut_ptr(), ws))),
                )
            };
            let format = if last { "NHWC" } else { "NCHW" };
            println!("{name:18} {format} {forward} | {input} | {weight}");
        }
    }
}

fn pools(filter: &str) {
    println!(
        "pooling f32: GB/s read and written; max forward | max backward | average forward | average backward"
    );
    for (name, n, c, h, k, stride, pad) in [
        ("pool_2x2_32x26", 64, 32, 26, 2, 2, 0),
        ("pool_2x2_6x24", 64, 6, 24, 2, 2, 0),
        ("pool_3x3s2_64x112", 8, 64, 112, 3, 2, 1),
        ("pool_global_512x7", 8, 512, 7, 7, 7, 0),
    ] {
        if !name.contains(filter) {
            continue;
        }
        let p = (h + 2 * pad - k) / stride + 1;
        let g = PoolGeometry {
            n,
            c,
            h,
            w: h,
            kernel: [k; 2],
            stride: [stride; 2],
            pad: [pad; 2],
            dilation: [1; 2],
            p,
            q: p,
        };
        let (x, dy) = (values(n * c * h * h), values(n * c * p * p));
        let (mut y, mut dx, mut at) = (vec![0f32; dy.len()], vec![0f32; x.len()], vec![0i64; dy.len()]);
        for last in [false, true] {
            let strides = |h: usize| {
                let [c, h] = [c, h].map(|s| s as isize);
                if last { [c * h * h, 1, h * c, c] } else { [c * h * h, h * h, h, 1] }
            };
            let (xs, ys) = (strides(h), strides(p));
            let (xv, dyv) = (View4::new(x.as_ptr(), xs), View4::new(dy.as_ptr(), ys));
            let bytes = (4 * (x.len() + y.len())) as f64;
            let (ym, dxm) = (View4Mut::new(y.as_mut_ptr(), ys), View4Mut::new(dx.as_mut_ptr(), xs));
            let (atv, atm) = (View4::new(at.as_ptr(), ys), View4Mut::new(at.as_mut_ptr(), ys));
            let average = pool2d::Average::IncludePad;
            // SAFETY: dense operands of these sizes and strides.
            let figures = unsafe {
                [
                    report(bytes, || pool2d::max_pool2d(&g, xv, ym, atm)),
                    report(bytes, || pool2d::max_pool2d_backward(&g, dyv, atv, dxm)),
                    report(bytes, || pool2d::avg_pool2d(&g, average, xv, ym)),
                    report(bytes, || pool2d::avg_pool2d_backward(&g, average, dyv, dxm)),
                ]
            };
            let format = if last { "NHWC" } else { "NCHW" };
            println!("{name:18} {format} {}", figures.join(" | "));
        }
    }
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!("instruction set: {:?}", isa::isa());
    gemms(&filter);
    convs(&filter);
    pools(&filter);
}
