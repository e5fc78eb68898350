//! Indexing expressions: `t.i(s![.., 1..3, -1])`.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use stridegrad_core::{Error, ErrorKind, Layout, Result};

use crate::Tensor;
use crate::faces::faces;

/// One place of an indexing expression; [`s!`](crate::s) makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexItem {
    /// One position: the dim disappears.
    At(i64),
    /// A range of positions, by Python's rules.
    Slice {
        /// The first position; `None` is the end the step comes from.
        start: Option<i64>,
        /// The position before which it ends; `None` is the end the step goes to.
        end: Option<i64>,
        /// The step, not zero.
        step: i64,
    },
    /// A new dim of size 1.
    NewAxis,
    /// As many whole dims as the other places leave.
    Ellipsis,
}

/// A new dim of size 1, in [`s!`](crate::s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAxis;

/// As many whole dims as the other places leave, in [`s!`](crate::s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ellipsis;

impl IndexItem {
    /// The range with another step; what is no range stays as it is (and an op that gets it refuses a step of 0).
    #[must_use]
    pub fn step_by(self, step: i64) -> IndexItem {
        match self {
            IndexItem::Slice { start, end, .. } => IndexItem::Slice { start, end, step },
            other => other,
        }
    }

    fn range(start: Option<i64>, end: Option<i64>) -> IndexItem {
        IndexItem::Slice { start, end, step: 1 }
    }

    /// The range that includes its last position; -1 is the last of all.
    fn inclusive(start: Option<i64>, last: i64) -> IndexItem {
        IndexItem::range(start, if last == -1 { None } else { last.checked_add(1) })
    }
}

impl From<NewAxis> for IndexItem {
    fn from(_: NewAxis) -> IndexItem {
        IndexItem::NewAxis
    }
}

impl From<Ellipsis> for IndexItem {
    fn from(_: Ellipsis) -> IndexItem {
        IndexItem::Ellipsis
    }
}

impl From<RangeFull> for IndexItem {
    fn from(_: RangeFull) -> IndexItem {
        IndexItem::range(None, None)
    }
}

macro_rules! from {
    ($($t:ty),*) => {$(
        impl From<$t> for IndexItem {
            fn from(i: $t) -> IndexItem { IndexItem::At(number(i)) }
        }
        impl From<Range<$t>> for IndexItem {
            fn from(r: Range<$t>) -> IndexItem { IndexItem::range(Some(number(r.start)), Some(number(r.end))) }
        }
        impl From<RangeFrom<$t>> for IndexItem {
            fn from(r: RangeFrom<$t>) -> IndexItem { IndexItem::range(Some(number(r.start)), None) }
        }
        impl From<RangeTo<$t>> for IndexItem {
            fn from(r: RangeTo<$t>) -> IndexItem { IndexItem::range(None, Some(number(r.end))) }
        }
        impl From<RangeInclusive<$t>> for IndexItem {
            fn from(r: RangeInclusive<$t>) -> IndexItem { IndexItem::inclusive(Some(number(*r.start())), number(*r.end())) }
        }
        impl From<RangeToInclusive<$t>> for IndexItem {
            fn from(r: RangeToInclusive<$t>) -> IndexItem { IndexItem::inclusive(None, number(r.end)) }
        }
    )*};
}
from!(i32, i64, isize, usize);

/// Positions beyond `i64` saturate: they are out of every range anyway.
fn number<T: TryInto<i64>>(v: T) -> i64 {
    v.try_into().unwrap_or(i64::MAX)
}

/// The places of an indexing expression, for [`Tensor::i`].
///
/// Each place is an integer (that dim's position; negative ones count from the end; the dim disappears), a range
/// (`..`, `1..3`, `..-1`, `2..`, `1..=3`; Python's rules: clamped, negative bounds count from the end), a range with a
/// step (`..;2`, `..;-1` walks backwards), [`NewAxis`](crate::NewAxis) (a new dim of size 1) or
/// [`Ellipsis`](crate::Ellipsis) (as many whole dims as are left). Dims not mentioned are taken whole.
///
/// ```
/// use stridegrad_autograd::{Ellipsis, NewAxis, Tensor, s};
/// let t = Tensor::arange(24.0).view([2, 3, 4]);
/// assert_eq!(t.i(s![.., 1..3, -1]).to_vec::<f32>(), [7.0, 11.0, 19.0, 23.0]);
/// assert_eq!(t.i(s![0, ..;2, NewAxis]).sizes(), [2, 1, 4]);
/// assert_eq!(t.i(s![Ellipsis, ..;-1]).strides(), [12, 4, -1]);
/// ```
#[macro_export]
macro_rules! s {
    (@ [$($done:tt)*]) => { [$($done)*] };
    (@ [$($done:tt)*] $e:expr ; $step:expr) => { $crate::s!(@ [$($done)* $crate::IndexItem::from($e).step_by($step),]) };
    (@ [$($done:tt)*] $e:expr ; $step:expr, $($rest:tt)*) => { $crate::s!(@ [$($done)* $crate::IndexItem::from($e).step_by($step),] $($rest)*) };
    (@ [$($done:tt)*] $e:expr) => { $crate::s!(@ [$($done)* $crate::IndexItem::from($e),]) };
    (@ [$($done:tt)*] $e:expr, $($rest:tt)*) => { $crate::s!(@ [$($done)* $crate::IndexItem::from($e),] $($rest)*) };
    (@ $($bad:tt)*) => { compile_error!("s! takes integers, ranges (`..` for all of a dim, `1..;2` with a step), NewAxis and Ellipsis, separated by commas") };
    () => { [$crate::IndexItem::from(..); 0] };
    ($($all:tt)+) => {{
        // `3..0` with a negative step is a slice here, not an empty range.
        #[allow(clippy::reversed_empty_ranges)]
        let items = $crate::s!(@ [] $($all)+);
        items
    }};
}

/// How many dims a place takes.
fn takes(item: &IndexItem) -> usize {
    matches!(item, IndexItem::At(_) | IndexItem::Slice { .. }) as usize
}

/// Refuses more places than dims, and a second ellipsis.
fn check(items: &[IndexItem], rank: usize) -> Result<()> {
    let count: usize = items.iter().map(takes).sum();
    if count > rank {
        return Err(Error::new(
            ErrorKind::Index,
            "i",
            format!("too many indices for a tensor of {rank} dims: {count}"),
        ));
    }
    if items.iter().filter(|i| **i == IndexItem::Ellipsis).count() > 1 {
        return Err(Error::new(ErrorKind::Index, "i", "an index can only have a single Ellipsis"));
    }
    Ok(())
}

fn index(l: &Layout, items: &[IndexItem]) -> Result<Layout> {
    let count: usize = items.iter().map(takes).sum();
    let (mut out, mut dim) = (*l, 0i64);
    for item in items {
        match *item {
            IndexItem::At(i) => out = out.select(dim, i)?,
            IndexItem::Slice { start, end, step } => {
                out = out.slice(dim, start, end, step)?;
                dim += 1;
            }
            IndexItem::NewAxis => {
                out = out.unsqueeze(dim)?;
                dim += 1;
            }
            IndexItem::Ellipsis => dim += (l.rank() - count) as i64,
        }
    }
    Ok(out)
}

faces! {
    /// The part that an indexing expression names, a view: `t.i(s![.., 1..3, -1])`. See [`s!`](crate::s). What is written
    /// into the view is written into the tensor.
    ///
    /// Panics if a position is out of range (bounds of ranges are clamped) or there are more places than dims.
    ///
    /// ```
    /// use stridegrad_autograd::{Tensor, s};
    /// let t = Tensor::zeros([2, 3]);
    /// t.i(s![.., 1]).fill_(5.0);
    /// assert_eq!(t.to_vec::<f32>(), [0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
    /// ```
    pub fn i | try_i(&self, index: impl AsRef<[IndexItem]>) -> Tensor {
        let items = index.as_ref();
        check(items, self.dim())?;
        self.make_view("index", &move |l| self::index(l, items))
    }
}
