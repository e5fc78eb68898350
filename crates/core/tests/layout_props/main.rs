//! Layouts, loop plans and overlap tests against a model that knows no strides: the list of storage indices in
//! row-major logical order.

mod overlap;
mod plan;
mod views;

use proptest::prelude::*;
use stridegrad_core::Layout;

/// A strided array by its definition: element `i` in row-major logical order lies at storage index `at[i]`.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    sizes: Vec<usize>,
    at: Vec<usize>,
}

impl Model {
    fn of(l: &Layout) -> Model {
        // Not through `offsets()`, which is under test.
        let sizes = l.sizes().to_vec();
        let at = indices(&sizes)
            .map(|i| {
                let moved: isize = i.iter().zip(l.strides()).map(|(&i, &s)| i as isize * s).sum();
                (l.offset() as isize + moved) as usize
            })
            .collect();
        Model { sizes, at }
    }

    fn get(&self, index: &[usize]) -> usize {
        assert!(index.iter().zip(&self.sizes).all(|(i, n)| i < n));
        self.at[index.iter().zip(&self.sizes).fold(0, |at, (i, n)| at * n + i)]
    }

    /// The array of `sizes` whose element at an index is this one's at `of(index)`.
    fn gather(&self, sizes: &[usize], of: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        Model { sizes: sizes.to_vec(), at: indices(sizes).map(|i| self.get(&of(&i))).collect() }
    }

    fn with_dim(&self, d: usize, size: usize, of: impl Fn(usize) -> usize) -> Model {
        let mut sizes = self.sizes.clone();
        sizes[d] = size;
        self.gather(&sizes, |i| {
            let mut i = i.to_vec();
            i[d] = of(i[d]);
            i
        })
    }

    fn without_dim(&self, d: usize, at: usize) -> Model {
        let mut sizes = self.sizes.clone();
        sizes.remove(d);
        self.gather(&sizes, |i| {
            let mut i = i.to_vec();
            i.insert(d, at);
            i
        })
    }

    /// Whether some strides express these elements under `sizes`.
    fn has_strides_for(&self, sizes: &[usize]) -> bool {
        let m = Model { sizes: sizes.to_vec(), at: self.at.clone() };
        if m.at.is_empty() {
            return true;
        }
        let unit = |d: usize| (0..sizes.len()).map(|k| usize::from(k == d)).collect::<Vec<_>>();
        let strides: Vec<isize> = (0..sizes.len())
            .map(|d| if sizes[d] > 1 { m.get(&unit(d)) as isize - m.at[0] as isize } else { 0 })
            .collect();
        indices(sizes).all(|i| {
            let moved: isize = i.iter().zip(&strides).map(|(&i, &s)| i as isize * s).sum();
            m.get(&i) as isize == m.at[0] as isize + moved
        })
    }
}

/// All indices below `sizes`, row-major.
fn indices(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let sizes = sizes.to_vec();
    (0..sizes.iter().product()).map(move |flat: usize| {
        let mut rest = flat;
        let mut i: Vec<usize> = sizes
            .iter()
            .rev()
            .map(|n| {
                let at = rest % n;
                rest /= n;
                at
            })
            .collect();
        i.reverse();
        i
    })
}

/// Layouts of any make: small sizes (0 and 1 included), strides of both signs, 0 included, any offset that fits.
pub fn layout() -> impl Strategy<Value = Layout> {
    let dims = prop::collection::vec((prop_oneof![1 => 0usize..2, 6 => 1usize..5], -13isize..14), 0..5);
    let any = (dims.clone(), 0usize..5).prop_map(|(dims, extra)| {
        let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        let low: isize = sizes.iter().zip(&strides).map(|(&n, &s)| (n as isize - 1).max(0) * s.min(0)).sum();
        Layout::new(&sizes, &strides, low.unsigned_abs() + extra).unwrap()
    });
    // Mostly what ops make: dense memory, permuted, stepped, reversed, expanded.
    let made = (dims, any_order(), prop::collection::vec(0u8..5, 4)).prop_map(|(dims, order, how)| {
        let sizes: Vec<usize> = dims.into_iter().map(|(n, _)| n).collect();
        let mut l = Layout::contiguous(&sizes).unwrap();
        let rank = l.rank();
        let mut left: Vec<i64> = (0..rank as i64).collect();
        let order: Vec<i64> = (0..rank).map(|k| left.remove(order[k] % left.len())).collect();
        l = l.permute(&order).unwrap();
        for d in 0..rank {
            l = match how[d] {
                1 => l.slice(d as i64, None, None, 2).unwrap(),
                2 => l.reversed(&[d as i64]).unwrap(),
                3 => l.slice(d as i64, Some(1), None, 1).unwrap(),
                4 if l.size(d) == 1 => {
                    let mut to: Vec<i64> = vec![-1; rank];
                    to[d] = 3;
                    l.expand(&to).unwrap()
                }
                _ => l,
            };
        }
        l
    });
    prop_oneof![any, made]
}

fn any_order() -> impl Strategy<Value = [usize; 4]> {
    [0usize..4, 0usize..4, 0usize..4, 0usize..4]
}

#[track_caller]
fn agrees(got: &Layout, want: &Model) {
    assert_eq!((got.sizes(), Model::of(got).at), (&want.sizes[..], want.at.clone()), "{got:?}");
    let lowest_highest = want.at.iter().min().zip(want.at.iter().max()).map(|(&a, &b)| (a, b));
    assert_eq!(got.span(), lowest_highest, "{got:?}");
}
