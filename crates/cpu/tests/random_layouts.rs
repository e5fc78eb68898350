//! Loops over random layouts against naive index loops.
#![forbid(unsafe_code)]

mod common;
use common::*;
use proptest::prelude::*;
use stridegrad_core::{DType, Layout, exec};

stridegrad_cpu::map_kernel! {
    static SUB("sub") = |[a, b], []| a - b;
}
stridegrad_cpu::reduce_kernel! {
    static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
}

/// How one operand lies in memory, dim by dim: rank in storage order, step, padding, reversal, broadcast.
type Dim = (u8, usize, usize, bool, bool);

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![8 => 1usize..9, 1 => Just(0), 2 => 10usize..70];
    prop::collection::vec(size, 0..5)
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    prop::collection::vec((any::<u8>(), 1usize..3, 0usize..3, any::<bool>(), prop::bool::weighted(0.2)), 4)
}

fn layout(sizes: &[usize], dims: &[Dim], offset: usize, broadcast: bool) -> Layout {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&d| dims[d].0);
    let (mut strides, mut next, mut at) = (vec![0isize; sizes.len()], 1isize, offset as isize);
    for d in order {
        let (_, step, pad, reversed, repeated) = dims[d];
        if repeated && broadcast {
            continue;
        }
        strides[d] = next * step as isize;
        next *= (sizes[d].max(1) * step + pad) as isize;
        if reversed && sizes[d] > 0 {
            at += strides[d] * (sizes[d] - 1) as isize;
            strides[d] = -strides[d];
        }
    }
    Layout::new(sizes, &strides, at as usize).unwrap()
}

/// Values that agree wherever a layout repeats an element.
fn consistent(l: &Layout, seed: u64) -> Vec<f64> {
    l.offsets().map(|o| ((o as u64 * 31 + seed) % 61) as f64 - 30.0).collect()
}

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::BF16, DType::I32, DType::I8];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn maps_and_casts(
        sizes in sizes(), a in dims(), b in dims(), out in dims(),
        offset in 0usize..4, from in 0usize..5, to in 0usize..5,
    ) {
        let (la, lb) = (layout(&sizes, &a, offset, true), layout(&sizes, &b, 0, true));
        let (x, y) = (consistent(&la, 1), consistent(&lb, 2));
        let (p, q) = (array(la, DTYPES[from], &x), array(lb, DTYPES[to], &y));
        let lo = layout(&sizes, &out, offset, false);
        let c = array(lo, DTYPES[to], &vec![0.0; lo.numel()]);
        let mut want = storage(&c);
        lo.offsets().zip(x.iter().zip(&y)).for_each(|(o, (x, y))| want[o] = x - y);
        exec::map_into(&SUB, DTYPES[to], &[], &c, &[&p, &q]).unwrap();
        prop_assert_eq!(storage(&c), want.clone());

        lo.offsets().zip(&x).for_each(|(o, x)| want[o] = *x);
        exec::copy_into(&c, &p).unwrap();
        prop_assert_eq!(storage(&c), want.clone());

        // In place, the output as second operand.
        lo.offsets().zip(x.iter().zip(&y)).for_each(|(o, (x, y))| want[o] = y - x);
        exec::map_into(&SUB, DTYPES[to], &[], &c, &[&q, &c]).unwrap();
        prop_assert_eq!(storage(&c), want.clone());

        lo.offsets().zip(&y).for_each(|(o, y)| want[o] += y);
        exec::accumulate(&c, &q).unwrap();
        prop_assert_eq!(storage(&c), want);
    }

    #[test]
    fn reductions(sizes in sizes(), a in dims(), mask in any::<[bool; 4]>(), dtype in 0usize..5) {
        let l = layout(&sizes, &a, 1, true);
        let x = consistent(&l, 3);
        let dims = &mask[..sizes.len()];
        let (compute, out) = match DTYPES[dtype] {
            DType::F64 => (DType::F64, DType::F64),
            d if d.is_floating() => (DType::F32, DType::F32),
            _ => (DType::I64, DType::I64),
        };
        let got = exec::reduce(&SUM, compute, out, dims, true, &array(l, DTYPES[dtype], &x)).unwrap();
        let kept: Vec<usize> = sizes.iter().zip(dims).map(|(&n, &r)| if r { 1 } else { n }).collect();
        let places = Layout::contiguous(&kept).unwrap();
        let mut want = vec![0.0; places.numel()];
        // Each element's place: the kept sizes broadcast to all.
        for (v, o) in x.iter().zip(places.broadcast_to(&sizes).unwrap().offsets()) {
            want[o] += v;
        }
        prop_assert_eq!(values(&got), want);
    }
}
