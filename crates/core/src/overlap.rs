//! Exact tests for memory that is shared: within one layout and between two.
//!
//! Whether two strided arrays share a byte is the question whether an equation
//! `c0 * x0 + c1 * x1 + ... = target` has a solution in integers `0 <= xi <= bound_i`. The common cases (dense,
//! nested strides, disjoint ranges, different residues) are decided without a search.

use crate::{Dims, Layout, MAX_RANK};

/// How the elements that two layouts reach in one storage relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// No byte in common.
    None,
    /// The same elements at the same logical indices: an elementwise op may read one and write the other.
    Same,
    /// Some bytes in common, or too hard to tell.
    Partial,
}

/// Work bound of the search, in visited values: some tens of microseconds.
const SEARCH_STEPS: usize = 20_000;

/// Whether two logical indices reach the same element. Exact.
///
/// Where the search passes its work bound, the elements are listed and sorted; only if there is no memory for the list
/// is the answer a conservative `true`.
pub fn self_overlaps(l: &Layout) -> bool {
    if l.is_empty() {
        return false;
    }
    // Dims of more than one element, by |stride|.
    let mut dims: Dims<(usize, usize)> = Dims::new();
    for (&size, &stride) in l.sizes().iter().zip(l.strides()) {
        match size {
            1 => {}
            _ if stride == 0 => return true,
            _ => {
                dims.push((stride.unsigned_abs(), size));
            }
        }
    }
    dims.sort_unstable();
    // Nested: each stride steps over everything that the smaller ones reach.
    let (mut reach, mut nested) = (0usize, true);
    for &(stride, size) in &*dims {
        nested &= stride > reach;
        reach += stride * (size - 1); // in the end the span, which fits
    }
    if nested {
        return false;
    }
    let numel: usize = dims.iter().map(|&(_, size)| size).product();
    if numel - 1 > reach {
        return true; // more indices than elements
    }
    // Two indices collide iff some difference d != 0, |d_i| < size_i, has sum(d_i * stride_i) = 0. Let i be the dim
    // of the largest stride with d_i != 0, and d_i > 0; the smaller ones shift to y_j = d_j + size_j - 1 >= 0.
    let mut steps = SEARCH_STEPS;
    for i in 1..dims.len() {
        let mut terms = Terms::new();
        let (stride, size) = dims[i];
        let mut target = -(stride as i128); // x_i = 1 + x, x in 0..=size - 2
        terms.add(stride as i128, size as i128 - 2);
        for &(stride, size) in &dims[..i] {
            terms.add(stride as i128, 2 * (size as i128 - 1));
            target += stride as i128 * (size as i128 - 1);
        }
        match terms.solve(target, &mut steps) {
            Some(true) => return true,
            Some(false) => {}
            None => return visits_twice(l),
        }
    }
    false
}

// The last resort: lists every element.
fn visits_twice(l: &Layout) -> bool {
    let mut all: Vec<usize> = Vec::new();
    if all.try_reserve_exact(l.numel()).is_err() {
        return true;
    }
    all.extend(l.offsets());
    all.sort_unstable();
    all.windows(2).any(|w| w[0] == w[1])
}

/// How layouts `a` and `b`, over the *same storage*, with elements of `a_item` and `b_item` bytes, relate.
///
/// `Same` means equal sizes (leading 1s aside), offset and strides (those of size-1 dims aside) and equal items;
/// whether such a layout overlaps itself is for [`self_overlaps`]. Otherwise exact over bytes, but for a search that
/// passes a fixed work bound, which answers `Partial`: a false alarm is possible for contrived strides, a miss is
/// not.
pub fn overlap(a: &Layout, a_item: usize, b: &Layout, b_item: usize) -> Overlap {
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (a.span(), b.span()) else {
        return Overlap::None;
    };
    if a_item == b_item && same(a, b) {
        return Overlap::Same;
    }
    if a_item == b_item && (a_high < b_low || b_high < a_low) {
        return Overlap::None;
    }
    // Bytes from here on; a storage has at most isize::MAX of them.
    let bytes = |index: usize, item: usize| index.checked_mul(item).and_then(|b| isize::try_from(b).ok());
    let (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) = (
        bytes(a_low, a_item),
        bytes(b_low, b_item),
        a_high.checked_add(1).and_then(|n| bytes(n, a_item)),
        b_high.checked_add(1).and_then(|n| bytes(n, b_item)),
    ) else {
        return Overlap::Partial;
    };
    if a_last <= b_first || b_last <= a_first {
        return Overlap::None;
    }
    // a_first + sum(|s| * x) + alpha = b_first + sum(|t| * y) + beta; with y reversed, all coefficients are positive.
    let mut terms = Terms::new();
    let mut target = b_first as i128 - a_first as i128;
    for (l, item, reversed) in [(a, a_item, false), (b, b_item, true)] {
        let item = item as i128;
        terms.add(1, item - 1);
        if reversed {
            target += item - 1;
        }
        for (&size, &stride) in l.sizes().iter().zip(l.strides()) {
            let (coefficient, bound) = (stride.unsigned_abs() as i128 * item, size as i128 - 1);
            terms.add(coefficient, bound);
            if reversed {
                target += coefficient * bound;
            }
        }
    }
    match terms.solve(target, &mut { SEARCH_STEPS }) {
        Some(false) => Overlap::None,
        _ => Overlap::Partial,
    }
}

// Equal sizes, offset and strides, apart from leading dims of size 1 and the strides of any of size 1.
fn same(a: &Layout, b: &Layout) -> bool {
    if a.offset() != b.offset() {
        return false;
    }
    if a.sizes() == b.sizes() && a.strides() == b.strides() {
        return true;
    }
    let (rank_a, rank_b) = (a.rank(), b.rank());
    let dim = |l: &Layout, from_end: usize| match l.rank().checked_sub(from_end + 1) {
        Some(d) if l.size(d) != 1 => (l.size(d), l.strides()[d]),
        _ => (1, 0),
    };
    (0..rank_a.max(rank_b)).all(|i| dim(a, i) == dim(b, i))
}

// A bounded linear equation: sum(c_i * x_i) = target, 0 <= x_i <= bound_i, all c_i > 0.
struct Terms {
    list: [Term; 2 * MAX_RANK + 2],
    len: usize,
}

#[derive(Clone, Copy, Default)]
struct Term {
    coefficient: i128,
    bound: i128,
    // Over this term and those after it:
    reach: i128,
    gcd: i128,
}

impl Terms {
    fn new() -> Terms {
        Terms { list: [Term::default(); 2 * MAX_RANK + 2], len: 0 }
    }

    fn add(&mut self, coefficient: i128, bound: i128) {
        if coefficient != 0 && bound > 0 {
            self.list[self.len] = Term { coefficient, bound, ..Term::default() };
            self.len += 1;
        }
    }

    // Whether there is a solution; None if `steps` run out.
    fn solve(mut self, target: i128, steps: &mut usize) -> Option<bool> {
        self.simplify();
        let list = &mut self.list[..self.len];
        let (mut reach, mut gcd) = (0, 0);
        for t in list.iter_mut().rev() {
            reach += t.coefficient * t.bound;
            gcd = gcd_of(gcd, t.coefficient);
            (t.reach, t.gcd) = (reach, gcd);
        }
        search(list, target, steps)
    }

    // Sorts by falling coefficient and merges c*x (x <= u) with k*c*y (y <= v) into c*z (z <= u + k*v) wherever
    // every such z is reached, that is where u >= k - 1: contiguous dims become one.
    fn simplify(&mut self) {
        let list = &mut self.list[..self.len];
        list.sort_unstable_by_key(|t| t.coefficient);
        let mut kept = 0;
        for i in 0..list.len() {
            let t = list[i];
            // Any smaller term may take it in; after growing, that term may take in more of those to come.
            let host = list[..kept]
                .iter_mut()
                .find(|h| t.coefficient % h.coefficient == 0 && h.bound >= t.coefficient / h.coefficient - 1);
            match host {
                Some(h) => h.bound += t.coefficient / h.coefficient * t.bound,
                None => {
                    list[kept] = t;
                    kept += 1;
                }
            }
        }
        list[..kept].reverse();
        self.len = kept;
    }
}

// Depth first from the largest coefficient; every value tried agrees with the rest modulo the rest's gcd.
fn search(terms: &[Term], target: i128, steps: &mut usize) -> Option<bool> {
    let Some((first, rest)) = terms.split_first() else { return Some(target == 0) };
    if target < 0 || target > first.reach || target % first.gcd != 0 {
        return Some(false);
    }
    let Some(next) = rest.first() else { return Some(true) }; // divisible and within reach
    // x * c = target (mod next.gcd), all divided by the common gcd.
    let modulus = next.gcd / first.gcd;
    let c = first.coefficient / first.gcd;
    let residue = (target / first.gcd % modulus) * inverse(c % modulus, modulus) % modulus;
    let low = (target - next.reach).max(0) / first.coefficient;
    let high = first.bound.min(target / first.coefficient);
    let mut x = low + (residue - low).rem_euclid(modulus);
    while x <= high {
        *steps = steps.checked_sub(1)?;
        if search(rest, target - x * first.coefficient, steps)? {
            return Some(true);
        }
        x += modulus;
    }
    Some(false)
}

fn gcd_of(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

// The inverse of `a` modulo `m`, which are coprime; 0 for m = 1.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut r0, mut r1, mut t0, mut t1) = (m, a, 0, 1);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (t0, t1) = (t1, t0 - q * t1);
    }
    t0.rem_euclid(m)
}
