//! Shared memory, against listing every element and byte.

use std::collections::HashSet;

use stridegrad_core::{Generator, Layout, Overlap, overlap, self_overlaps};

use crate::Model;

/// Random numbers below `n`, always the same ones.
struct Draw(Generator);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        let mut x = [0];
        self.0.reserve(1).below(n as u64, 0, &mut x);
        x[0] as usize
    }

    fn layout(&mut self, max_rank: usize, max_stride: usize, max_offset: usize) -> Layout {
        let rank = self.below(max_rank + 1);
        let sizes: Vec<usize> =
            (0..rank).map(|_| [0, 1, 2, 2, 3, 3, 4, 5, 2, 3, 4, 2][self.below(12)]).collect();
        let strides: Vec<isize> =
            (0..rank).map(|_| self.below(2 * max_stride + 1) as isize - max_stride as isize).collect();
        let low: isize = sizes.iter().zip(&strides).map(|(&n, &s)| (n as isize - 1).max(0) * s.min(0)).sum();
        Layout::new(&sizes, &strides, low.unsigned_abs() + self.below(max_offset + 1)).unwrap()
    }
}

fn collides(l: &Layout) -> bool {
    let at = Model::of(l).at;
    at.iter().collect::<HashSet<_>>().len() < at.len()
}

fn bytes(l: &Layout, item: usize) -> HashSet<usize> {
    Model::of(l).at.iter().flat_map(|k| k * item..(k + 1) * item).collect()
}

/// Equal elements at equal logical indices, leading sizes of 1 aside.
fn same_elements(a: &Layout, b: &Layout) -> bool {
    let sizes = |l: &Layout| l.sizes().iter().copied().skip_while(|&n| n == 1).collect::<Vec<_>>();
    sizes(a) == sizes(b) && Model::of(a).at == Model::of(b).at
}

#[test]
fn pairs_against_brute_force() {
    let mut draw = Draw(Generator::new(1));
    let mut seen = [0usize; 3];
    for round in 0..100_000 {
        let (rank, stride, offset) = if round % 2 == 0 { (3, 12, 24) } else { (4, 40, 90) };
        let (a, b) = (draw.layout(rank, stride, offset), draw.layout(rank, stride, offset));
        // One in ten pairs: the same elements by other means.
        let b = match round % 10 {
            0 => a,
            1 => a.unsqueeze(0).unwrap(),
            _ => b,
        };
        let mut item = || 1 << draw.below(4);
        let (a_item, b_item): (usize, usize) = if round % 3 == 0 { (item(), item()) } else { (4, 4) };
        let shared = !bytes(&a, a_item).is_disjoint(&bytes(&b, b_item));
        let want = match shared {
            false => Overlap::None,
            true if a_item == b_item && same_elements(&a, &b) => Overlap::Same,
            true => Overlap::Partial,
        };
        seen[want as usize] += 1;
        assert_eq!(overlap(&a, a_item, &b, b_item), want, "{a:?} of {a_item} and {b:?} of {b_item}");
        assert_eq!(overlap(&b, b_item, &a, a_item), want, "{b:?} of {b_item} and {a:?} of {a_item}");
    }
    assert!(seen.iter().all(|&n| n > 5_000), "{seen:?}");
}

#[test]
fn single_layouts_against_brute_force() {
    let mut draw = Draw(Generator::new(2));
    let mut seen = [0usize; 2];
    for round in 0..100_000 {
        let l = if round % 2 == 0 { draw.layout(3, 12, 3) } else { draw.layout(5, 300, 0) };
        let want = collides(&l);
        seen[usize::from(want)] += 1;
        assert_eq!(self_overlaps(&l), want, "{l:?}");
    }
    assert!(seen.iter().all(|&n| n > 10_000), "{seen:?}");
}

/// Strides without structure, where the search gives up and every element is marked.
#[test]
fn hard_layouts_are_still_exact() {
    let mut draw = Draw(Generator::new(3));
    let mut seen = [0usize; 2];
    for round in 0..40 {
        // 4^8 elements, 7^8 differences: about as many as there are sums, so that either answer comes up.
        let most = if round % 2 == 0 { 1 << 20 } else { 1 << 26 };
        let strides: Vec<isize> = (0..8).map(|_| (1 << 14) + draw.below(most) as isize).collect();
        let l = Layout::new(&[4; 8], &strides, 0).unwrap();
        let mut at: Vec<usize> = l.offsets().collect();
        at.sort_unstable();
        let want = at.windows(2).any(|w| w[0] == w[1]);
        seen[usize::from(want)] += 1;
        assert_eq!(self_overlaps(&l), want, "{l:?}");
        // Between two such layouts a miss is out of the question; a false alarm is allowed.
        let other = l.with_offset(1 + draw.below(1 << 16)).unwrap();
        let mut both = at.clone();
        both.extend(other.offsets());
        both.sort_unstable();
        both.dedup();
        at.dedup();
        if both.len() < 2 * at.len() {
            assert_eq!(overlap(&l, 4, &other, 4), Overlap::Partial);
        }
    }
    assert!(seen.iter().all(|&n| n > 3), "{seen:?}");
}

/// The cases of PyTorch's and NumPy's documentation and issues.
#[test]
fn known_cases() {
    let r = |n: usize| Layout::contiguous(&[n]).unwrap();
    let part = |l: Layout, start: i64, end: i64, step: i64| l.slice(0, Some(start), Some(end), step).unwrap();
    let of = |a: &Layout, b: &Layout| overlap(a, 4, b, 4);
    let x = r(6);
    assert_eq!(of(&x, &x), Overlap::Same);
    assert_eq!(of(&part(x, 1, 6, 1), &part(x, 0, 5, 1)), Overlap::Partial); // x[1:] += x[:-1]
    assert_eq!(of(&part(x, 0, 6, 2), &part(x, 1, 6, 2)), Overlap::None); // x[::2] += x[1::2]
    assert_eq!(of(&part(x, 0, 3, 1), &part(x, 3, 6, 1)), Overlap::None);
    assert_eq!(of(&x, &x.select(0, 2).unwrap()), Overlap::Partial); // x *= x[2]
    assert_eq!(of(&x, &x.reversed(&[0]).unwrap()), Overlap::Partial);
    let m = Layout::contiguous(&[3, 3]).unwrap();
    assert_eq!(of(&m, &m.t().unwrap()), Overlap::Partial); // x += x.t()
    // The holes of PyTorch's check: a[:, 1:] = a[:, :-1], a -= a[:, :1], overlapping as_strided.
    let columns = |a: i64, b: i64| m.slice(1, Some(a), Some(b), 1).unwrap();
    assert_eq!(of(&columns(1, 3), &columns(0, 2)), Overlap::Partial);
    assert_eq!(of(&m, &columns(0, 1)), Overlap::Partial);
    assert_eq!(of(&columns(0, 1), &columns(1, 3)), Overlap::None);
    assert!(self_overlaps(&r(4).as_strided(&[3, 2], &[1, 1], None).unwrap()));
    assert!(self_overlaps(&r(1).expand(&[3]).unwrap()));
    assert!(!self_overlaps(&r(1).expand(&[0]).unwrap()));
    assert!(!self_overlaps(&m.t().unwrap().reversed(&[0]).unwrap()));
    // Channels of one image batch, read through another dtype.
    let cl = Layout::contiguous(&[2, 4, 5, 8]).unwrap().permute(&[0, 3, 1, 2]).unwrap();
    let (a, b) = (cl.narrow(1, 0, 4).unwrap(), cl.narrow(1, 4, 4).unwrap());
    assert_eq!(of(&a, &b), Overlap::None);
    let halves = Layout::new(&[8], &[2], 0).unwrap();
    let odd = Layout::new(&[8], &[2], 1).unwrap();
    assert_eq!(overlap(&halves, 2, &odd, 2), Overlap::None);
    assert_eq!(overlap(&r(4), 4, &odd, 2), Overlap::Partial);
    // Strides of size-1 dims mean nothing; the shape does.
    let row = Layout::new(&[1, 4], &[999, 1], 0).unwrap();
    assert_eq!(of(&row, &Layout::contiguous(&[1, 4]).unwrap()), Overlap::Same);
    assert_eq!(of(&row, &r(4)), Overlap::Same);
    assert_eq!(of(&row, &row.t().unwrap()), Overlap::Partial);
    assert_eq!(
        of(&Layout::contiguous(&[2, 3]).unwrap(), &Layout::contiguous(&[3, 2]).unwrap()),
        Overlap::Partial
    );
    // Far beyond any storage, nothing overflows.
    let far = Layout::new(&[2], &[isize::MAX - 1], 0).unwrap();
    assert_eq!(overlap(&far, 8, &part(x, 0, 2, 1), 8), Overlap::Partial);
    assert!(!self_overlaps(&far));
}
