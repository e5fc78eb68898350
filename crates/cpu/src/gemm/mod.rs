//! Matrix products over any strides.
//!
//! `C [+]= A B` with signed element strides, zero included, on every operand (rows of C must be distinct). The scheme
//! is the usual one: blocks of k small enough that a panel of B stays near the core, B packed once per block into
//! panels of `nr` columns, A packed by each task into balanced panels of at most `mr` rows, register tiles inside.
//!
//! - Operands that are read only a few times are not packed at all: row-major A through row pointers, row-major B as
//!   it lies. Small products therefore cost little more than their arithmetic.
//! - If C's columns are not contiguous but its rows are, the product is computed transposed; any other C goes through
//!   a tile buffer.
//! - k much larger than m and n: k is cut into parts, each with a private C, added in order.
//!
//! Work is cut by shape and type alone, and each element is a sum in order of k: the same bits for any number of
//! threads. Instruction sets may differ.

mod half;
mod int;
#[cfg(test)]
mod tests;

pub use self::half::{HalfElement, gemm_half};
pub use self::int::gemm_i64;

use crate::pack::{pack_panel, scatter_tile};
use crate::scratch::with_scratch;
use crate::team::{self, Ptr};
use crate::ukr::{Panels, ROW_SLOTS, Ukr};

pub use crate::ukr::Float;

/// A strided matrix that is read: element `(i, j)` at `ptr + i * rs + j * cs`.
#[derive(Clone, Copy, Debug)]
pub struct Mat<T> {
    /// Element (0, 0).
    pub ptr: *const T,
    /// Elements from a row to the next.
    pub rs: isize,
    /// Elements from a column to the next.
    pub cs: isize,
}

impl<T> Mat<T> {
    /// A matrix from a pointer and strides in elements.
    pub fn new(ptr: *const T, rs: isize, cs: isize) -> Self {
        Mat { ptr, rs, cs }
    }

    fn at(self, i: usize, j: usize) -> *const T {
        self.ptr.wrapping_offset(i as isize * self.rs + j as isize * self.cs)
    }
}

/// A strided matrix that is written; as [`Mat`].
#[derive(Clone, Copy, Debug)]
pub struct MatMut<T> {
    /// Element (0, 0).
    pub ptr: *mut T,
    /// Elements from a row to the next.
    pub rs: isize,
    /// Elements from a column to the next.
    pub cs: isize,
}

impl<T> MatMut<T> {
    /// A matrix from a pointer and strides in elements.
    pub fn new(ptr: *mut T, rs: isize, cs: isize) -> Self {
        MatMut { ptr, rs, cs }
    }
}

/// k per block: a panel of B is then about 32 KiB.
const KC: usize = 288;
/// Columns of B packed at a time.
const NC: usize = 2048;
/// Panels of A that one task packs and keeps near at most.
const MC_PANELS: usize = 24;
/// Multiply-adds that make a task worth its handing out.
const TASK_MACS: usize = 1 << 21;
/// Tasks a block is cut into at most (unless `MC_PANELS` asks for more).
const MAX_TASKS: usize = 64;
/// Bytes of an operand that is read in place because it stays in the first cache.
const NEAR_BYTES: usize = 32 << 10;
/// Split-K: the least k of a part, most parts, and most bytes of private results.
const SPLIT_K: usize = 1024;
const SPLIT_PARTS: usize = 16;
const SPLIT_BYTES: usize = 4 << 20;

/// `C = A B` or `C += A B`, with A m x k, B k x n, C m x n, for `f32` and `f64`.
///
/// With k = 0 the product is zero. With m = 0 or n = 0 nothing is touched.
///
/// # Safety
/// Every element of A and B that the sizes and strides name is readable, every element of C writable (readable too if
/// `accumulate`); distinct indices of C are distinct addresses; C overlaps neither A nor B (A and B may overlap).
pub unsafe fn gemm<T: Float>(
    (m, n, k): (usize, usize, usize),
    a: Mat<T>,
    b: Mat<T>,
    c: MatMut<T>,
    accumulate: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !accumulate {
            // SAFETY: C is writable (the caller's contract).
            unsafe { fill(c, m, n, T::default()) };
        }
        return;
    }
    let mut p = Product { m, n, k, a, b, c, accumulate };
    if c.cs != 1 && (c.rs == 1 || n == 1) {
        p = p.transposed();
    }
    let parts = p.split_parts();
    // SAFETY: the caller's contract, passed on.
    unsafe { if parts > 1 { p.split(parts) } else { p.run(T::ukr()) } }
}

/// [`gemm`] over a grid of matrices: `batch` lists the grid's sizes, `batch_strides` the strides of A, B and C along
/// them (0 repeats an operand).
///
/// # Safety
/// As [`gemm`], for every matrix of the grid; all elements of C over the grid are distinct.
///
/// # Panics
/// If the lengths of `batch` and the strides differ.
pub unsafe fn gemm_batched<T: Float>(
    batch: &[usize],
    batch_strides: [&[isize]; 3],
    (m, n, k): (usize, usize, usize),
    a: Mat<T>,
    b: Mat<T>,
    c: MatMut<T>,
    accumulate: bool,
) {
    assert!(batch_strides.iter().all(|s| s.len() == batch.len()), "batch sizes and strides differ in rank");
    // A batch that shares B and continues A's and C's rows is one taller matrix.
    if let (&[count], [&[sa], &[0], &[sc]]) = (batch, batch_strides)
        && sa == m as isize * a.rs
        && sc == m as isize * c.rs
    {
        // SAFETY: the same elements under other indices.
        return unsafe { gemm((count * m, n, k), a, b, c, accumulate) };
    }
    let count: usize = batch.iter().product();
    let (a, b, c) = (Share(a), Share(b), Share(c));
    let one = |index: usize| {
        let (a, b, c) = (a.get(), b.get(), c.get());
        let mut rest = index;
        let mut offset = [0isize; 3];
        for d in (0..batch.len()).rev() {
            let i = (rest % batch[d]) as isize;
            rest /= batch[d];
            for (o, s) in offset.iter_mut().zip(batch_strides) {
                *o += i * s[d];
            }
        }
        let a = Mat { ptr: a.ptr.wrapping_offset(offset[0]), ..a };
        let b = Mat { ptr: b.ptr.wrapping_offset(offset[1]), ..b };
        let c = MatMut { ptr: c.ptr.wrapping_offset(offset[2]), ..c };
        // SAFETY: a matrix of the grid (the caller's contract).
        unsafe { gemm((m, n, k), a, b, c, accumulate) }
    };
    let macs = m.saturating_mul(n).saturating_mul(k);
    if count > 1 && macs < 4 * TASK_MACS {
        // Small matrices: chunks of them, each product serial.
        let per = (TASK_MACS / macs.max(1)).clamp(1, count);
        let chunks = count.div_ceil(per);
        team::par_if(cost::<T>(macs.saturating_mul(count)), chunks, &|i| {
            (i * per..count.min((i + 1) * per)).for_each(&one);
        });
    } else {
        (0..count).for_each(one);
    }
}

/// Carries a matrix description to other threads.
#[derive(Clone, Copy)]
struct Share<T>(T);
// SAFETY: descriptions only name addresses; their use is `gemm`'s, under its contract.
unsafe impl<T> Sync for Share<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Share<T> {}
impl<T: Copy> Share<T> {
    fn get(self) -> T {
        self.0
    }
}

/// Estimated nanoseconds of one thread.
pub(crate) fn cost<T>(macs: usize) -> u64 {
    (macs as u64).saturating_mul(size_of::<T>() as u64) / 128
}

unsafe fn fill<T: Copy>(c: MatMut<T>, m: usize, n: usize, x: T) {
    for i in 0..m {
        for j in 0..n {
            // SAFETY: an element of C (the caller's contract).
            unsafe { *c.ptr.offset(i as isize * c.rs + j as isize * c.cs) = x }
        }
    }
}

#[derive(Clone, Copy)]
struct Product<T> {
    m: usize,
    n: usize,
    k: usize,
    a: Mat<T>,
    b: Mat<T>,
    c: MatMut<T>,
    accumulate: bool,
}
// SAFETY: as `Share`.
unsafe impl<T> Sync for Product<T> {}

impl<T: Float> Product<T> {
    /// The same product as C^T = B^T A^T.
    fn transposed(self) -> Self {
        let flip = |x: Mat<T>| Mat { ptr: x.ptr, rs: x.cs, cs: x.rs };
        let c = MatMut { ptr: self.c.ptr, rs: self.c.cs, cs: self.c.rs };
        Product { m: self.n, n: self.m, a: flip(self.b), b: flip(self.a), c, ..self }
    }

    /// How many parts k is cut into: more than one where k is long and C is small.
    fn split_parts(&self) -> usize {
        let c_bytes = self.m.saturating_mul(self.n).saturating_mul(size_of::<T>());
        if self.k < 4 * SPLIT_K || self.k < 4 * self.m.max(self.n) || c_bytes > SPLIT_BYTES / 2 {
            return 1;
        }
        (self.k / SPLIT_K).min(SPLIT_PARTS).min(SPLIT_BYTES / c_bytes.max(1))
    }

    /// Each part of k into its own C, then their sum in order.
    unsafe fn split(self, parts: usize) {
        let (m, n, k) = (self.m, self.n, self.k);
        with_scratch::<T, _>(parts * m * n, |partial| {
            let (partial, this) = (Ptr::new(partial), &self);
            team::par_if(cost::<T>(m * n * k), parts, &|p| {
                let (k0, k1) = (k * p / parts, k * (p + 1) / parts);
                // SAFETY: part p's own m * n elements of the scratch; operands as the caller's contract has them.
                unsafe {
                    let c = MatMut::new(partial.get().add(p * m * n), n as isize, 1);
                    let a = Mat { ptr: this.a.at(0, k0), ..this.a };
                    let b = Mat { ptr: this.b.at(k0, 0), ..this.b };
                    Product { k: k1 - k0, a, b, c, accumulate: false, ..*this }.run(T::ukr());
                }
            });
            let chunks = m.min((m * n).div_ceil(8192));
            team::par_if((m * n * parts) as u64 / 4, chunks, &|t| {
                for i in m * t / chunks..m * (t + 1) / chunks {
                    // SAFETY: row i of C and of each part, in this task alone.
                    unsafe {
                        let sum = partial.get().add(i * n);
                        for p in 1..parts {
                            let x = sum.add(p * m * n);
                            for j in 0..n {
                                *sum.add(j) += *x.add(j);
                            }
                        }
                        let row = this.c.ptr.offset(i as isize * this.c.rs);
                        for j in 0..n {
                            let y = row.offset(j as isize * this.c.cs);
                            *y = if this.accumulate { *y + *sum.add(j) } else { *sum.add(j) };
                        }
                    }
                }
            });
        });
    }

    /// The blocked product.
    unsafe fn run(self, u: &'static Ukr<T>) {
        let (m, n, k) = (self.m, self.n, self.k);
        let near = |elements: usize| elements.saturating_mul(size_of::<T>()) <= NEAR_BYTES;
        let direct_b = self.b.cs == 1 && (m <= u.mr || near(n.saturating_mul(k)));
        let direct_a = self.a.cs == 1 && (n <= 2 * u.nr || near(m.saturating_mul(k)));
        let k_blocks = k.div_ceil(KC);
        let n_blocks = n.div_ceil(NC);
        let panels = n.div_ceil(u.nr);
        let mut b_scratch = 0;
        for jb in 0..n_blocks {
            let np = panels * (jb + 1) / n_blocks - panels * jb / n_blocks;
            b_scratch = b_scratch.max(np * u.nr * k.div_ceil(k_blocks));
        }
        if direct_b {
            // Only a narrow last panel is packed.
            b_scratch = u.nr * k.div_ceil(k_blocks);
        }
        with_scratch::<T, _>(b_scratch, |packed_b| {
            for jb in 0..n_blocks {
                let (p0, p1) = (panels * jb / n_blocks, panels * (jb + 1) / n_blocks);
                for kb in 0..k_blocks {
                    let (k0, k1) = (k * kb / k_blocks, k * (kb + 1) / k_blocks);
                    let block = Block {
                        g: self,
                        u,
                        p0,
                        p1,
                        k0,
                        k1,
                        packed_b: Ptr::new(packed_b),
                        direct_b,
                        direct_a,
                    };
                    // SAFETY: the scratch holds a block of B; the rest is the caller's contract.
                    unsafe { block.run() }
                }
            }
        });
    }
}

/// One block: columns of the panels `p0..p1`, k in `k0..k1`, all rows.
struct Block<T: 'static> {
    g: Product<T>,
    u: &'static Ukr<T>,
    p0: usize,
    p1: usize,
    k0: usize,
    k1: usize,
    packed_b: Ptr<T>,
    direct_b: bool,
    direct_a: bool,
}

impl<T: Float> Block<T> {
    /// Panel p's width.
    fn width(&self, p: usize) -> usize {
        self.u.nr.min(self.g.n - p * self.u.nr)
    }

    /// Whether the kernel may read panel p of B where it lies: full vectors must be readable.
    fn in_place(&self, p: usize) -> bool {
        let w = self.width(p);
        self.direct_b && (w == self.u.nr || w == self.u.lanes)
    }

    /// Panel p of B and its row stride.
    fn b_panel(&self, p: usize) -> (*const T, isize) {
        let (nr, kb) = (self.u.nr, self.k1 - self.k0);
        if self.in_place(p) {
            (self.g.b.at(self.k0, p * nr), self.g.b.rs)
        } else {
            let slot = if self.direct_b { 0 } else { p - self.p0 };
            (self.packed_b.get().wrapping_add(slot * kb * nr), nr as isize)
        }
    }

    unsafe fn pack_b(&self) {
        let (nr, kb, np) = (self.u.nr, self.k1 - self.k0, self.p1 - self.p0);
        let one = |p: usize| {
            if self.in_place(p) {
                return;
            }
            let (dst, _) = self.b_panel(p);
            let src = self.g.b.at(self.k0, p * nr);
            // SAFETY: panel p's own part of the scratch; B's elements as the caller's contract has them.
            unsafe {
                pack_panel(self.u, dst.cast_mut(), nr, src, (self.g.b.cs, self.g.b.rs), self.width(p), kb);
            }
        };
        if self.direct_b {
            return one(self.p1 - 1);
        }
        let chunks = np.min((np * nr * kb).div_ceil(16 << 10));
        team::par_if((np * nr * kb) as u64 / 2, chunks, &|t| {
            (self.p0 + np * t / chunks..self.p0 + np * (t + 1) / chunks).for_each(one);
        });
    }

    unsafe fn run(&self) {
        let (m, kb, np) = (self.g.m, self.k1 - self.k0, self.p1 - self.p0);
        // SAFETY: the scratch is this block's.
        unsafe { self.pack_b() };
        let rows = Panels::new(m, if self.direct_a { self.u.rows } else { self.u.mr });
        let macs = m * np * self.u.nr * kb;
        let wanted = (macs / TASK_MACS).clamp(1, MAX_TASKS);
        let row_groups = rows.len().div_ceil(MC_PANELS).max(rows.len().min(wanted));
        let col_groups = wanted.div_ceil(row_groups).min(np);
        team::par_if(cost::<T>(macs), row_groups * col_groups, &|t| {
            let (rg, cg) = (t / col_groups, t % col_groups);
            let q = rows.len() * rg / row_groups..rows.len() * (rg + 1) / row_groups;
            let p = self.p0 + np * cg / col_groups..self.p0 + np * (cg + 1) / col_groups;
            // SAFETY: tasks write disjoint tiles of C.
            unsafe {
                if self.direct_a { self.tiles_direct(&rows, q, p) } else { self.tiles_packed(&rows, q, p) }
            }
        });
    }

    fn accumulate(&self) -> bool {
        self.g.accumulate || self.k0 > 0
    }

    /// A's panels `q` packed, then their tiles.
    unsafe fn tiles_packed(&self, rows: &Panels, q: std::ops::Range<usize>, p: std::ops::Range<usize>) {
        let (g, u, kb) = (&self.g, self.u, self.k1 - self.k0);
        let first = rows.start(q.start);
        with_scratch::<T, _>((rows.start(q.end) - first) * kb, |packed| {
            let mut tile = [T::default(); 14 * 32];
            // SAFETY: the scratch holds the panels; tiles of C are this task's; B's panel has full vectors readable.
            unsafe {
                for q in q.clone() {
                    let (r0, r1) = (rows.start(q), rows.start(q + 1));
                    let dst = packed.add((r0 - first) * kb);
                    pack_panel(u, dst, r1 - r0, g.a.at(r0, self.k0), (g.a.rs, g.a.cs), r1 - r0, kb);
                }
                for p in p {
                    let (b, ldb) = self.b_panel(p);
                    let w = self.width(p);
                    for q in q.clone() {
                        let (r0, r1) = (rows.start(q), rows.start(q + 1));
                        let kernel = u.interleaved(r1 - r0, w);
                        let a = packed.add((r0 - first) * kb);
                        let c = g.c.ptr.offset(r0 as isize * g.c.rs + (p * u.nr) as isize * g.c.cs);
                        if g.c.cs == 1 {
                            kernel(1, kb, a, 0, b, &0, ldb, c, g.c.rs, w, self.accumulate());
                        } else {
                            kernel(1, kb, a, 0, b, &0, ldb, tile.as_mut_ptr(), u.nr as isize, w, false);
                            let strides = (g.c.rs, g.c.cs);
                            scatter_tile(u, tile.as_ptr(), u.nr, c, strides, (r1 - r0, w), self.accumulate());
                        }
                    }
                }
            }
        });
    }

    /// Tiles over rows of A where they lie.
    unsafe fn tiles_direct(&self, rows: &Panels, q: std::ops::Range<usize>, p: std::ops::Range<usize>) {
        let (g, u, kb) = (&self.g, self.u, self.k1 - self.k0);
        let mut tile = [T::default(); 12 * 32];
        let mut a_rows = [std::ptr::null(); ROW_SLOTS];
        let mut c_rows = [std::ptr::null_mut(); ROW_SLOTS];
        for p in p {
            let (b, ldb) = self.b_panel(p);
            let w = self.width(p);
            for q in q.clone() {
                let (r0, r1) = (rows.start(q), rows.start(q + 1));
                let h = r1 - r0;
                let c = g.c.ptr.wrapping_offset(r0 as isize * g.c.rs + (p * u.nr) as isize * g.c.cs);
                for i in 0..h {
                    a_rows[i] = g.a.at(r0 + i, self.k0);
                    c_rows[i] = if g.c.cs == 1 {
                        c.wrapping_offset(i as isize * g.c.rs)
                    } else {
                        tile[i * u.nr..].as_mut_ptr()
                    };
                }
                // SAFETY: rows of A are contiguous along k; tiles of C are this task's; B's panel has full vectors
                // readable; the tile buffer holds h rows of nr.
                unsafe {
                    let kernel = u.by_rows(h, w);
                    let add = self.accumulate() && g.c.cs == 1;
                    kernel(1, kb, a_rows.as_ptr(), b, ldb, std::ptr::null(), c_rows.as_ptr(), w, add);
                    if g.c.cs != 1 {
                        let strides = (g.c.rs, g.c.cs);
                        scatter_tile(u, tile.as_ptr(), u.nr, c, strides, (h, w), self.accumulate());
                    }
                }
            }
        }
    }
}
