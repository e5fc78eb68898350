//! Loop nests cut into chunks and rectangles.

use stridegrad_core::{LoopPlan, MAX_OPERANDS, MAX_RANK};

use super::CHUNK;
use super::elem::Rect;

/// Rows that stay together in a chunk where an operand is transposed: several cache lines of it.
pub(crate) const TRANSPOSED_ROWS: usize = 64;

/// The loops of a [`LoopPlan`], the two innermost of which are walked in rectangles.
///
/// The innermost loop is the plan's. Rows are what the next loop, the *second*, steps over: the plan's own, or, where
/// an operand's memory runs along another dim than the output's, that dim, so that a rectangle touches few cache
/// lines of both.
pub(crate) struct Nest {
    /// Sizes of the outer loops, then of the second, then of the inner.
    sizes: [usize; MAX_RANK + 1],
    loops: usize,
    operands: usize,
    strides: [[isize; MAX_RANK + 1]; MAX_OPERANDS],
    offsets: [isize; MAX_OPERANDS],
    /// Whether some operand's memory runs along the second loop.
    pub(crate) transposed: bool,
}

/// A run of work: `rows` rows of the second loop, `len` elements of the inner one.
pub(crate) struct Run<'a> {
    /// For each operand, the index of the first element.
    pub(crate) at: &'a [isize],
    pub(crate) rows: usize,
    pub(crate) len: usize,
}

/// A rectangle within a run: its first row and element, and its size.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) rows: usize,
    pub(crate) len: usize,
}

impl Run<'_> {
    /// The whole run.
    pub(crate) fn whole(&self) -> Part {
        Part { row: 0, column: 0, rows: self.rows, len: self.len }
    }
}

impl Nest {
    pub(crate) fn new(plan: &LoopPlan) -> Nest {
        let mut nest = Nest::plain(plan);
        nest.choose_second();
        nest
    }

    /// The plan's own order of loops.
    pub(crate) fn plain(plan: &LoopPlan) -> Nest {
        let (n, k) = (plan.sizes.len(), plan.operands());
        let mut nest = Nest {
            sizes: [1; MAX_RANK + 1],
            loops: n.max(2),
            operands: k,
            strides: [[0; MAX_RANK + 1]; MAX_OPERANDS],
            offsets: [0; MAX_OPERANDS],
            transposed: false,
        };
        nest.offsets[..k].copy_from_slice(&plan.offsets);
        // A plan of one loop gets an outer one of size 1.
        let lead = nest.loops - n;
        nest.sizes[lead..nest.loops].copy_from_slice(&plan.sizes);
        for (to, from) in nest.strides.iter_mut().zip(&plan.strides[..k]) {
            to[lead..nest.loops].copy_from_slice(from);
        }
        nest
    }

    /// Moves an operand's first element.
    pub(crate) fn shift(&mut self, operand: usize, by: isize) {
        self.offsets[operand] += by;
    }

    // Brings forward the loop along which an operand that strides in the inner loop lies densest.
    fn choose_second(&mut self) {
        let inner = self.loops - 1;
        let mut best: Option<(usize, usize)> = None;
        for s in &self.strides[..self.operands] {
            if s[inner].unsigned_abs() <= 1 {
                continue;
            }
            let nearest = (0..inner)
                .filter(|&d| s[d] != 0 && self.sizes[d] > 1)
                .min_by_key(|&d| (s[d].unsigned_abs(), inner - d));
            if let Some(d) = nearest
                && s[d].unsigned_abs() < s[inner].unsigned_abs()
                && best.is_none_or(|(_, stride)| s[d].unsigned_abs() < stride)
            {
                best = Some((d, s[d].unsigned_abs()));
            }
        }
        if let Some((d, _)) = best {
            self.transposed = true;
            self.sizes[d..inner].rotate_left(1);
            self.strides[..self.operands].iter_mut().for_each(|s| s[d..inner].rotate_left(1));
        }
    }

    /// The inner loop's length.
    pub(crate) fn len(&self) -> usize {
        self.sizes[self.loops - 1]
    }

    /// The second loop's size.
    pub(crate) fn second(&self) -> usize {
        self.sizes[self.loops - 2]
    }

    /// Rows in all.
    pub(crate) fn rows(&self) -> usize {
        self.sizes[..self.loops - 1].iter().product()
    }

    /// An operand's stride in the inner loop.
    pub(crate) fn stride(&self, operand: usize) -> isize {
        self.strides[operand][self.loops - 1]
    }

    /// An operand's stride in the second loop.
    pub(crate) fn row_stride(&self, operand: usize) -> isize {
        self.strides[operand][self.loops - 2]
    }

    /// Whether an operand is one element, whatever the loops.
    pub(crate) fn is_scalar(&self, operand: usize) -> bool {
        self.strides[operand][..self.loops].iter().all(|&s| s == 0)
    }

    /// One operand's elements of part of a run.
    #[inline(always)]
    pub(crate) fn rect(&self, run: &Run<'_>, part: Part, operand: usize) -> Rect {
        let (row_stride, stride) = (self.row_stride(operand), self.stride(operand));
        Rect {
            at: run.at[operand] + part.row as isize * row_stride + part.column as isize * stride,
            rows: part.rows,
            row_stride,
            len: part.len,
            stride,
        }
    }

    /// Cuts a run into rectangles of at most `rows` times `len`; down the rows first where an operand is transposed, so
    /// that neighbouring cache lines of it follow one another.
    #[inline(always)]
    pub(crate) fn for_parts(&self, run: &Run<'_>, rows: usize, len: usize, mut f: impl FnMut(Part)) {
        let mut part = |row: usize, column: usize| {
            f(Part { row, column, rows: rows.min(run.rows - row), len: len.min(run.len - column) });
        };
        if self.transposed {
            for column in (0..run.len).step_by(len) {
                (0..run.rows).step_by(rows).for_each(|row| part(row, column));
            }
        } else {
            for row in (0..run.rows).step_by(rows) {
                (0..run.len).step_by(len).for_each(|column| part(row, column));
            }
        }
    }

    /// How the rows are cut into chunks of about [`CHUNK`] elements; `align` rows or more stay together.
    pub(crate) fn chunks(&self, align: usize) -> Chunks {
        Chunks::new(self.rows(), self.len(), align)
    }

    /// Walks a chunk's runs.
    pub(crate) fn for_runs(&self, chunk: Chunk, mut f: impl FnMut(Run<'_>)) {
        let (inner, second) = (self.loops - 1, self.loops - 2);
        let mut index = [0usize; MAX_RANK + 1];
        let mut at = self.offsets;
        let mut rest = chunk.rows.start;
        for d in (0..inner).rev() {
            index[d] = rest % self.sizes[d];
            rest /= self.sizes[d];
        }
        for (at, s) in at.iter_mut().zip(&self.strides[..self.operands]) {
            let outer: isize = (0..inner).map(|d| index[d] as isize * s[d]).sum();
            *at += outer + chunk.from as isize * s[inner];
        }
        let mut left = chunk.rows.len();
        let len = chunk.to - chunk.from;
        while left > 0 {
            let rows = left.min(self.sizes[second] - index[second]);
            f(Run { at: &at[..self.operands], rows, len });
            left -= rows;
            if left == 0 {
                return;
            }
            // To the next row of the outer loops: the second starts over.
            for (at, s) in at.iter_mut().zip(&self.strides[..self.operands]) {
                *at -= index[second] as isize * s[second];
            }
            index[second] = 0;
            for d in (0..second).rev() {
                let step = if index[d] + 1 < self.sizes[d] { 1 } else { -(index[d] as isize) };
                for (at, s) in at.iter_mut().zip(&self.strides[..self.operands]) {
                    *at += step * s[d];
                }
                index[d] = index[d].wrapping_add_signed(step);
                if step == 1 {
                    break;
                }
            }
        }
    }
}

/// How `rows` rows of `len` elements are cut: into groups of rows, or rows into pieces. A function of the sizes alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    rows: usize,
    len: usize,
    rows_per_chunk: usize,
    pieces: usize,
}

/// Part of the work: some rows, and of each the elements `from..to`.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) rows: std::ops::Range<usize>,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Chunks {
    pub(crate) fn new(rows: usize, len: usize, align: usize) -> Chunks {
        Chunks::of(rows, len, align, CHUNK)
    }

    /// Chunks of about `target` elements.
    pub(crate) fn of(rows: usize, len: usize, align: usize, target: usize) -> Chunks {
        let rows_per_chunk = (target / len.max(1)).max(1).next_multiple_of(align.max(1));
        let pieces = (len * align.min(rows).max(1)).div_ceil(target).clamp(1, len.max(1));
        Chunks { rows, len, rows_per_chunk, pieces }
    }

    /// All of it.
    pub(crate) fn whole(rows: usize, len: usize) -> Chunk {
        Chunk { rows: 0..rows, from: 0, to: len }
    }

    pub(crate) fn count(&self) -> usize {
        self.rows.div_ceil(self.rows_per_chunk) * self.pieces
    }

    pub(crate) fn get(&self, i: usize) -> Chunk {
        let (group, piece) = (i / self.pieces, i % self.pieces);
        let start = group * self.rows_per_chunk;
        let piece_len = self.len / self.pieces;
        // Pieces end at round numbers, so that tiles, cache lines and vectors stay whole.
        let mask = match piece_len {
            4096.. => !1023,
            128.. => !63,
            _ => !0,
        };
        let cut = |p: usize| if p == self.pieces { self.len } else { (piece_len * p) & mask };
        Chunk {
            rows: start..(start + self.rows_per_chunk).min(self.rows),
            from: cut(piece),
            to: cut(piece + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stridegrad_core::Layout;

    #[test]
    fn every_element_is_visited_once() {
        let base = Layout::contiguous(&[7, 5, 300, 11]).unwrap();
        let operands = [
            base.permute(&[2, 0, 3, 1]).unwrap(),
            base.permute(&[0, 2, 1, 3]).unwrap(),
            Layout::contiguous(&[200_000]).unwrap(),
            Layout::contiguous(&[3, 70_000]).unwrap().t().unwrap(),
            Layout::contiguous(&[1]).unwrap(),
        ];
        for l in operands {
            let out = Layout::contiguous(l.sizes()).unwrap();
            let plan = LoopPlan::new(l.sizes(), &[&out, &l]).unwrap();
            let nest = Nest::new(&plan);
            let want: Vec<usize> = l.offsets().collect();
            let mut seen = vec![0u32; want.len()];
            for align in [1, 16] {
                let chunks = nest.chunks(align);
                for i in 0..chunks.count() {
                    nest.for_runs(chunks.get(i), |run| {
                        for r in 0..run.rows as isize {
                            for c in 0..run.len as isize {
                                let at = |k| run.at[k] + r * nest.row_stride(k) + c * nest.stride(k);
                                assert_eq!(want[at(0) as usize] as isize, at(1));
                                seen[at(0) as usize] += 1;
                            }
                        }
                    });
                }
            }
            assert!(seen.iter().all(|&s| s == 2));
        }
    }

    #[test]
    fn a_transposed_operand_shares_rectangles_with_the_output() {
        let out = Layout::contiguous(&[4, 32, 48]).unwrap();
        let x = Layout::contiguous(&[48, 4, 32]).unwrap().permute(&[1, 2, 0]).unwrap();
        let nest = Nest::new(&LoopPlan::new(&[4, 32, 48], &[&out, &x]).unwrap());
        assert!(nest.transposed);
        assert_eq!((nest.stride(0), nest.row_stride(1)), (1, 1));
    }
}
