//! `view`: other sizes over the same elements in the same order.

use super::{Layout, infer_sizes, wrap_dim};
use crate::{Dims, Error, ErrorKind, Result, bail};

impl Layout {
    /// The same elements in the same row-major order under other sizes, one of which may be -1.
    ///
    /// Exists exactly where the strides allow it: neighbouring dims can be merged if
    /// `stride[d] == size[d + 1] * stride[d + 1]`, and no new dim may span a place where they cannot.
    ///
    /// # Errors
    /// `Shape` if the sizes do not fit the number of elements, `NotViewable` if the strides do not allow it.
    ///
    /// ```
    /// use stridegrad_core::Layout;
    /// let x = Layout::contiguous(&[2, 3, 4])?.permute(&[1, 2, 0])?;
    /// assert_eq!(x.view(&[12, 2])?.strides(), [1, 12]);
    /// assert!(x.view(&[24]).is_err());
    /// # Ok::<(), stridegrad_core::Error>(())
    /// ```
    pub fn view(&self, sizes: &[i64]) -> Result<Layout> {
        let sizes = infer_sizes("view", sizes, self.numel())?;
        self.view_as(sizes).map_err(|broken| self.not_viewable("view", &sizes, broken))
    }

    /// [`Layout::view`] without -1 and without an error's cost: `None` if the sizes have another number of
    /// elements or the strides do not allow the view.
    pub fn try_view(&self, sizes: &[usize]) -> Option<Layout> {
        let numel = super::checked_numel("view", sizes).ok()?;
        if numel != self.numel() {
            return None;
        }
        self.view_as(Dims::from_slice(sizes)?).ok()
    }

    // PyTorch's rule (strides of new dims of size 1 included). `sizes` has `numel` elements.
    fn view_as(&self, sizes: Dims<usize>) -> Result<Layout, Broken> {
        let rank = self.rank();
        if self.is_empty() && *sizes == *self.sizes {
            return Ok(*self);
        }
        if rank == 0 || self.is_empty() {
            return Ok(Layout { offset: self.offset, ..Layout::fresh(sizes) });
        }
        let mut strides = Dims::filled(0isize, sizes.len()).unwrap_or_default();
        let mut new = sizes.len(); // dims from here on are done
        let mut base = self.strides[rank - 1];
        let mut chunk = 1usize;
        for d in (0..rank).rev() {
            chunk *= self.sizes[d];
            let ends = d == 0
                || (self.sizes[d - 1] != 1
                    && base.checked_mul(chunk as isize).is_none_or(|s| s != self.strides[d - 1]));
            if !ends {
                continue;
            }
            let mut filled = 1usize;
            while new > 0 && (filled < chunk || sizes[new - 1] == 1) {
                new -= 1;
                strides[new] = base.saturating_mul(filled as isize);
                filled = filled.saturating_mul(sizes[new]);
            }
            if filled != chunk {
                return Err(Broken { old: d, new });
            }
            if d > 0 {
                base = self.strides[d - 1];
                chunk = 1;
            }
        }
        if new > 0 {
            return Err(Broken { old: 0, new: new - 1 });
        }
        Ok(Layout { sizes, strides, offset: self.offset })
    }

    #[cold]
    fn not_viewable(&self, op: &'static str, sizes: &[usize], broken: Broken) -> Error {
        let (old, strides) = (&self.sizes, &self.strides);
        let inner = broken.old;
        let outer = inner.saturating_sub(1);
        let blocks = self.view_blocks();
        Error::new(
            ErrorKind::NotViewable,
            op,
            format!(
                "sizes {sizes:?} are not a view of sizes {old:?} with strides {strides:?}: new dimension {} (size {}) \
                 spans dimensions {outer} and {inner}, which do not lie one after the other in memory (stride {} of \
                 dimension {outer} is not what follows dimension {inner} of size {} and stride {})",
                broken.new,
                sizes.get(broken.new).copied().unwrap_or(1),
                strides[outer],
                old[inner],
                strides[inner],
            ),
        )
        .hint(format!(
            "sizes that split the blocks {blocks:?} one by one are views; reshape() copies where it must, and \
             contiguous().view() always does"
        ))
    }

    /// The sizes of the largest view of this layout: neighbouring dims merged wherever the strides allow it.
    /// A view exists exactly if its sizes split these blocks one by one. An empty layout is one block.
    pub fn view_blocks(&self) -> Dims<usize> {
        let mut blocks = Dims::new();
        let mut last = 0isize; // stride of the block's fastest dim so far
        for (&size, &stride) in self.sizes.iter().zip(&*self.strides) {
            if size == 1 {
                continue;
            }
            let merges = !blocks.is_empty() && stride.checked_mul(size as isize).is_some_and(|s| s == last);
            match blocks.len() {
                n if merges => blocks[n - 1] *= size,
                _ => {
                    blocks.push(size);
                }
            }
            last = stride;
        }
        if self.is_empty() {
            return Dims::filled(0, 1).unwrap_or_default();
        }
        blocks
    }

    /// The sizes after dims `start..=end` are merged into one; a 0-dim layout becomes 1-dim.
    ///
    /// # Errors
    /// `Dim` if a dim is out of range or `start` comes after `end`.
    pub fn flatten_sizes(&self, start: i64, end: i64) -> Result<Dims<usize>> {
        let start = wrap_dim("flatten", start, self.rank())?;
        let end = wrap_dim("flatten", end, self.rank())?;
        if start > end {
            bail!(Dim, "flatten", "start_dim cannot come after end_dim, got {start} and {end}");
        }
        if self.rank() == 0 {
            return Ok(Dims::filled(1, 1).unwrap_or_default());
        }
        let mut sizes = Dims::new();
        for (d, &size) in self.sizes.iter().enumerate() {
            if d > start && d <= end {
                sizes[start] *= size;
            } else {
                sizes.push(size);
            }
        }
        Ok(sizes)
    }

    /// Dim `dim` split into `sizes`, one of which may be -1.
    ///
    /// # Errors
    /// `Dim` if `dim` is out of range, `Shape` if the sizes do not multiply to the dim's size.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Layout> {
        let d = wrap_dim("unflatten", dim, self.rank())?;
        if self.rank() == 0 {
            bail!(Dim, "unflatten", "a 0-dim tensor has no dimension to split");
        }
        if sizes.is_empty() {
            bail!(Shape, "unflatten", "sizes must be non-empty");
        }
        let split = infer_sizes("unflatten", sizes, self.sizes[d])?;
        let rank = self.rank() - 1 + split.len();
        let mut all = self.sizes;
        all.remove(d);
        for &size in split.iter().rev() {
            all.insert(d, size).ok_or_else(|| super::too_many_dims("unflatten", rank))?;
        }
        super::checked_numel("unflatten", &all)?;
        self.view_as(all).map_err(|broken| self.not_viewable("unflatten", &all, broken))
    }

    /// The layout of the same bytes as elements of `to_size` bytes instead of `from_size`: the last dim grows or
    /// shrinks by the ratio.
    ///
    /// # Errors
    /// `NotViewable` unless the last dim is contiguous (stride 1, or size 1), and, for larger elements, its size,
    /// the offset and the strides of the other dims are divisible by the ratio. A 0-dim layout takes only an
    /// element of the same size.
    pub fn bitcast(&self, from_size: usize, to_size: usize) -> Result<Layout> {
        const OP: &str = "view_dtype";
        if from_size == to_size {
            return Ok(*self);
        }
        let (narrow, wide) = (from_size.min(to_size), from_size.max(to_size));
        if narrow == 0 || !wide.is_multiple_of(narrow) {
            bail!(
                Argument,
                OP,
                "elements of {from_size} bytes cannot be read as elements of {to_size} bytes"
            );
        }
        let ratio = wide / narrow;
        let Some(last) = self.rank().checked_sub(1) else {
            bail!(NotViewable, OP, "a 0-dim tensor cannot be viewed as a dtype of another size");
        };
        let (sizes, strides) = (&self.sizes, &self.strides);
        if strides[last] != 1 && sizes[last] != 1 && !self.is_empty() {
            bail!(
                NotViewable,
                OP,
                "the last stride must be 1 to view as a dtype of another size, got sizes {sizes:?} and strides \
                 {strides:?}"
            );
        }
        let mut out = *self;
        out.strides[last] = 1;
        if to_size < from_size {
            out.sizes[last] = sizes[last].saturating_mul(ratio);
            for s in &mut out.strides[..last] {
                *s = s.saturating_mul(ratio as isize);
            }
            let Some(offset) = self.offset.checked_mul(ratio) else {
                bail!(Overflow, OP, "offset {} times {ratio} passes the machine word", self.offset);
            };
            return Layout::checked(OP, &out.sizes, &out.strides, offset);
        }
        if !sizes[last].is_multiple_of(ratio) {
            bail!(NotViewable, OP, "the last size must be divisible by {ratio}, got sizes {sizes:?}");
        }
        if !self.offset.is_multiple_of(ratio) {
            bail!(NotViewable, OP, "the storage offset must be divisible by {ratio}, got {}", self.offset);
        }
        out.sizes[last] /= ratio;
        for d in 0..last {
            if strides[d] % ratio as isize != 0 && sizes[d] > 1 {
                bail!(
                    NotViewable,
                    OP,
                    "the stride of dimension {d} must be divisible by {ratio}, got sizes {sizes:?} and strides {strides:?}"
                );
            }
            out.strides[d] = strides[d] / ratio as isize;
        }
        out.offset /= ratio;
        Ok(out)
    }
}

// Where a view fails: new dim `new` spans old dims `old - 1` and `old`.
#[derive(Clone, Copy)]
struct Broken {
    old: usize,
    new: usize,
}
