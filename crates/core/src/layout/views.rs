//! View ops that move, add, drop or repeat dims.

use super::{Layout, checked_numel, too_many_dims, wrap_dim, wrap_dims};
use crate::{Dims, Error, ErrorKind, Result, bail};

impl Layout {
    /// The dims in the order `dims` names them.
    ///
    /// # Errors
    /// `Dim` unless every dim is named exactly once.
    pub fn permute(&self, dims: &[i64]) -> Result<Layout> {
        if dims.len() != self.rank() {
            bail!(
                Dim,
                "permute",
                "the tensor of size {:?} has {} dimensions, the order {dims:?} names {}",
                self.sizes,
                self.rank(),
                dims.len()
            );
        }
        wrap_dims("permute", dims, self.rank())?;
        let mut out = *self;
        for (i, &dim) in dims.iter().enumerate() {
            let d = wrap_dim("permute", dim, self.rank())?;
            out.sizes[i] = self.sizes[d];
            out.strides[i] = self.strides[d];
        }
        Ok(out)
    }

    /// Two dims swapped.
    ///
    /// # Errors
    /// `Dim` if one is out of range.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Layout> {
        let a = wrap_dim("transpose", a, self.rank())?;
        let b = wrap_dim("transpose", b, self.rank())?;
        let mut out = *self;
        if self.rank() > 0 {
            out.sizes.swap(a, b);
            out.strides.swap(a, b);
        }
        Ok(out)
    }

    /// A matrix transposed; a vector or scalar as it is.
    ///
    /// # Errors
    /// `Dim` beyond two dims.
    pub fn t(&self) -> Result<Layout> {
        match self.rank() {
            0 | 1 => Ok(*self),
            2 => self.transpose(0, 1),
            rank => Err(Error::new(
                ErrorKind::Dim,
                "t",
                format!(
                    "expects a tensor with at most 2 dimensions, but got {rank}, of size {:?}",
                    self.sizes
                ),
            )
            .hint("transpose(-2, -1) swaps the last two dimensions")),
        }
    }

    /// Dims `src` moved to the positions `dst`; the others keep their order.
    ///
    /// # Errors
    /// `Dim` if the lists differ in length, or name a dim twice or out of range.
    pub fn movedim(&self, src: &[i64], dst: &[i64]) -> Result<Layout> {
        const OP: &str = "movedim";
        if src.len() != dst.len() {
            bail!(
                Dim,
                OP,
                "source and destination must name the same number of dimensions, got {src:?} and {dst:?}"
            );
        }
        let moved = wrap_dims(OP, src, self.rank())?;
        let taken = wrap_dims(OP, dst, self.rank())?;
        let mut rest = (0..self.rank()).filter(|&d| !moved[d]);
        let mut out = *self;
        for i in 0..self.rank() {
            let d = if taken[i] {
                let at = dst.iter().position(|&d| wrap_dim(OP, d, self.rank()).is_ok_and(|d| d == i));
                at.and_then(|at| wrap_dim(OP, src[at], self.rank()).ok())
            } else {
                rest.next()
            };
            let d = d.unwrap_or(i); // both lists name equally many dims: there is one
            out.sizes[i] = self.sizes[d];
            out.strides[i] = self.strides[d];
        }
        Ok(out)
    }

    /// Dims of size 1 repeated to `sizes` with stride 0. -1 keeps a size; new dims may come in front.
    ///
    /// # Errors
    /// `Shape` if a dim that is not 1 would change or there are fewer sizes than dims, `Overflow` if the result has
    /// too many elements.
    pub fn expand(&self, sizes: &[i64]) -> Result<Layout> {
        const OP: &str = "expand";
        let lead = self.expand_lead(OP, sizes.len(), &sizes)?;
        let mut target = Dims::new();
        for (i, &size) in sizes.iter().enumerate() {
            target.push(match size {
                -1 if i < lead => {
                    bail!(
                        Shape,
                        OP,
                        "the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                    )
                }
                -1 => self.sizes[i - lead],
                _ if size < 0 => bail!(Shape, OP, "invalid size {size} at index {i} of {sizes:?}"),
                _ => size as usize,
            });
        }
        self.expand_to(OP, &target, lead)
    }

    /// [`Layout::expand`] to sizes that are all known.
    ///
    /// # Errors
    /// As [`Layout::expand`].
    pub fn broadcast_to(&self, sizes: &[usize]) -> Result<Layout> {
        const OP: &str = "broadcast_to";
        let lead = self.expand_lead(OP, sizes.len(), &sizes)?;
        self.expand_to(OP, sizes, lead)
    }

    // The number of new dims in front.
    fn expand_lead(&self, op: &'static str, rank: usize, sizes: &dyn std::fmt::Debug) -> Result<usize> {
        if rank > crate::MAX_RANK {
            return Err(too_many_dims(op, rank));
        }
        let Some(lead) = rank.checked_sub(self.rank()) else {
            bail!(
                Shape,
                op,
                "the number of sizes provided ({rank}) must be greater or equal to the number of dimensions in the \
                 tensor ({}): {sizes:?} for a tensor of size {:?}",
                self.rank(),
                self.sizes
            );
        };
        Ok(lead)
    }

    fn expand_to(&self, op: &'static str, target: &[usize], lead: usize) -> Result<Layout> {
        checked_numel(op, target)?;
        let rank = target.len();
        let mut strides = Dims::filled(0isize, rank).unwrap_or_default();
        for i in (0..rank).rev() {
            let (size, stride) = match i.checked_sub(lead) {
                Some(d) => (self.sizes[d], self.strides[d]),
                // A new dim of size 1 has the stride that unsqueeze gives it.
                None if i + 1 < rank => (1, strides[i + 1].saturating_mul(target[i + 1] as isize)),
                None => (1, 0),
            };
            if size != target[i] && size != 1 {
                return Err(Error::new(
                    ErrorKind::Shape,
                    op,
                    format!(
                        "the expanded size of the tensor ({}) must match the existing size ({size}) at non-singleton \
                         dimension {i}. Target sizes: {target:?}. Tensor sizes: {:?}",
                        target[i], self.sizes
                    ),
                )
                .hint("only dimensions of size 1 can be expanded; repeat() copies"));
            }
            strides[i] = if size == target[i] { stride } else { 0 };
        }
        let sizes = Dims::from_slice(target).ok_or_else(|| too_many_dims(op, rank))?;
        Ok(Layout { sizes, strides, offset: self.offset })
    }

    /// Without the dims of size 1 among `dims`, or among all of them; other dims stay.
    ///
    /// # Errors
    /// `Dim` if one is out of range or named twice.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Layout> {
        let mask = match dims {
            Some(dims) => wrap_dims("squeeze", dims, self.rank())?,
            None => Dims::filled(true, self.rank()).unwrap_or_default(),
        };
        let mut out = Layout { sizes: Dims::new(), strides: Dims::new(), offset: self.offset };
        for d in 0..self.rank() {
            if !(mask[d] && self.sizes[d] == 1) {
                out.sizes.push(self.sizes[d]);
                out.strides.push(self.strides[d]);
            }
        }
        Ok(out)
    }

    /// A new dim of size 1 at `dim`, of the stride `size * stride` of the dim it comes before (1 at the end).
    ///
    /// # Errors
    /// `Dim` unless `-rank - 1 <= dim <= rank`, `Shape` beyond `MAX_RANK` dims.
    pub fn unsqueeze(&self, dim: i64) -> Result<Layout> {
        let d = wrap_dim("unsqueeze", dim, self.rank() + 1)?;
        let stride = if d < self.rank() { self.strides[d].saturating_mul(self.sizes[d] as isize) } else { 1 };
        let mut out = *self;
        let full = || too_many_dims("unsqueeze", self.rank() + 1);
        out.sizes.insert(d, 1).ok_or_else(full)?;
        out.strides.insert(d, stride).ok_or_else(full)?;
        Ok(out)
    }

    /// Windows of `size` elements, `step` apart, of dim `dim`: the dim becomes the number of windows, the window
    /// is a new last dim.
    ///
    /// # Errors
    /// `Argument` if the size is negative or larger than the dim, or the step is not positive.
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Layout> {
        const OP: &str = "unfold";
        let d = wrap_dim(OP, dim, self.rank())?;
        let (length, stride) = if self.rank() == 0 { (1, 1) } else { (self.sizes[d], self.strides[d]) };
        if size < 0 {
            bail!(Argument, OP, "size is {size} but must be >= 0");
        }
        if size as u64 > length as u64 {
            bail!(Argument, OP, "maximum size for tensor at dimension {d} is {length} but size is {size}");
        }
        if step <= 0 {
            bail!(Argument, OP, "step is {step} but must be > 0");
        }
        let (size, step) = (size as usize, step as usize);
        let mut out = *self;
        let full = || too_many_dims(OP, self.rank() + 1);
        out.sizes.push(size).ok_or_else(full)?;
        out.strides.push(stride).ok_or_else(full)?;
        if self.rank() > 0 {
            out.sizes[d] = (length - size) / step + 1;
            out.strides[d] = stride.saturating_mul(step as isize);
        }
        checked_numel(OP, &out.sizes)?;
        Ok(out)
    }

    /// The diagonal of dims `d1` (rows) and `d2` (columns), `offset` columns to the right, as a new last dim.
    ///
    /// # Errors
    /// `Dim` if the dims are equal or out of range.
    pub fn diagonal(&self, offset: i64, d1: i64, d2: i64) -> Result<Layout> {
        const OP: &str = "diagonal";
        let a = wrap_dim(OP, d1, self.rank())?;
        let b = wrap_dim(OP, d2, self.rank())?;
        if a == b {
            bail!(
                Dim,
                OP,
                "diagonal dimensions cannot be identical: {d1}, {d2} of a tensor of size {:?}",
                self.sizes
            );
        }
        let (rows, cols) = (self.sizes[a], self.sizes[b]);
        let skip = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        let (length, along) = if offset >= 0 {
            (rows.min(cols.saturating_sub(skip)), self.strides[b])
        } else {
            (cols.min(rows.saturating_sub(skip)), self.strides[a])
        };
        let mut out = *self;
        if length > 0 {
            out.offset = self.offset_after(skip, along);
        }
        for d in [a.max(b), a.min(b)] {
            out.sizes.remove(d);
            out.strides.remove(d);
        }
        out.sizes.push(length);
        out.strides.push(self.strides[a].saturating_add(self.strides[b]));
        Ok(out)
    }

    /// The named dims walked backwards: a view with negated strides (`flip` copies).
    ///
    /// # Errors
    /// `Dim` if one is out of range or named twice.
    pub fn reversed(&self, dims: &[i64]) -> Result<Layout> {
        let mask = wrap_dims("reversed", dims, self.rank())?;
        let mut out = *self;
        for d in (0..self.rank()).filter(|&d| mask[d]) {
            out.offset = out.offset_after(self.sizes[d].saturating_sub(1), self.strides[d]);
            out.strides[d] = self.strides[d].saturating_neg();
        }
        Ok(out)
    }

    /// Sizes, strides and offset of the caller's making over the same storage; `None` keeps the offset.
    /// Whether they fit the storage is for its owner to check.
    ///
    /// # Errors
    /// `Argument` for negative numbers, `Shape` for lists of different lengths, `Overflow`.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: Option<i64>) -> Result<Layout> {
        const OP: &str = "as_strided";
        let mut s = Dims::new();
        for &size in sizes {
            let Ok(v) = usize::try_from(size) else {
                bail!(Argument, OP, "sizes must be non-negative, got {sizes:?}");
            };
            s.push(v).ok_or_else(|| too_many_dims(OP, sizes.len()))?;
        }
        let mut t = Dims::new();
        for &stride in strides {
            if stride < 0 {
                return Err(Error::new(
                    ErrorKind::Argument,
                    OP,
                    format!("negative strides are not supported, got strides {strides:?}"),
                )
                .hint("reversed() and slices with a negative step make views that walk backwards"));
            }
            let Ok(v) = isize::try_from(stride) else {
                bail!(Overflow, OP, "stride {stride} passes the machine word");
            };
            t.push(v).ok_or_else(|| too_many_dims(OP, strides.len()))?;
        }
        let offset = match offset {
            None => self.offset,
            Some(o) => match usize::try_from(o) {
                Ok(o) => o,
                Err(_) => bail!(Argument, OP, "the storage offset must be non-negative, got {o}"),
            },
        };
        Layout::checked(OP, &s, &t, offset)
    }
}
