//! Layouts: how a tensor's logical indices map to the elements of its storage.
//!
//! An element `[i0, i1, ...]` lies at `offset + i0 * strides[0] + i1 * strides[1] + ...`. Strides are
//! signed and count elements. A [`Layout`] is pure geometry: it knows no storage, dtype or device.

mod contiguity;
mod result;
mod sizes;
mod slicing;
mod view;
mod views;

pub use contiguity::MemoryFormat;
pub use result::MAX_OPERANDS;
pub(crate) use result::{broadcast_strides, stride_order};
pub use sizes::{broadcast_sizes, checked_numel, infer_sizes, wrap_dim, wrap_dims};

use std::iter::FusedIterator;

use crate::{Dims, Error, ErrorKind, MAX_RANK, Result, bail};

/// Sizes, strides and offset of a strided array, in elements.
///
/// Invariants, kept by every constructor and method:
/// - the rank is at most [`MAX_RANK`], and sizes and strides have the same length;
/// - the product of `max(size, 1)` over the dims is at most `isize::MAX`, so that `numel` and every
///   fresh stride is exact;
/// - no index that a non-empty layout reaches is negative or beyond `isize::MAX`.
///
/// The stride of a dim of size 1 is free: it never changes which element is read. An empty layout reaches
/// nothing, so its strides and offset are free as well (do not form a pointer from them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    sizes: Dims<usize>,
    strides: Dims<isize>,
    offset: usize,
}

impl Layout {
    /// Row-major layout at offset 0: the last stride is 1, `stride[i] = max(size[i+1], 1) * stride[i+1]`.
    ///
    /// # Errors
    /// `Shape` beyond [`MAX_RANK`] dims, `Overflow` beyond `isize::MAX` elements.
    pub fn contiguous(sizes: &[usize]) -> Result<Layout> {
        checked_numel("layout", sizes)?;
        let sizes = Dims::from_slice(sizes).ok_or_else(|| too_many_dims("layout", sizes.len()))?;
        Ok(Layout::fresh(sizes))
    }

    /// A layout of the caller's making.
    ///
    /// # Errors
    /// `Shape` if the lengths differ or exceed [`MAX_RANK`], `Overflow` if the number of elements or an
    /// index passes `isize::MAX`, `Argument` if an index would be negative.
    pub fn new(sizes: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        Layout::checked("layout", sizes, strides, offset)
    }

    /// The layout of a 0-dim array: one element, no sizes, offset 0.
    pub fn scalar() -> Layout {
        Layout { sizes: Dims::new(), strides: Dims::new(), offset: 0 }
    }

    // `new` with the op to name in errors.
    fn checked(op: &'static str, sizes: &[usize], strides: &[isize], offset: usize) -> Result<Layout> {
        if sizes.len() != strides.len() {
            bail!(
                Shape,
                op,
                "mismatch in length of strides and shape: sizes {sizes:?} have {} dimensions, strides \
                 {strides:?} have {}",
                sizes.len(),
                strides.len()
            );
        }
        checked_numel(op, sizes)?;
        let layout = Layout {
            sizes: Dims::from_slice(sizes).ok_or_else(|| too_many_dims(op, sizes.len()))?,
            strides: Dims::from_slice(strides).ok_or_else(|| too_many_dims(op, sizes.len()))?,
            offset,
        };
        match layout.checked_span() {
            Some((lowest, _)) if lowest < 0 => bail!(
                Argument,
                op,
                "sizes {sizes:?} with strides {strides:?} and offset {offset} reach the negative index {lowest}"
            ),
            Some(_) => Ok(layout),
            None => bail!(
                Overflow,
                op,
                "sizes {sizes:?} with strides {strides:?} and offset {offset} reach beyond the largest index"
            ),
        }
    }

    // Row-major; the caller has checked `numel`.
    fn fresh(sizes: Dims<usize>) -> Layout {
        let mut strides = Dims::filled(1, sizes.len()).unwrap_or_default();
        for d in (1..sizes.len()).rev() {
            strides[d - 1] = strides[d] * sizes[d].max(1) as isize;
        }
        Layout { sizes, strides, offset: 0 }
    }

    // Lowest and highest reachable index; (0, 0) if empty. None if either leaves `isize`.
    fn checked_span(&self) -> Option<(isize, isize)> {
        let offset = isize::try_from(self.offset).ok()?;
        if self.is_empty() {
            return Some((0, 0));
        }
        let (mut lowest, mut highest) = (offset, offset);
        for (&size, &stride) in self.sizes.iter().zip(&*self.strides) {
            if size > 1 {
                let reach = isize::try_from(size - 1).ok()?.checked_mul(stride)?;
                if reach < 0 {
                    lowest = lowest.checked_add(reach)?;
                } else {
                    highest = highest.checked_add(reach)?;
                }
            }
        }
        Some((lowest, highest))
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The sizes.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The index of the element at logical index `[0, 0, ...]`.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements: the product of the sizes, 1 for a 0-dim layout.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The size of dim `i`.
    ///
    /// # Panics
    /// If `i` is not below the rank.
    pub fn size(&self, i: usize) -> usize {
        self.sizes[i]
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.sizes.contains(&0)
    }

    /// The lowest and the highest reachable element index, `None` if empty.
    pub fn span(&self) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        // Neither side leaves `isize`, by the type's invariant.
        let (mut lowest, mut highest) = (self.offset, self.offset);
        for (&size, &stride) in self.sizes.iter().zip(&*self.strides) {
            if size > 1 {
                let reach = (size - 1) * stride.unsigned_abs();
                if stride < 0 {
                    lowest -= reach;
                } else {
                    highest += reach;
                }
            }
        }
        Some((lowest, highest))
    }

    /// Whether every reachable index lies below `elements`; true for an empty layout.
    pub fn fits(&self, elements: usize) -> bool {
        self.span().is_none_or(|(_, highest)| highest < elements)
    }

    /// The same sizes and strides from another offset.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_offset(&self, offset: usize) -> Result<Layout> {
        Layout::new(&self.sizes, &self.strides, offset)
    }

    /// The strides in bytes for elements of `item` bytes (saturating).
    pub fn byte_strides(&self, item: usize) -> Dims<isize> {
        let item = isize::try_from(item).unwrap_or(isize::MAX);
        let mut strides = self.strides;
        strides.iter_mut().for_each(|s| *s = s.saturating_mul(item));
        strides
    }

    /// The index of the element at a logical index, `None` if that is out of range or has another length.
    pub fn index_of(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.rank() || index.iter().zip(&*self.sizes).any(|(i, n)| i >= n) {
            return None;
        }
        let moved = index.iter().zip(&*self.strides).map(|(&i, &s)| (i as isize).wrapping_mul(s));
        Some(moved.fold(self.offset, |at, m| at.wrapping_add_signed(m)))
    }

    /// The element indices in row-major logical order.
    ///
    /// ```
    /// use stridegrad_core::Layout;
    /// let t = Layout::contiguous(&[2, 3])?.t()?;
    /// assert_eq!(t.offsets().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), stridegrad_core::Error>(())
    /// ```
    pub fn offsets(&self) -> Offsets {
        Offsets { layout: *self, index: [0; MAX_RANK], at: self.offset, left: self.numel() }
    }

    // The offset moved by `steps * stride`. Only an empty layout can leave the range, and there the
    // offset means nothing: it stays.
    fn offset_after(&self, steps: usize, stride: isize) -> usize {
        (steps as isize)
            .checked_mul(stride)
            .and_then(|m| self.offset.checked_add_signed(m))
            .filter(|&o| o <= isize::MAX as usize)
            .unwrap_or(self.offset)
    }
}

#[cold]
fn too_many_dims(op: &'static str, rank: usize) -> Error {
    Error::new(
        ErrorKind::Shape,
        op,
        format!("a tensor has at most {MAX_RANK} dimensions, this one would have {rank}"),
    )
}

/// The element indices of a [`Layout`] in row-major logical order: see [`Layout::offsets`].
#[derive(Clone, Debug)]
pub struct Offsets {
    layout: Layout,
    index: [usize; MAX_RANK],
    at: usize,
    left: usize,
}

impl Iterator for Offsets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let now = self.at;
        for d in (0..self.layout.rank()).rev() {
            let (size, stride) = (self.layout.sizes[d], self.layout.strides[d]);
            if self.index[d] + 1 < size {
                self.index[d] += 1;
                self.at = self.at.wrapping_add_signed(stride);
                break;
            }
            self.at = self.at.wrapping_add_signed(((size - 1) as isize).wrapping_mul(stride).wrapping_neg());
            self.index[d] = 0;
        }
        Some(now)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Offsets {}
impl FusedIterator for Offsets {}
