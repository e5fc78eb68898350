//! Gradients through views: time in milliseconds, and bytes zero-filled, against the number of views.
//!
//! `cargo run --release -p stridegrad-benches --bin views`

#![forbid(unsafe_code)]

use stridegrad::prelude::*;

type Pieces = fn(&Tensor) -> Vec<Tensor>;

const KINDS: [(&str, Pieces); 6] = [
    ("select", |x| (0..x.sizes()[0] as i64).map(|i| x.select(0, i)).collect()),
    ("narrow", |x| (0..x.sizes()[0] as i64).map(|i| x.narrow(0, i, 1)).collect()),
    ("unbind", |x| x.unbind(0)),
    ("split", |x| x.split(1, 0)),
    ("stepped", |x| (0..x.sizes()[0] as i64).map(|i| x.slice(0, Some(i), Some(i + 1), 3)).collect()),
    ("nested", |x| {
        (0..x.sizes()[0] as i64).map(|i| x.transpose(1, 2).narrow(0, i, 1).select(0, 0).t()).collect()
    }),
];

fn main() {
    let mut rows = Vec::new();
    println!("{:24} {:>10} {:>16} {:>14}", "views", "ms", "zero-filled MB", "base grad MB");
    for (kind, pieces) in KINDS {
        for n in [256usize, 512, 1024] {
            let x = Tensor::ones([n, 64, 128]).requires_grad_(true);
            let step = || {
                x.zero_grad();
                let mut sum: Option<Tensor> = None;
                for p in pieces(&x) {
                    sum = Some(match sum {
                        Some(s) => s + p,
                        None => p,
                    });
                }
                if let Some(s) = sum {
                    s.sum().backward();
                }
            };
            let ms = stridegrad_benches::median(0.5, step) * 1e3;
            stridegrad::reset_memory_stats(Device::CPU);
            step();
            let zeroed = stridegrad::memory_stats(Device::CPU).zeroed as f64 / 1e6;
            println!(
                "{:24} {ms:10.2} {zeroed:16.2} {:14.2}",
                format!("{kind} x {n}"),
                (n * 64 * 128 * 4) as f64 / 1e6
            );
            rows.push((format!("{kind}_{n}"), ms));
        }
    }
    stridegrad_benches::print_json(&rows);
}
