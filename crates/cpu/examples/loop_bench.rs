//! Nanoseconds an element of the loops: `cargo run --release -p stridegrad-cpu --example loop_bench [part of a name]`.

use std::hint::black_box;
use std::time::Instant;

use stridegrad_core::kernel::{FoldFn, MapFn, MapKernel, PerIsa, ReduceKernel};
use stridegrad_core::{Array, DType, Device, Init, Layout, Scalar, exec};

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
    (0..60)
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

/// A filled array of a layout.
fn array(l: Layout, dtype: DType) -> Array {
    let n = l.span().map_or(0, |(_, hi)| hi + 1);
    let flat = exec::full(Layout::contiguous(&[n]).unwrap(), Scalar::Float(0.5), dtype, Device::CPU).unwrap();
    flat.with_layout(l).unwrap()
}

fn layout(sizes: &[usize], strides: &[isize]) -> Layout {
    Layout::new(sizes, strides, 0).unwrap()
}

fn report(name: &str, n: usize, bytes: usize, f: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|part| !name.contains(&part)) {
        return;
    }
    let ns = best((2_000_000 / n).clamp(1, 5_000), f);
    println!("{name:44}{:9.3} ns/element {:8.1} GB/s {:12.0} ns", ns / n as f64, (n * bytes) as f64 / ns, ns);
}

/// Whole ops, allocation of the result included.
fn ops() {
    use DType::*;
    println!();
    for n in [16usize, 2048, 1 << 16, 1 << 22] {
        let (a, b) = (array(layout(&[n], &[1]), F32), array(layout(&[n], &[1]), F32));
        map(&format!("add f32 {n}"), &ADD, F32, &[&a, &b]);
        map(&format!("relu f32 {n}"), &RELU, F32, &[&a]);
        map(&format!("exp f32 {n}"), &EXP, F32, &[&a]);
        report(&format!("add_ f32 {n}"), n, 12, || exec::map_into(&ADD, F32, &[], &a, &[&a, &b]).unwrap());
        report(&format!("accumulate f32 {n}"), n, 12, || exec::accumulate(&a, &b).unwrap());
        reduce(&format!("sum f32 {n}"), &SUM, &[true], &a);
    }
    let n = 2048;
    let (rows, cols) = (layout(&[n, n], &[n as isize, 1]), layout(&[n, n], &[1, n as isize]));
    let (a, t) = (array(rows, F32), array(cols, F32));
    let (h, ht) = (array(rows, BF16), array(cols, BF16));
    map("add a + a.t()", &ADD, F32, &[&a, &t]);
    map("relu, every second column", &RELU, F32, &[&array(layout(&[n, n], &[2 * n as isize, 2]), F32)]);
    map("relu, reversed", &RELU, F32, &[&reversed(&a)]);
    map("add a row", &ADD, F32, &[&a, &array(layout(&[n], &[1]), F32)]);
    map("add a column", &ADD, F32, &[&a, &array(layout(&[n, 1], &[1, 1]), F32)]);
    map(
        "add channels (n, 3) + (3)",
        &ADD,
        F32,
        &[&array(layout(&[n * n / 4, 3], &[3, 1]), F32), &array(layout(&[3], &[1]), F32)],
    );
    map("add bf16", &ADD, BF16, &[&h, &h]);
    map("add f16", &ADD, F16, &[&array(rows, F16), &array(rows, F16)]);
    map("add i32", &ADD, I32, &[&array(rows, I32), &array(rows, I32)]);
    map("add bf16 a + a.t()", &ADD, BF16, &[&h, &ht]);
    for (name, dtype) in [("u8", U8), ("bf16", BF16), ("f32", F32), ("f64", F64)] {
        copy(&format!("copy {name}"), &array(rows, dtype), dtype);
        copy(&format!("copy {name}, transposed"), &array(cols, dtype), dtype);
    }
    for (from, to) in [(F32, BF16), (BF16, F32), (F32, F16), (F32, I32), (I64, F32), (U8, F32), (F32, F64)] {
        copy(&format!("cast {from} -> {to}"), &array(rows, from), to);
    }
    let image = layout(&[32, 64, 56, 56], &[64 * 3136, 1, 56 * 64, 64]);
    copy("channels_last to contiguous", &array(image, F32), F32);
    reduce("sum over rows (dim 0)", &SUM, &[true, false], &a);
    reduce("sum over columns (dim 1)", &SUM, &[false, true], &a);
    reduce("sum over rows of a.t()", &SUM, &[true, false], &t);
    reduce("amax over columns", &AMAX, &[false, true], &a);
    reduce("sum bf16 over rows", &SUM, &[true, false], &h);
    reduce("sum bf16 over columns", &SUM, &[false, true], &h);
    reduce("sum NHW, channels_last", &SUM, &[true, false, true, true], &array(image, F32));
    let nchw = Layout::contiguous(&[32, 64, 56, 56]).unwrap();
    reduce("sum NHW, NCHW", &SUM, &[true, false, true, true], &array(nchw, F32));
    reduce("sum (m, 3) over rows", &SUM, &[true, false], &array(layout(&[n * n, 3], &[3, 1]), F32));
    reduce("sum (m, 10) over columns", &SUM, &[false, true], &array(layout(&[n * 100, 10], &[10, 1]), F32));
}

fn reversed(a: &Array) -> Array {
    a.with_layout(a.layout().reversed(&[0, 1]).unwrap()).unwrap()
}

fn map(name: &str, k: &MapKernel, dtype: DType, ins: &[&Array]) {
    let n = ins.iter().map(|a| a.layout().numel()).max().unwrap_or(1);
    report(name, n, (ins.len() + 1) * dtype.size(), || {
        black_box(exec::map(k, dtype, &[], dtype, black_box(ins)).unwrap());
    });
}

fn reduce(name: &str, k: &ReduceKernel, dims: &[bool], a: &Array) {
    report(name, a.layout().numel(), a.dtype().size(), || {
        black_box(exec::reduce(k, DType::F32, a.dtype(), dims, false, black_box(a)).unwrap());
    });
}

fn copy(name: &str, a: &Array, dtype: DType) {
    let l = Layout::contiguous(a.sizes()).unwrap();
    report(name, l.numel(), a.dtype().size() + dtype.size(), || {
        black_box(exec::copy_to(a, l, dtype).unwrap());
    });
}

fn main() {
    stridegrad_cpu::register();
    if std::env::args().len() == 1 {
        slices();
        allocator();
    }

    ops();
}
