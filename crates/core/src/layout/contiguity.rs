//! Contiguity in the C, Fortran and channels_last sense, and the memory format that strides suggest.

use super::Layout;

/// The order of the dims of an image batch (N, C, H, W) in memory.
///
/// A format is never stored: [`Layout::suggested_format`] reads it off the strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MemoryFormat {
    /// Row-major: for images N, C, H, W from the slowest to the fastest dim.
    #[default]
    Contiguous,
    /// N, H, W, C from the slowest to the fastest dim, for 4-dim tensors of logical order N, C, H, W.
    ChannelsLast,
}

// N, C, H, W from the fastest dim of channels_last to the slowest.
const CHANNELS_LAST: [usize; 4] = [1, 3, 2, 0];

impl Layout {
    /// Row-major without gaps. Dims of size 1 are skipped, an empty layout is contiguous.
    pub fn is_contiguous(&self) -> bool {
        self.is_empty() || self.is_packed((0..self.rank()).rev())
    }

    /// Column-major without gaps (NumPy's F order). Dims of size 1 are skipped, an empty layout is contiguous.
    pub fn is_fortran_contiguous(&self) -> bool {
        self.is_empty() || self.is_packed(0..self.rank())
    }

    /// Rank 4 and without gaps in the order N, H, W, C. Dims of size 1 are skipped; an empty layout is not
    /// excused, as in PyTorch.
    ///
    /// This is the predicate of `contiguous(ChannelsLast)`: whether a copy is needed. A layout may satisfy it
    /// and row-major contiguity at once (one channel, or one pixel); which kernel is chosen is decided by
    /// [`Layout::suggested_format`].
    pub fn is_channels_last_contiguous(&self) -> bool {
        self.rank() == 4 && self.is_packed(CHANNELS_LAST.into_iter())
    }

    /// Contiguity in the sense of a format.
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::ChannelsLast => self.is_channels_last_contiguous(),
        }
    }

    // Whether the strides are the running product of the sizes over the dims, fastest first.
    fn is_packed(&self, dims: impl Iterator<Item = usize>) -> bool {
        let mut expected = 1isize;
        for d in dims {
            if self.sizes[d] != 1 {
                if self.strides[d] != expected {
                    return false;
                }
                expected = expected.wrapping_mul(self.sizes[d] as isize);
            }
        }
        true
    }

    /// Whether the elements fill a block of memory without gaps and without overlap, in some order of the
    /// dims with positive strides. Dims of size 1 are skipped, an empty layout is dense.
    ///
    /// A reversed dim makes it false: such a layout cannot be read as "from `offset` on".
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        let mut order = [0usize; crate::MAX_RANK];
        let mut n = 0;
        for d in (0..self.rank()).filter(|&d| self.sizes[d] != 1) {
            order[n] = d;
            n += 1;
        }
        order[..n].sort_unstable_by_key(|&d| self.strides[d]);
        self.is_packed(order[..n].iter().copied())
    }

    /// The memory format that the strides ask for: PyTorch's `suggest_memory_format`.
    ///
    /// Unlike contiguity, it reads the strides of dims of size 1, which carry the mark that `to_format` writes:
    /// one channel with strides (20, 1, 5, 1) is channels_last, with (20, 20, 5, 1) it is not. Shapes
    /// (N, 1, 1, 1) have one memory order and are always `Contiguous`. Gaps are allowed.
    pub fn suggested_format(&self) -> MemoryFormat {
        if self.strides_suggest_channels_last() {
            MemoryFormat::ChannelsLast
        } else {
            MemoryFormat::Contiguous
        }
    }

    fn strides_suggest_channels_last(&self) -> bool {
        let (sizes, strides) = (&self.sizes, &self.strides);
        if self.rank() != 4 || strides[1] == 0 {
            return false;
        }
        let mut least = 0isize;
        for d in CHANNELS_LAST {
            if sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1]) {
                return false;
            }
            least = if sizes[d] > 1 { strides[d].saturating_mul(sizes[d] as isize) } else { strides[d] };
        }
        true
    }
}
