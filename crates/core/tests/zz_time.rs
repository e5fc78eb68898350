use std::hint::black_box;
use std::time::Instant;
use stridegrad_core::*;
fn time<T>(what: &str, mut f: impl FnMut() -> T) {
    for _ in 0..1000 { let r = f(); black_box(&r); }
    let n = 50_000;
    let mut best = f64::MAX;
    for _ in 0..20 {
    let t = Instant::now();
    for _ in 0..n { let r = f(); black_box(&r); }
    best = best.min(t.elapsed().as_nanos() as f64 / n as f64);
    }
    println!("{what:40} {:8.1} ns", best);
}
#[test]
fn times() {
    let a = Layout::contiguous(&[64, 32, 14, 14]).unwrap();
    let cl = a.in_format(MemoryFormat::ChannelsLast).unwrap();
    let bias = Layout::contiguous(&[32, 1, 1]).unwrap();
    let s = Layout::scalar();
    let v = Layout::contiguous(&[16]).unwrap();
    let sz = [64usize, 32, 14, 14];
    time("plan v v v", || LoopPlan::new(black_box(&[16]), &[&v, &v, &v]).unwrap());
    time("plan contiguous 3", || LoopPlan::new(black_box(&sz), &[&a, &a, &a]).unwrap());
    time("plan cl 3", || LoopPlan::new(black_box(&sz), &[&cl, &cl, &cl]).unwrap());
    time("plan a cl a", || LoopPlan::new(black_box(&sz), &[&a, &cl, &a]).unwrap());
    time("plan a a bias", || LoopPlan::new(black_box(&sz), &[&a, &a, &bias]).unwrap());
    time("plan a a scalar", || LoopPlan::new(black_box(&sz), &[&a, &a, &s]).unwrap());
    time("result a a", || Layout::result_of(black_box(&[&a, &a]), &sz).unwrap());
    time("result cl cl", || Layout::result_of(black_box(&[&cl, &cl]), &sz).unwrap());
    time("result cl bias", || Layout::result_of(black_box(&[&cl, &bias]), &sz).unwrap());
    time("broadcast_sizes", || broadcast_sizes("x", black_box(&[&sz, &[32, 1, 1]])).unwrap());
    time("overlap same", || overlap(black_box(&a), 4, &a, 4));
    let (x, y) = (a.narrow(1, 0, 16).unwrap(), a.narrow(1, 16, 16).unwrap());
    time("overlap interleaved", || overlap(black_box(&x), 4, &y, 4));
    let (x, y) = (a.slice(3, None, None, 2).unwrap(), a.slice(3, Some(1), None, 2).unwrap());
    time("overlap even odd", || overlap(black_box(&x), 4, &y, 4));
    time("overlap a cl", || overlap(black_box(&a), 4, &cl, 4));
    let u = Layout::contiguous(&[28, 28]).unwrap().unfold(0, 3, 1).unwrap().unfold(1, 3, 1).unwrap();
    time("self_overlaps a", || self_overlaps(black_box(&a)));
    time("self_overlaps cl", || self_overlaps(black_box(&cl)));
    time("self_overlaps unfold", || self_overlaps(black_box(&u)));
    time("view", || a.try_view(black_box(&[64, 32, 196])).unwrap());
    time("permute", || a.permute(black_box(&[0, 2, 3, 1])).unwrap());
    time("select", || a.select(black_box(0), 3).unwrap());
    time("contiguous", || Layout::contiguous(black_box(&sz)).unwrap());
    time("offsets/elem", || a.select(0, 0).unwrap().offsets().sum::<usize>());
    let p = Philox::new(7, 0);
    let mut f = vec![0f32; 4096]; let mut d = vec![0f64; 4096];
    time("uniform f32 4096", || p.uniform_f32(0, &mut f));
    println!("{} {}", size_of::<Layout>(), size_of::<LoopPlan>());
}
