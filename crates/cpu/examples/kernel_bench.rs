//! Prints GFLOP/s of the CPU kernels on the layers and matrices that the project compares itself on.
//!
//! `cargo run --release -p stridegrad-cpu --example kernel_bench [-- FILTER]`; `STRIDEGRAD_ISA` lowers the instruction
//! set. Figures are medians, on one thread and on all.

use std::hint::black_box;
use std::time::Instant;
use stridegrad_cpu::gemm::{Mat, MatMut, gemm};
use stridegrad_cpu::{isa, team};

/// Median seconds of a call.
fn median(mut f: impl FnMut()) -> f64 {
    f();
    let (mut times, start) = (vec![], Instant::now());
    while times.len() < 5 || (start.elapsed().as_secs_f64() < 0.25 && times.len() < 200) {
        let t = Instant::now();
        f();
        times.push(t.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn values(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / 16_777_216.0 - 0.5)
        .collect()
}

/// GFLOP/s on one thread and on all, with the milliseconds of the latter.
fn report(flops: f64, mut f: impl FnMut()) -> String {
    team::set_num_threads(1);
    let one = median(&mut f);
    team::set_num_threads(0);
    let all = median(&mut f);
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

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!("instruction set: {:?}", isa::isa());
    gemms(&filter);
}
