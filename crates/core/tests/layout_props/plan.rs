//! Loop plans visit every element of the broadcast shape once, each operand at its own index.

use proptest::prelude::*;
use stridegrad_core::{Layout, LoopPlan, MAX_OPERANDS};

use crate::{Model, layout};

/// What a plan visits: the operands' indices, iteration by iteration.
fn visits(plan: &LoopPlan, start: usize, end: usize) -> Vec<Vec<isize>> {
    let (length, strides) = plan.inner();
    let mut all = Vec::new();
    plan.for_rows(start, end, |at| {
        assert_eq!(at.len(), plan.operands());
        for i in 0..length as isize {
            all.push(at.iter().zip(strides).map(|(a, s)| a + i * s).collect());
        }
    });
    all
}

/// The same from the layouts, in row-major order.
fn expected(sizes: &[usize], operands: &[&Layout]) -> Vec<Vec<isize>> {
    let lists: Vec<Vec<usize>> =
        operands.iter().map(|l| Model::of(&l.broadcast_to(sizes).unwrap()).at).collect();
    (0..sizes.iter().product()).map(|i| lists.iter().map(|l| l[i] as isize).collect()).collect()
}

#[track_caller]
fn check(sizes: &[usize], operands: &[&Layout]) -> LoopPlan {
    let plan = LoopPlan::new(sizes, operands).unwrap();
    let rows = plan.rows();
    assert_eq!(plan.operands(), operands.len());
    assert_eq!(plan.numel(), sizes.iter().product::<usize>());
    assert_eq!(plan.numel(), rows * plan.inner().0);
    let all = visits(&plan, 0, rows);
    let (mut got, mut want) = (all.clone(), expected(sizes, operands));
    got.sort_unstable();
    want.sort_unstable();
    assert_eq!(got, want, "{plan:?}");
    // Cut into chunks of rows: the same visits in the same order. Beyond the end there is nothing.
    for chunk in 1..4 {
        let parts: Vec<_> =
            (0..rows).step_by(chunk).flat_map(|r| visits(&plan, r, (r + chunk).min(rows))).collect();
        assert_eq!(parts, all);
    }
    assert_eq!(visits(&plan, 0, usize::MAX), all);
    assert!(visits(&plan, rows, rows + 1).is_empty());
    // Nothing is left to merge, to flip or to drop.
    if plan.numel() == 0 {
        assert_eq!((&plan.sizes[..], rows), (&[0][..], 0));
        assert!(plan.offsets.iter().all(|&o| o == 0));
        return plan;
    }
    let stride = |k: usize, d: usize| plan.strides[k][d];
    let ops = 0..operands.len();
    for d in 0..plan.sizes.len() {
        assert!(plan.sizes[d] > 1 || plan.sizes.len() == 1);
        assert!(!ops.clone().all(|k| stride(k, d) <= 0) || ops.clone().all(|k| stride(k, d) == 0));
        if d > 0 {
            let merges = |k: usize| stride(k, d - 1) == plan.sizes[d] as isize * stride(k, d);
            assert!(operands.is_empty() || !ops.clone().all(merges), "{plan:?}");
        }
    }
    let flat = plan.sizes.len() == 1 && ops.clone().all(|k| (0..2).contains(&stride(k, 0)));
    assert_eq!(plan.is_flat(), flat);
    plan
}

/// An operand that broadcasts to `sizes`: dropped leading dims, sizes of 1, gaps, reversed and permuted dims.
fn operand(sizes: &[usize], lead: usize, how: &[u8], order: &[usize; 4]) -> Layout {
    let sizes = &sizes[lead.min(sizes.len())..];
    let shrunk: Vec<usize> = sizes.iter().zip(how).map(|(&n, &h)| if h == 1 { 1 } else { n }).collect();
    // Memory in some order of the dims, some of them with a gap behind.
    let rank = shrunk.len();
    let mut left: Vec<usize> = (0..rank).collect();
    let mut strides = vec![0isize; rank];
    let mut next = 1isize;
    for pick in &order[..rank] {
        let d = left.remove(pick % left.len());
        strides[d] = next * if how[d] == 2 { 2 } else { 1 };
        next = strides[d] * shrunk[d].max(1) as isize;
    }
    let l = Layout::new(&shrunk, &strides, 3).unwrap();
    let back: Vec<i64> = (0..rank).filter(|&d| how[d] == 3).map(|d| d as i64).collect();
    l.reversed(&back).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_operands(
        base in layout(),
        more in prop::collection::vec(
            (0usize..3, prop::collection::vec(0u8..5, 4), [0usize..4, 0usize..4, 0usize..4, 0usize..4]),
            0..MAX_OPERANDS,
        ),
    ) {
        let others: Vec<Layout> =
            more.iter().map(|(lead, how, order)| operand(base.sizes(), *lead, how, order)).collect();
        let mut operands = vec![&base];
        operands.extend(&others);
        check(base.sizes(), &operands);
        operands.rotate_left(1);
        check(base.sizes(), &operands);
    }
}

#[test]
fn plans_of_the_usual_operands() {
    let a = Layout::contiguous(&[2, 3, 4]).unwrap();
    let plan = check(&[2, 3, 4], &[&a, &a, &a]);
    assert_eq!((&plan.sizes[..], plan.inner().1, plan.is_flat()), (&[24][..], &[1, 1, 1][..], true));
    // The same permutation of all operands is dense as well.
    let p = a.permute(&[2, 0, 1]).unwrap();
    assert!(check(&[4, 2, 3], &[&p, &p]).is_flat());
    // A scalar operand has stride 0.
    let plan = check(&[2, 3, 4], &[&a, &Layout::scalar()]);
    assert_eq!((plan.is_flat(), plan.inner().1), (true, &[1, 0][..]));
    // Bias over rows: two loops, the inner one dense in both.
    let bias = Layout::contiguous(&[4]).unwrap();
    let plan = check(&[2, 3, 4], &[&a, &bias]);
    assert_eq!((&plan.sizes[..], plan.inner()), (&[6, 4][..], (4, &[1, 1][..])));
    // The output decides the order.
    let plan = check(&[4, 2, 3], &[&Layout::contiguous(&[4, 2, 3]).unwrap(), &p]);
    assert_eq!(plan.inner().1, [1, 4]);
    let plan = check(&[4, 2, 3], &[&p, &Layout::contiguous(&[4, 2, 3]).unwrap()]);
    assert_eq!((&plan.sizes[..], plan.inner().1), (&[6, 4][..], &[1, 6][..]));
    // Reversed in all operands: walked forwards.
    let r = a.reversed(&[0, 1, 2]).unwrap();
    let plan = check(&[2, 3, 4], &[&r, &r]);
    assert!(plan.is_flat());
    assert_eq!(plan.offsets[..], [0, 0]);
    // Reversed in one of them: a negative stride.
    assert_eq!(check(&[2, 3, 4], &[&a, &r]).inner(), (24, &[1, -1][..]));
    // A reduction's output: stride 0 has no opinion on the order.
    let sum = Layout::contiguous(&[3]).unwrap().unsqueeze(1).unwrap();
    let plan = check(&[2, 3, 4], &[&sum, &a]);
    assert_eq!((&plan.sizes[..], plan.inner()), (&[2, 3, 4][..], (4, &[0, 1][..])));
    // One element, none, no operand.
    assert_eq!(check(&[], &[&Layout::scalar()]).inner(), (1, &[1][..]));
    assert!(check(&[1, 1], &[&Layout::scalar(), &Layout::new(&[1], &[9], 5).unwrap()]).is_flat());
    check(&[2, 0], &[&Layout::new(&[2, 0], &[1, 1], 99).unwrap()]);
    assert_eq!(LoopPlan::new(&[2, 3], &[]).unwrap().numel(), 6);
    assert_eq!(LoopPlan::new(&[], &[]).unwrap().numel(), 1);
}

#[test]
fn refusals() {
    let a = Layout::contiguous(&[2, 3]).unwrap();
    let e = LoopPlan::new(&[2, 4], &[&a]).unwrap_err();
    assert!(e.to_string().contains("size [2, 3] does not broadcast to [2, 4]"), "{e}");
    assert!(LoopPlan::new(&[3], &[&a]).is_err());
    assert!(LoopPlan::new(&[2, 3], &[&a; MAX_OPERANDS + 1]).is_err());
    assert!(LoopPlan::new(&[1; 9], &[&Layout::scalar()]).is_err());
    assert!(LoopPlan::new(&[usize::MAX, 2], &[&Layout::scalar()]).is_err());
}
