//! Layouts of fresh arrays: what ops write into.

use super::{Layout, MemoryFormat, too_many_dims};
use crate::{Dims, Error, ErrorKind, MAX_RANK, Result, bail};

impl Layout {
    /// The layout of a fresh copy under PyTorch's `preserve_format`, at offset 0: the strides of a dense layout as
    /// they are, otherwise dense strides in the order of this layout's strides (by magnitude).
    pub fn dense_like(&self) -> Layout {
        if self.is_non_overlapping_and_dense() {
            return Layout { offset: 0, ..*self };
        }
        self.dense_in(&stride_order(&self.sizes, &[self.strides]))
    }

    /// The layout of a fresh array of these sizes in the given format, at offset 0. Strides of size-1 dims are
    /// canonical: they carry the format's mark, which [`Layout::suggested_format`] reads.
    ///
    /// # Errors
    /// `Shape` for `ChannelsLast` unless the rank is 4.
    pub fn in_format(&self, format: MemoryFormat) -> Result<Layout> {
        match format {
            MemoryFormat::Contiguous => Ok(Layout::fresh(self.sizes)),
            MemoryFormat::ChannelsLast => {
                let [n, c, h, w] = self.sizes[..] else {
                    return Err(Error::new(
                        ErrorKind::Shape,
                        "channels_last",
                        format!(
                            "required rank 4 tensor to use channels_last format, got sizes {:?}",
                            self.sizes
                        ),
                    )
                    .hint("unsqueeze(0) makes an image a batch of one"));
                };
                // No max(size, 1) here: PyTorch gives (2, 0, 4, 5) the strides (0, 1, 0, 0).
                let (c, wc) = (c as isize, (w * c) as isize);
                let strides = [wc * h as isize, 1, wc, c];
                let strides = Dims::from_slice(&strides).ok_or_else(|| too_many_dims("channels_last", n))?;
                Ok(Layout { sizes: self.sizes, strides, offset: 0 })
            }
        }
    }

    /// The fresh layout of the output of an elementwise op of `operands`, each of which broadcasts to `sizes`.
    ///
    /// If all operands have these very sizes and are all row-major, all channels_last-contiguous, or all dense
    /// with the same strides, the output is like them. Otherwise it is dense, its dims ordered by the strides of
    /// the first operand that has an opinion on each pair of dims (a stride of 0 is none). PyTorch counts a
    /// number as a 0-dim operand, which excludes the first rule; pass [`Layout::scalar`] for it.
    ///
    /// # Errors
    /// `Shape` if an operand does not broadcast to `sizes`.
    pub fn result_of(operands: &[&Layout], sizes: &[usize]) -> Result<Layout> {
        const OP: &str = "elementwise";
        let Some((first, rest)) = operands.split_first() else { return Layout::contiguous(sizes) };
        if operands.iter().all(|l| l.sizes() == sizes) {
            if operands.iter().all(|l| l.is_contiguous()) {
                return Ok(Layout::fresh(first.sizes));
            }
            if operands.iter().all(|l| l.is_channels_last_contiguous()) {
                return first.in_format(MemoryFormat::ChannelsLast);
            }
            if rest.iter().all(|l| l.strides() == first.strides()) && first.is_non_overlapping_and_dense() {
                return Ok(Layout { offset: 0, ..**first });
            }
        }
        let fresh = Layout::contiguous(sizes)?;
        let mut strides = [Dims::new(); MAX_OPERANDS];
        if operands.len() > MAX_OPERANDS {
            bail!(Unsupported, OP, "at most {MAX_OPERANDS} operands, got {}", operands.len());
        }
        for (s, l) in strides.iter_mut().zip(operands) {
            *s = broadcast_strides(OP, l, sizes)?;
        }
        Ok(fresh.dense_in(&stride_order(sizes, &strides[..operands.len()])))
    }

    /// The fresh layout of the output of a reduction over the marked dims: row-major, whatever the input's order,
    /// as in PyTorch.
    ///
    /// `dims` has one entry a dim (see [`wrap_dims`](crate::wrap_dims)); missing entries count as not reduced.
    pub fn reduce_result(&self, dims: &[bool], keepdim: bool) -> Layout {
        let mut sizes = Dims::new();
        for (d, &size) in self.sizes.iter().enumerate() {
            match dims.get(d) {
                Some(true) if keepdim => {
                    sizes.push(1);
                }
                Some(true) => {}
                _ => {
                    sizes.push(size);
                }
            }
        }
        Layout::fresh(sizes)
    }

    // Dense strides for these sizes, the first dim of `order` fastest.
    fn dense_in(&self, order: &[usize]) -> Layout {
        let mut strides = Dims::filled(1isize, self.rank()).unwrap_or_default();
        let mut next = 1isize;
        for &d in order {
            strides[d] = next;
            next *= self.sizes[d].max(1) as isize;
        }
        Layout { sizes: self.sizes, strides, offset: 0 }
    }
}

/// The most operands an elementwise op or a [`LoopPlan`](crate::LoopPlan) may have, the output included.
pub const MAX_OPERANDS: usize = 8;

// The operand's strides under `sizes`: 0 where it is broadcast. Unlike those of `broadcast_to`, the
// strides of new dims of size 1 are 0 too: the operand has no opinion on where they belong.
pub(crate) fn broadcast_strides(op: &'static str, l: &Layout, sizes: &[usize]) -> Result<Dims<isize>> {
    if l.sizes() == sizes {
        return Ok(l.strides);
    }
    let lead = sizes.len().checked_sub(l.rank());
    let fits = lead.is_some_and(|lead| {
        l.sizes().iter().zip(&sizes[lead..]).all(|(&have, &want)| have == want || have == 1)
    });
    let (Some(lead), true) = (lead, fits) else {
        bail!(Shape, op, "an operand of size {:?} does not broadcast to {sizes:?}", l.sizes());
    };
    let mut strides = Dims::filled(0isize, sizes.len()).ok_or_else(|| too_many_dims(op, sizes.len()))?;
    for ((to, &want), (&have, &stride)) in
        strides[lead..].iter_mut().zip(&sizes[lead..]).zip(l.sizes().iter().zip(l.strides()))
    {
        if have == want {
            *to = stride;
        }
    }
    Ok(strides)
}

// The dims from the fastest to the slowest: PyTorch's TensorIterator order. Last dim first, then an
// insertion sort in which, for two dims, the first operand with two non-zero strides that differ decides
// (by magnitude), equal strides put the larger size outside, and no opinion leaves them as they are.
pub(crate) fn stride_order(sizes: &[usize], operands: &[Dims<isize>]) -> Dims<usize> {
    let rank = sizes.len().min(MAX_RANK);
    let mut order = Dims::filled(0, rank).unwrap_or_default();
    for (i, d) in order.iter_mut().enumerate() {
        *d = rank - 1 - i;
    }
    let compare = |a: usize, b: usize| {
        for strides in operands {
            let (sa, sb) = (strides[a].unsigned_abs(), strides[b].unsigned_abs());
            if sa == 0 || sb == 0 {
                continue;
            }
            if sa != sb {
                return if sa > sb { 1 } else { -1 };
            }
            if sizes[a] > sizes[b] {
                return 1;
            }
        }
        0
    };
    for i in 1..rank {
        let mut moving = i;
        for before in (0..i).rev() {
            match compare(order[before], order[moving]) {
                1 => {
                    order.swap(before, moving);
                    moving = before;
                }
                -1 => break,
                _ => {}
            }
        }
    }
    order
}
