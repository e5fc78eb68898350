//! Every view op, and the layouts of fresh arrays.

use proptest::prelude::*;
use stridegrad_core::{Layout, broadcast_sizes};

use crate::{Model, agrees, any_order, indices, layout};

/// Sizes with the same product as `n`, from a list of random numbers.
fn factor(mut n: usize, picks: &[usize]) -> Vec<usize> {
    let mut sizes = Vec::new();
    for &pick in picks {
        let divisors: Vec<usize> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
        let d = divisors[pick % divisors.len()];
        sizes.push(d);
        n /= d;
    }
    sizes.push(n);
    sizes
}

fn wrap(d: i64, rank: usize) -> Option<usize> {
    let n = rank as i64;
    (-n..n).contains(&d).then(|| d.rem_euclid(n.max(1)) as usize)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn offsets_and_index_of(l in layout()) {
        let m = Model::of(&l);
        prop_assert_eq!(l.offsets().len(), m.at.len());
        prop_assert_eq!(l.offsets().collect::<Vec<_>>(), m.at.clone());
        prop_assert_eq!(l.numel(), m.at.len());
        prop_assert_eq!(l.is_empty(), m.at.is_empty());
        for (i, at) in indices(l.sizes()).zip(&m.at) {
            prop_assert_eq!(l.index_of(&i), Some(*at));
        }
        let end = m.at.iter().max().map_or(0, |m| m + 1);
        prop_assert!(l.fits(end) && (end == 0 || !l.fits(end - 1)));
    }

    #[test]
    fn view_exists_exactly_where_strides_do(l in layout(), picks in prop::collection::vec(0usize..12, 0..5)) {
        let m = Model::of(&l);
        let sizes = if l.is_empty() { vec![picks.len(), 0] } else { factor(l.numel(), &picks) };
        let asked: Vec<i64> = sizes.iter().map(|&s| s as i64).collect();
        match l.view(&asked) {
            Ok(v) => {
                agrees(&v, &Model { sizes: sizes.clone(), at: m.at.clone() });
                prop_assert_eq!(l.try_view(&sizes), Some(v));
                // One size may be left out.
                if !l.is_empty() {
                    for k in 0..asked.len() {
                        let mut one = asked.clone();
                        one[k] = -1;
                        prop_assert_eq!(l.view(&one).unwrap(), v);
                    }
                }
            }
            Err(e) => {
                prop_assert!(!m.has_strides_for(&sizes), "{l:?} as {sizes:?}: {e}");
                prop_assert_eq!(l.try_view(&sizes), None);
                let text = e.to_string();
                prop_assert!(text.contains("spans dimensions"), "{text}");
            }
        }
        // The blocks are a view, and the coarsest one.
        let blocks = l.view_blocks();
        prop_assert!(l.try_view(&blocks).is_some());
        if !l.is_empty() {
            for k in 1..blocks.len() {
                let mut merged = blocks.to_vec();
                merged[k - 1] *= merged.remove(k);
                prop_assert!(l.try_view(&merged).is_none());
            }
        }
    }

    #[test]
    fn flatten_unflatten(l in layout(), a in -5i64..5, b in -5i64..5, picks in prop::collection::vec(0usize..9, 0..3)) {
        let rank = l.rank();
        if let (Some(i), Some(j)) = (wrap(a, rank), wrap(b, rank)) {
            let got = l.flatten_sizes(a, b);
            if i <= j {
                let mut want = l.sizes()[..i].to_vec();
                want.push(l.sizes()[i..=j].iter().product());
                want.extend(&l.sizes()[j + 1..]);
                prop_assert_eq!(&got.unwrap()[..], &want[..]);
            } else {
                prop_assert!(got.is_err());
            }
            let split = factor(l.size(i).max(1), &picks);
            if l.size(i) > 0 {
                let asked: Vec<i64> = split.iter().map(|&s| s as i64).collect();
                let mut sizes = l.sizes().to_vec();
                sizes.splice(i..=i, split);
                agrees(&l.unflatten(a, &asked).unwrap(), &Model { sizes, at: Model::of(&l).at });
            }
        } else if rank > 0 {
            prop_assert!(l.flatten_sizes(a, b).is_err());
        }
    }

    #[test]
    fn orders(l in layout(), shuffle in any_order(), a in -5i64..5, b in -5i64..5) {
        let m = Model::of(&l);
        let rank = l.rank();
        let mut left: Vec<usize> = (0..rank).collect();
        let order: Vec<usize> = (0..rank).map(|k| left.remove(shuffle[k] % left.len())).collect();
        let permuted = |order: &[usize]| {
            let sizes: Vec<usize> = order.iter().map(|&d| m.sizes[d]).collect();
            m.gather(&sizes, |i| {
                let mut back = vec![0; rank];
                order.iter().zip(i).for_each(|(&d, &v)| back[d] = v);
                back
            })
        };
        // Every other dim by its negative name.
        let named: Vec<i64> =
            order.iter().enumerate().map(|(k, &d)| d as i64 - if k % 2 == 0 { 0 } else { rank as i64 }).collect();
        agrees(&l.permute(&named).unwrap(), &permuted(&order));
        if let (Some(i), Some(j)) = (wrap(a, rank), wrap(b, rank)) {
            let mut swapped: Vec<usize> = (0..rank).collect();
            swapped.swap(i, j);
            agrees(&l.transpose(a, b).unwrap(), &permuted(&swapped));
            let mut moved: Vec<usize> = (0..rank).collect();
            moved.remove(i);
            moved.insert(j, i);
            agrees(&l.movedim(&[a], &[b]).unwrap(), &permuted(&moved));
        } else if rank > 0 {
            prop_assert!(l.transpose(a, b).is_err());
            prop_assert!(l.movedim(&[a], &[b]).is_err());
        }
        // Many dims: named[k] goes to position k is the permutation itself.
        let positions: Vec<i64> = (0..rank as i64).collect();
        agrees(&l.movedim(&named, &positions).unwrap(), &permuted(&order));
        if rank <= 2 {
            let t: Vec<usize> = (0..rank).rev().collect();
            agrees(&l.t().unwrap(), &permuted(&t));
        } else {
            prop_assert!(l.t().is_err());
        }
    }

    #[test]
    fn select_narrow_slice(
        l in layout(), dim in -4i64..4, index in -6i64..6, len in -1i64..6,
        start in prop::option::of(-7i64..7), end in prop::option::of(-7i64..7), step in -4i64..5,
    ) {
        let m = Model::of(&l);
        let Some(d) = wrap(dim, l.rank()) else {
            prop_assert!(l.select(dim, index).is_err() && l.narrow(dim, index, len).is_err());
            prop_assert!(l.slice(dim, start, end, step).is_err() && l.unbind(dim).is_err());
            return Ok(());
        };
        let size = m.sizes[d];
        match (wrap(index, size), l.select(dim, index)) {
            (Some(i), got) => agrees(&got.unwrap(), &m.without_dim(d, i)),
            (None, got) => prop_assert!(got.is_err()),
        }
        let from = if index == size as i64 { Some(size) } else { wrap(index, size) };
        match from {
            Some(from) if len >= 0 && from + len as usize <= size => {
                agrees(&l.narrow(dim, index, len).unwrap(), &m.with_dim(d, len as usize, |i| from + i));
            }
            _ => prop_assert!(l.narrow(dim, index, len).is_err()),
        }
        if step == 0 {
            prop_assert!(l.slice(dim, start, end, step).is_err());
        } else {
            let picked = python_slice(size, start, end, step);
            agrees(&l.slice(dim, start, end, step).unwrap(), &m.with_dim(d, picked.len(), |i| picked[i]));
        }
        let all = l.unbind(dim).unwrap();
        prop_assert_eq!(all.len(), size);
        for (i, part) in all.iter().enumerate() {
            agrees(part, &m.without_dim(d, i));
        }
    }

    #[test]
    fn splits(l in layout(), dim in -4i64..4, n in 1i64..7, cuts in prop::collection::vec(0usize..5, 0..4)) {
        let m = Model::of(&l);
        let Some(d) = wrap(dim, l.rank()) else {
            prop_assert!(l.split_size(n, dim).is_err() && l.chunk(n, dim).is_err());
            return Ok(());
        };
        let size = m.sizes[d];
        let check = |parts: &[Layout], lengths: &[usize]| {
            assert_eq!(parts.len(), lengths.len());
            let mut start = 0;
            for (part, &length) in parts.iter().zip(lengths) {
                agrees(part, &m.with_dim(d, length, |i| start + i));
                start += length;
            }
            assert_eq!(start, size);
        };
        let even = |step: usize| -> Vec<usize> {
            if size == 0 { vec![0] } else { (0..size).step_by(step).map(|s| step.min(size - s)).collect() }
        };
        check(&l.split_size(n, dim).unwrap(), &even(n as usize));
        let chunks = if size == 0 { vec![0; n as usize] } else { even(size.div_ceil(n as usize)) };
        check(&l.chunk(n, dim).unwrap(), &chunks);
        let mut lengths = Vec::new();
        let mut left = size;
        for c in cuts {
            lengths.push(c.min(left));
            left -= c.min(left);
        }
        lengths.push(left);
        let asked: Vec<i64> = lengths.iter().map(|&l| l as i64).collect();
        check(&l.split(&asked, dim).unwrap(), &lengths);
        let mut wrong = asked;
        wrong[0] += 1;
        prop_assert!(l.split(&wrong, dim).is_err());
    }

    #[test]
    fn expands(l in layout(), lead in prop::collection::vec(0usize..3, 0..3), to in prop::collection::vec(0usize..4, 4)) {
        let m = Model::of(&l);
        let mut target = lead.clone();
        for (d, &size) in l.sizes().iter().enumerate() {
            target.push(if size == 1 { to[d] } else { size });
        }
        let want = m.gather(&target, |i| {
            i[lead.len()..].iter().zip(&m.sizes).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect()
        });
        agrees(&l.broadcast_to(&target).unwrap(), &want);
        let asked: Vec<i64> = target
            .iter()
            .enumerate()
            .map(|(i, &t)| match i.checked_sub(lead.len()) {
                Some(d) if l.size(d) == t => -1,
                _ => t as i64,
            })
            .collect();
        agrees(&l.expand(&asked).unwrap(), &want);
        prop_assert_eq!(&broadcast_sizes("x", &[l.sizes(), &target]).unwrap()[..], &target[..]);
        // Any other size is refused.
        for d in 0..l.rank() {
            if l.size(d) != 1 {
                let mut bad = target.clone();
                bad[lead.len() + d] += 1;
                prop_assert!(l.broadcast_to(&bad).is_err());
            }
        }
    }

    #[test]
    fn squeezes(l in layout(), dim in -6i64..6, which in prop::collection::vec(any::<bool>(), 4)) {
        let m = Model::of(&l);
        let rank = l.rank();
        let keep = |drop: &dyn Fn(usize) -> bool| Model {
            sizes: (0..rank).filter(|&d| !drop(d) || m.sizes[d] != 1).map(|d| m.sizes[d]).collect(),
            at: m.at.clone(),
        };
        agrees(&l.squeeze(None).unwrap(), &keep(&|_| true));
        let dims: Vec<i64> = (0..rank).filter(|&d| which[d]).map(|d| d as i64 - rank as i64).collect();
        agrees(&l.squeeze(Some(&dims)).unwrap(), &keep(&|d| which[d]));
        match wrap(dim, rank + 1) {
            Some(d) => {
                let mut sizes = m.sizes.clone();
                sizes.insert(d, 1);
                agrees(&l.unsqueeze(dim).unwrap(), &Model { sizes, at: m.at });
            }
            None => prop_assert!(l.unsqueeze(dim).is_err()),
        }
    }

    #[test]
    fn windows_diagonals_reversals(
        l in layout(), d1 in -4i64..4, d2 in -4i64..4, size in -1i64..6, step in 0i64..4, offset in -6i64..6,
        which in prop::collection::vec(any::<bool>(), 4),
    ) {
        let m = Model::of(&l);
        let rank = l.rank();
        if let Some(d) = wrap(d1, rank) {
            if size >= 0 && size as usize <= m.sizes[d] && step > 0 {
                let mut sizes = m.sizes.clone();
                sizes[d] = (m.sizes[d] - size as usize) / step as usize + 1;
                sizes.push(size as usize);
                let want = m.gather(&sizes, |i| {
                    let mut at = i[..rank].to_vec();
                    at[d] = at[d] * step as usize + i[rank];
                    at
                });
                agrees(&l.unfold(d1, size, step).unwrap(), &want);
            } else {
                prop_assert!(l.unfold(d1, size, step).is_err());
            }
        }
        match (wrap(d1, rank), wrap(d2, rank)) {
            (Some(a), Some(b)) if a != b => {
                let fits = |i: usize| {
                    let (row, col) = if offset >= 0 { (i, i + offset as usize) } else { (i + (-offset) as usize, i) };
                    (row < m.sizes[a] && col < m.sizes[b]).then_some((row, col))
                };
                let length = (0..).take_while(|&i| fits(i).is_some()).count();
                let mut sizes: Vec<usize> = (0..rank).filter(|&d| d != a && d != b).map(|d| m.sizes[d]).collect();
                sizes.push(length);
                let want = m.gather(&sizes, |i| {
                    let (row, col) = fits(i[rank - 2]).unwrap();
                    let mut rest = i.iter();
                    (0..rank).map(|d| if d == a { row } else if d == b { col } else { *rest.next().unwrap() }).collect()
                });
                agrees(&l.diagonal(offset, d1, d2).unwrap(), &want);
            }
            _ => prop_assert!(l.diagonal(offset, d1, d2).is_err()),
        }
        let dims: Vec<i64> = (0..rank).filter(|&d| which[d]).map(|d| d as i64).collect();
        let want = m.gather(&m.sizes, |i| {
            (0..rank).map(|d| if which[d] { m.sizes[d] - 1 - i[d] } else { i[d] }).collect()
        });
        agrees(&l.reversed(&dims).unwrap(), &want);
    }

    #[test]
    fn casts_of_bytes(l in layout(), from in 0usize..4, to in 0usize..4) {
        // Element k of `size` bytes covers the bytes k * size .. (k + 1) * size.
        let (from, to) = (1 << from, 1 << to);
        let bytes = |l: &Layout, size: usize| -> Vec<usize> {
            Model::of(l).at.iter().flat_map(|k| k * size..(k + 1) * size).collect()
        };
        if let Ok(v) = l.bitcast(from, to) {
            prop_assert_eq!(bytes(&v, to), bytes(&l, from));
            prop_assert_eq!(v.numel() * to, l.numel() * from);
        } else {
            prop_assert!(from != to);
            // A dense last dim of whole elements with aligned rows would have been taken.
            let plain = l.rank() > 0
                && l.strides()[l.rank() - 1] == 1
                && (to < from || (l.offset() % (to / from) == 0
                    && l.sizes()[l.rank() - 1] % (to / from) == 0
                    && l.strides()[..l.rank() - 1].iter().all(|s| s % (to / from) as isize == 0)));
            prop_assert!(!plain, "{l:?} {from} {to}");
        }
    }

    #[test]
    fn fresh_layouts_are_dense(l in layout(), other in layout(), mask in prop::collection::vec(any::<bool>(), 4)) {
        let dense = |f: &Layout, sizes: &[usize]| {
            assert_eq!((f.sizes(), f.offset()), (sizes, 0));
            let mut at = Model::of(f).at;
            at.sort_unstable();
            assert!(at.iter().enumerate().all(|(i, &a)| i == a), "{f:?} has gaps or overlaps");
        };
        dense(&l.dense_like(), l.sizes());
        if l.is_non_overlapping_and_dense() {
            prop_assert_eq!(l.dense_like(), Layout::new(l.sizes(), l.strides(), 0).unwrap());
            let mut at = Model::of(&l).at;
            at.sort_unstable();
            prop_assert!(at.iter().enumerate().all(|(i, &a)| i + l.offset() == a));
        }
        if let Ok(sizes) = broadcast_sizes("x", &[l.sizes(), other.sizes()]) {
            dense(&Layout::result_of(&[&l, &other], &sizes).unwrap(), &sizes);
        }
        dense(&Layout::result_of(&[&l], l.sizes()).unwrap(), l.sizes());
        for keepdim in [false, true] {
            let sizes: Vec<usize> = (0..l.rank())
                .filter(|&d| keepdim || !mask[d])
                .map(|d| if mask[d] { 1 } else { l.size(d) })
                .collect();
            dense(&l.reduce_result(&mask[..l.rank()], keepdim), &sizes);
        }
    }

    #[test]
    fn contiguity_is_what_it_says(l in layout()) {
        let m = Model::of(&l);
        let runs = |m: &Model| m.at.windows(2).all(|w| w[1] == w[0] + 1);
        prop_assert_eq!(l.is_contiguous(), runs(&m));
        let dims: Vec<i64> = (0..l.rank() as i64).rev().collect();
        prop_assert_eq!(l.is_fortran_contiguous(), runs(&Model::of(&l.permute(&dims).unwrap())));
        if l.rank() == 4 && !l.is_empty() {
            let nhwc = l.permute(&[0, 2, 3, 1]).unwrap();
            prop_assert_eq!(l.is_channels_last_contiguous(), runs(&Model::of(&nhwc)));
        }
    }

    /// Nothing panics, and what comes back keeps the invariants, whatever the arguments.
    #[test]
    fn hostile_arguments(
        l in layout(),
        a in prop_oneof![-9i64..9, any::<i64>()], b in prop_oneof![-9i64..9, any::<i64>()],
        c in prop_oneof![-9i64..9, any::<i64>()], list in prop::collection::vec(prop_oneof![-3i64..5, any::<i64>()], 0..10),
        dims in prop::collection::vec(-5i64..5, 0..10),
    ) {
        let results = [
            l.view(&list), l.permute(&dims), l.transpose(a, b), l.movedim(&dims, &list), l.select(a, b),
            l.slice(a, Some(b), Some(c), b), l.slice(0, None, Some(c), a), l.narrow(a, b, c), l.narrow(0, b, c),
            l.expand(&list), l.squeeze(Some(&dims)), l.unsqueeze(a), l.unfold(a, b, c), l.unfold(0, b.abs() % 4, c),
            l.diagonal(a, b, c), l.diagonal(a, 0, 1), l.reversed(&dims), l.unflatten(a, &list),
            l.unflatten(0, &list), l.as_strided(&list, &dims, Some(a)), l.as_strided(&list, &list, None),
            l.bitcast(a as usize, b as usize), l.bitcast(1 << (a as u32 % 4), 1 << (b as u32 % 4)),
        ];
        for r in results.into_iter().flatten() {
            prop_assert!(Layout::new(r.sizes(), r.strides(), r.offset()).is_ok(), "{r:?}");
            // And once more on what came out, whose strides may be extreme.
            let again = [r.unsqueeze(0), r.slice(0, None, None, a), r.reversed(&[0]), r.diagonal(1, 0, 1), r.view(&list),
                r.bitcast(4, 1), r.unfold(0, 1, c), r.broadcast_to(r.sizes())];
            for r in again.into_iter().flatten() {
                prop_assert!(Layout::new(r.sizes(), r.strides(), r.offset()).is_ok(), "{r:?}");
                let _ = (r.suggested_format(), r.is_contiguous(), r.is_non_overlapping_and_dense(), r.dense_like());
                let _ = (r.view_blocks(), r.byte_strides(8), r.in_format(stridegrad_core::MemoryFormat::ChannelsLast));
            }
        }
        let _ = (l.flatten_sizes(a, b), l.split(&list, a), l.with_offset(a as usize));
    }
}

/// Python's rule, step by step.
fn python_slice(size: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Vec<usize> {
    let n = size as i64;
    let absolute = |v: i64| if v < 0 { v + n } else { v };
    let mut picked = Vec::new();
    if step > 0 {
        let mut i = start.map_or(0, |v| absolute(v).clamp(0, n));
        let end = end.map_or(n, |v| absolute(v).clamp(0, n));
        while i < end {
            picked.push(i as usize);
            i += step;
        }
    } else {
        let mut i = start.map_or(n - 1, |v| absolute(v).clamp(-1, n - 1));
        let end = end.map_or(-1, |v| absolute(v).clamp(-1, n - 1));
        while i > end {
            picked.push(i as usize);
            i += step;
        }
    }
    picked
}
