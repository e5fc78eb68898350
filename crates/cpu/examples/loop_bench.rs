//! Nanoseconds an element of the loops: `cargo run --release -p stridegrad-cpu --example loop_bench`.

use std::hint::black_box;
use std::time::Instant;

use stridegrad_core::Init;
use stridegrad_core::kernel::{FoldFn, MapFn, PerIsa};

stridegrad_cpu::map_kernel! {
    static ADD("add") = |[a, b], []| a + b;
    static RELU("relu") = |[a], []| a.max(E::lit(0.0));
    static EXP("exp") = |[a], []| a.exp();
}
stridegrad_cpu::reduce_kernel! {
    static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
    static AMAX("amax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
}

/// The best of several runs, in nanoseconds.
fn best(reps: usize, mut f: impl FnMut()) -> f64 {
    (0..20)
        .map(|_| {
            let t = Instant::now();
            (0..reps).for_each(|_| f());
            t.elapsed().as_nanos() as f64 / reps as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn each<F: Copy>(name: &str, n: usize, per: &PerIsa<F>, mut run: impl FnMut(F)) {
    print!("{name:24}");
    for f in [per.portable, per.avx2, per.avx512] {
        let ns = best(20_000_000 / n.max(20_000), || run(f));
        print!("{:10.3}", ns / n as f64);
    }
    println!();
}

/// Kernels over slices that lie in L1, for each instruction set. The machine must have them all.
fn slices() {
    println!("ns/element in L1           portable    avx2      avx512");
    let n = 2048;
    let (a, b) = (vec![0.5f32; n], vec![0.25f32; n]);
    let mut out = vec![0f32; n];
    let mut map = |name: &str, per: &PerIsa<MapFn<f32>>, ins: &[&[f32]]| {
        each(name, n, per, |f| {
            // SAFETY: this example is run on machines that have the instruction sets.
            unsafe { f(black_box(&mut out), black_box(ins), &[]) }
        });
    };
    map("add f32", &ADD.f32, &[&a, &b]);
    map("relu f32", &RELU.f32, &[&a]);
    map("exp f32", &EXP.f32, &[&a]);
    let fold = |name: &str, per: &PerIsa<FoldFn<f32>>, n: usize| {
        let x = vec![0.5f32; n];
        each(name, n, per, |f| {
            // SAFETY: as above.
            black_box(unsafe { f(0.0, black_box(&x)) });
        });
    };
    fold("sum f32", &SUM.fold_f32, n);
    fold("amax f32", &AMAX.fold_f32, n);
    fold("sum f32, 64", &SUM.fold_f32, 64);
    fold("sum f32, 10", &SUM.fold_f32, 10);
    fold("sum f32, 4M", &SUM.fold_f32, 4 << 20);
}

fn allocator() {
    for bytes in [64usize, 4096, 100 << 10, 25 << 20] {
        let ns = best(10_000, || drop(black_box(stridegrad_cpu::alloc::allocate(bytes, Init::Uninit))));
        println!("allocate and free {bytes:9} bytes: {ns:.1} ns");
    }
}

fn main() {
    slices();
    allocator();
}
