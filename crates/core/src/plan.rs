//! Loop plans: how a kernel walks its operands.

use crate::layout::{MAX_OPERANDS, broadcast_strides, stride_order};
use crate::{Dims, Layout, Result, bail};

/// The loops over up to [`MAX_OPERANDS`] operands of one broadcast shape, in the order in which memory is walked
/// best.
///
/// Dims of size 1 are gone, dims that every operand walks backwards are walked forwards, the order of the dims
/// follows the strides (those of operand 0, by convention the output, before the others), and neighbouring dims
/// are merged wherever all operands allow it. Walking `rows()` runs of the innermost dim visits every element of
/// the broadcast shape once; which order that is depends on the layouts alone, never on the number of threads.
#[derive(Clone, Debug)]
pub struct LoopPlan {
    /// Sizes of the loops, the innermost last. At least one; `[0]` for an empty iteration space.
    pub sizes: Dims<usize>,
    /// For each operand, its stride in each loop, in elements.
    pub strides: [Dims<isize>; MAX_OPERANDS],
    /// For each operand, the index of its first element.
    pub offsets: Dims<isize>,
    inner: Dims<isize>,
}

impl LoopPlan {
    /// Plans the loops over `operands`, each of which broadcasts to `sizes`.
    ///
    /// # Errors
    /// `Shape` if an operand does not broadcast to `sizes`, `Overflow` if `sizes` has too many elements, `Unsupported`
    /// beyond [`MAX_OPERANDS`] operands.
    pub fn new(sizes: &[usize], operands: &[&Layout]) -> Result<LoopPlan> {
        const OP: &str = "loop";
        if operands.len() > MAX_OPERANDS {
            bail!(Unsupported, OP, "at most {MAX_OPERANDS} operands, got {}", operands.len());
        }
        let mut plan = LoopPlan {
            sizes: Dims::new(),
            strides: [Dims::new(); MAX_OPERANDS],
            offsets: Dims::new(),
            inner: Dims::new(),
        };
        let flat = !operands.is_empty() && operands.iter().all(|l| l.sizes() == sizes && l.is_contiguous());
        let numel = if flat { operands[0].numel() } else { crate::checked_numel(OP, sizes)? };
        // An empty layout's offset may lie outside the storage.
        let at = |l: &Layout| if numel == 0 { 0 } else { l.offset() as isize };
        operands.iter().for_each(|l| plan.offsets.push(at(l)).unwrap_or_default());
        if flat || numel <= 1 {
            if !flat {
                operands.iter().try_for_each(|l| broadcast_strides(OP, l, sizes).map(drop))?;
            }
            plan.sizes.push(numel);
            for s in &mut plan.strides[..operands.len()] {
                s.push(1);
                plan.inner.push(1);
            }
            return Ok(plan);
        }
        let mut strides = [Dims::<isize>::new(); MAX_OPERANDS];
        for (s, l) in strides.iter_mut().zip(operands) {
            *s = broadcast_strides(OP, l, sizes)?;
        }
        plan.order(sizes, &mut strides[..operands.len()]);
        Ok(plan)
    }

    // The loops over more than one element, from the operands' strides.
    fn order(&mut self, sizes: &[usize], strides: &mut [Dims<isize>]) {
        let plan = self;
        let n = strides.len();
        // Forwards, where nobody disagrees.
        for d in (0..sizes.len()).filter(|&d| sizes[d] > 1) {
            if strides.iter().all(|s| s[d] <= 0) && strides.iter().any(|s| s[d] < 0) {
                for (s, offset) in strides.iter_mut().zip(plan.offsets.iter_mut()) {
                    *offset += (sizes[d] - 1) as isize * s[d];
                    s[d] = -s[d];
                }
            }
        }
        let order = stride_order(sizes, strides);
        // From the outermost dim inwards, merging a dim into the one outside it where all operands allow.
        for &d in order.iter().rev().filter(|&&d| sizes[d] > 1) {
            let last = plan.sizes.len();
            let merges = last > 0
                && (0..n).all(|k| {
                    (sizes[d] as isize).checked_mul(strides[k][d]) == Some(plan.strides[k][last - 1])
                });
            if merges {
                plan.sizes[last - 1] *= sizes[d];
                for (out, s) in plan.strides.iter_mut().zip(&*strides) {
                    out[last - 1] = s[d];
                }
            } else {
                plan.sizes.push(sizes[d]);
                for (out, s) in plan.strides.iter_mut().zip(&*strides) {
                    out.push(s[d]);
                }
            }
        }
        let last = plan.sizes.len() - 1; // more than one element: some dim is left
        for k in 0..n {
            plan.inner.push(plan.strides[k][last]);
        }
    }

    /// The number of iterations.
    pub fn numel(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The number of operands.
    pub fn operands(&self) -> usize {
        self.offsets.len()
    }

    /// The innermost loop: its length and each operand's stride in it.
    pub fn inner(&self) -> (usize, &[isize]) {
        (self.sizes.last().copied().unwrap_or(0), &self.inner)
    }

    /// How often the innermost loop runs: the product of the outer sizes, 0 if there is nothing to iterate.
    pub fn rows(&self) -> usize {
        match self.sizes.split_last() {
            Some((&inner, outer)) if inner > 0 => outer.iter().product(),
            _ => 0,
        }
    }

    /// Whether there is a single loop in which every operand has stride 1 or 0.
    pub fn is_flat(&self) -> bool {
        self.sizes.len() == 1 && self.inner.iter().all(|&s| s == 0 || s == 1)
    }

    /// Walks rows `start..end` (cut at [`LoopPlan::rows`]): calls `f` with the index of each operand's first element
    /// of the row.
    pub fn for_rows(&self, start: usize, end: usize, mut f: impl FnMut(&[isize])) {
        let end = end.min(self.rows());
        if start >= end {
            return;
        }
        let mut at = self.offsets;
        let outer = self.sizes.len() - 1;
        // Where row `start` lies; from there on, an odometer.
        let mut index = [0usize; crate::MAX_RANK];
        let mut rest = start;
        for d in (0..outer).rev() {
            index[d] = rest % self.sizes[d];
            rest /= self.sizes[d];
            for k in 0..at.len() {
                at[k] += index[d] as isize * self.strides[k][d];
            }
        }
        for row in start..end {
            f(&at);
            if row + 1 == end {
                break;
            }
            for d in (0..outer).rev() {
                if index[d] + 1 < self.sizes[d] {
                    index[d] += 1;
                    for k in 0..at.len() {
                        at[k] += self.strides[k][d];
                    }
                    break;
                }
                for k in 0..at.len() {
                    at[k] -= index[d] as isize * self.strides[k][d];
                }
                index[d] = 0;
            }
        }
    }
}
