//! View ops that keep a part of a dim: select, slice, narrow, split and kin.

use super::{Layout, wrap_dim};
use crate::{Error, ErrorKind, Result, bail};

impl Layout {
    // Wraps `dim`, refusing 0-dim layouts.
    fn part_dim(&self, op: &'static str, dim: i64) -> Result<usize> {
        if self.rank() == 0 {
            bail!(Dim, op, "{op}() cannot be applied to a 0-dim tensor");
        }
        wrap_dim(op, dim, self.rank())
    }

    // `length` elements of dim `d` from `start` on, `step` apart. `start` lies inside the dim unless `length` is 0.
    fn part(&self, d: usize, start: usize, length: usize, step: isize) -> Layout {
        let mut out = *self;
        out.offset = self.offset_after(start, self.strides[d]);
        out.sizes[d] = length;
        out.strides[d] = self.strides[d].saturating_mul(step);
        out
    }

    /// The slice at `index` of dim `dim`, which disappears. Negative indices count from the end.
    ///
    /// # Errors
    /// `Index` if the index is out of range, `Dim` if the dim is.
    pub fn select(&self, dim: i64, index: i64) -> Result<Layout> {
        let d = self.part_dim("select", dim)?;
        let size = self.sizes[d];
        let Some(i) = wrap_index(index, size) else {
            bail!(
                Index,
                "select",
                "index {index} out of range for tensor of size {:?} at dimension {d}",
                self.sizes
            );
        };
        let mut out = self.part(d, i, 1, 1);
        out.sizes.remove(d);
        out.strides.remove(d);
        Ok(out)
    }

    /// Python's `start:end:step` on dim `dim`: bounds are clamped, negative ones count from the end, `None` is the
    /// end that the step comes from or goes to. A negative step walks backwards (a view, as in NumPy).
    ///
    /// # Errors
    /// `Argument` if the step is 0, `Dim` if the dim is out of range.
    pub fn slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
        const OP: &str = "slice";
        let d = self.part_dim(OP, dim)?;
        if step == 0 {
            bail!(Argument, OP, "slice step cannot be zero");
        }
        let size = self.sizes[d] as i64; // at most isize::MAX
        let bound = |v: i64, low: i64, high: i64| {
            let v = if v < 0 { v.saturating_add(size) } else { v };
            v.clamp(low, high)
        };
        let apart = step.unsigned_abs();
        let (start, distance) = if step > 0 {
            let start = start.map_or(0, |v| bound(v, 0, size));
            (start, end.map_or(size, |v| bound(v, 0, size)) - start)
        } else {
            let start = start.map_or(size - 1, |v| bound(v, -1, size - 1));
            (start, start - end.map_or(-1, |v| bound(v, -1, size - 1)))
        };
        let length = (distance.max(0) as u64).div_ceil(apart) as usize;
        let step = isize::try_from(step).unwrap_or(if step > 0 { isize::MAX } else { isize::MIN });
        Ok(self.part(d, start.max(0) as usize, length, step))
    }

    /// `len` elements of dim `dim` from `start` on; a negative start counts from the end.
    ///
    /// # Errors
    /// `Index` if they leave the dim, `Argument` if the length is negative.
    pub fn narrow(&self, dim: i64, start: i64, len: i64) -> Result<Layout> {
        const OP: &str = "narrow";
        let d = self.part_dim(OP, dim)?;
        let size = self.sizes[d] as i64;
        if len < 0 {
            bail!(Argument, OP, "length must be non-negative, got {len}");
        }
        if start < -size || start > size {
            bail!(
                Index,
                OP,
                "start {start} out of range [-{size}, {size}] for tensor of size {:?} at dimension {d}",
                self.sizes
            );
        }
        let start = if start < 0 { start + size } else { start };
        if len > size - start {
            bail!(
                Index,
                OP,
                "start ({start}) + length ({len}) exceeds dimension size ({size}) of tensor of size {:?} at \
                 dimension {d}",
                self.sizes
            );
        }
        Ok(self.part(d, start as usize, len as usize, 1))
    }

    /// Consecutive parts of dim `dim` of the given lengths (PyTorch's `split_with_sizes`).
    ///
    /// # Errors
    /// `Argument` if a length is negative or they do not add up to the dim.
    pub fn split(&self, lengths: &[i64], dim: i64) -> Result<Vec<Layout>> {
        const OP: &str = "split";
        let d = self.part_dim(OP, dim)?;
        let size = self.sizes[d];
        if lengths.iter().any(|&l| l < 0) {
            bail!(Argument, OP, "lengths must be non-negative, got {lengths:?}");
        }
        if lengths.iter().try_fold(0i64, |sum, &l| sum.checked_add(l)) != Some(size as i64) {
            bail!(
                Argument,
                OP,
                "expects lengths to sum exactly to {size} (the size of dimension {d} of {:?}), but got {lengths:?}",
                self.sizes
            );
        }
        let mut parts = reserved(OP, lengths.len())?;
        let mut start = 0;
        for &length in lengths {
            parts.push(self.part(d, start, length as usize, 1));
            start += length as usize;
        }
        Ok(parts)
    }

    /// Consecutive parts of dim `dim` of length `size`; the last one may be shorter.
    ///
    /// # Errors
    /// `Argument` if the size is not positive (0 is allowed where the dim is empty).
    pub fn split_size(&self, size: i64, dim: i64) -> Result<Vec<Layout>> {
        const OP: &str = "split";
        let d = self.part_dim(OP, dim)?;
        let length = self.sizes[d];
        if size < 0 {
            bail!(Argument, OP, "expects the split size to be non-negative, but got {size}");
        }
        if size == 0 && length > 0 {
            bail!(
                Argument,
                OP,
                "a split size of 0 is for empty dimensions only, dimension {d} has size {length}"
            );
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        let count = length.div_ceil(size).max(1);
        let mut parts = reserved(OP, count)?;
        for k in 0..count {
            let start = k * size;
            parts.push(self.part(d, start, size.min(length - start), 1));
        }
        Ok(parts)
    }

    /// At most `n` parts of dim `dim` of equal length, but for the last one (PyTorch's rule: there may be fewer).
    ///
    /// # Errors
    /// `Argument` if `n` is not positive.
    pub fn chunk(&self, n: i64, dim: i64) -> Result<Vec<Layout>> {
        const OP: &str = "chunk";
        let d = self.part_dim(OP, dim)?;
        if n <= 0 {
            bail!(Argument, OP, "expects the number of chunks to be greater than 0, got {n}");
        }
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        let length = self.sizes[d];
        if length == 0 {
            let mut parts = reserved(OP, n)?;
            parts.resize(n, *self);
            return Ok(parts);
        }
        let size = length.div_ceil(n);
        self.split_size(size as i64, d as i64)
    }

    /// Every slice of dim `dim`, which disappears.
    ///
    /// # Errors
    /// `Dim` if the dim is out of range.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Layout>> {
        let d = self.part_dim("unbind", dim)?;
        let mut parts = reserved("unbind", self.sizes[d])?;
        for i in 0..self.sizes[d] {
            parts.push(self.select(d as i64, i as i64)?);
        }
        Ok(parts)
    }
}

// `index` in `[-size, size)` as a position.
fn wrap_index(index: i64, size: usize) -> Option<usize> {
    let size = size as i64;
    (-size..size).contains(&index).then(|| if index < 0 { index + size } else { index } as usize)
}

// A vector with room for `n`: an expanded dim may be longer than memory.
fn reserved(op: &'static str, n: usize) -> Result<Vec<Layout>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n)
        .map_err(|e| Error::new(ErrorKind::OutOfMemory, op, format!("no memory for {n} views")).because(e))?;
    Ok(v)
}
