//! `explain`: a tensor's memory in words and a small drawing.

use std::collections::HashMap;
use std::fmt::Write;

use stridegrad_core::{Layout, MemoryFormat};

use crate::Tensor;

/// So many storage cells are drawn.
const DRAWN: usize = 64;
/// So many of them in a line.
const PER_LINE: usize = 16;
/// Beyond so many elements, cells are not counted one by one.
const COUNTED: usize = 1 << 20;

impl Tensor {
    /// What this tensor reads of its storage, whether it is contiguous or why not, which dims a view may merge, what
    /// flattening would copy; and a drawing of the storage's cells: which element reads each (numbered in row-major
    /// order), `.` where none does and `*` where several do. Beyond 64 cells the first 64 are drawn.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let t = Tensor::arange(6.0).view([2, 3]).t();
    /// assert_eq!(t.explain(), "\
    /// f32 of sizes [3, 2], strides [1, 3], offset 0
    /// reads 6 of the 6 cells of its storage (24 bytes), each once
    /// not contiguous: dim 1 (size 2) has stride 3, row-major order wants 1; dense in another order of the dims
    /// as a view, no dims can be merged: sizes [3, 2] may be split, not joined
    /// flattening would copy 24 bytes
    /// cell     0  1  2  3  4  5
    /// element  0  2  4  1  3  5
    /// ");
    /// ```
    pub fn explain(&self) -> String {
        let l = self.layout();
        let item = self.dtype().size();
        let cells = self.storage_bytes() / item.max(1);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} of sizes {:?}, strides {:?}, offset {}",
            self.dtype(),
            l.sizes(),
            l.strides(),
            l.offset()
        );
        let _ =
            writeln!(out, "{} of its storage ({} bytes){}", reads(l, cells), self.storage_bytes(), often(l));
        let _ = writeln!(out, "{}", contiguity(l));
        let blocks = l.view_blocks();
        let long: Vec<usize> = l.sizes().iter().copied().filter(|&s| s != 1).collect();
        if !l.is_empty() && blocks.len() > 1 {
            if *blocks == *long {
                let _ = writeln!(
                    out,
                    "as a view, no dims can be merged: sizes {long:?} may be split, not joined"
                );
            } else {
                let _ = writeln!(out, "as a view, dims merge to sizes {:?} at most", &*blocks);
            }
            let _ = writeln!(out, "flattening would copy {} bytes", l.numel() * item);
        } else {
            let _ = writeln!(out, "flattening is a view: nothing is copied");
        }
        draw(&mut out, l, cells);
        out
    }
}

fn reads(l: &Layout, cells: usize) -> String {
    match distinct(l) {
        Some(n) => format!("reads {n} of the {cells} cells"),
        None => format!("reads {} elements in the {cells} cells", l.numel()),
    }
}

fn distinct(l: &Layout) -> Option<usize> {
    if l.is_non_overlapping_and_dense() {
        return Some(l.numel());
    }
    (l.numel() <= COUNTED).then(|| l.offsets().collect::<std::collections::HashSet<_>>().len())
}

fn often(l: &Layout) -> String {
    match distinct(l) {
        Some(n) if n == l.numel() => ", each once".into(),
        Some(n) => format!(", {} elements in {n} cells: writes are refused", l.numel()),
        None => String::new(),
    }
}

fn contiguity(l: &Layout) -> String {
    if l.is_contiguous() {
        return "contiguous: row-major without gaps".into();
    }
    let mut text = String::from("not contiguous: ");
    let mut wanted = 1isize;
    for d in (0..l.rank()).rev().filter(|&d| l.size(d) != 1) {
        let stride = l.strides()[d];
        if stride != wanted {
            let _ = write!(
                text,
                "dim {d} (size {}) has stride {stride}, row-major order wants {wanted}",
                l.size(d)
            );
            break;
        }
        wanted = wanted.saturating_mul(l.size(d) as isize);
    }
    for d in (0..l.rank()).filter(|&d| l.size(d) > 1) {
        match l.strides()[d] {
            0 => drop(write!(text, "; dim {d} repeats the same cells")),
            s if s < 0 => drop(write!(text, "; dim {d} runs backwards")),
            _ => {}
        }
    }
    if l.is_contiguous_in(MemoryFormat::ChannelsLast) {
        text.push_str("; contiguous as channels_last");
    } else if l.is_non_overlapping_and_dense() {
        text.push_str("; dense in another order of the dims");
    }
    text
}

/// The first cells of the storage, with the elements that read them.
fn draw(out: &mut String, l: &Layout, cells: usize) {
    let shown = cells.min(DRAWN);
    let mut reader: HashMap<usize, String> = HashMap::new();
    if l.numel() <= COUNTED {
        for (k, at) in l.offsets().enumerate() {
            if at < shown {
                reader.entry(at).and_modify(|e| *e = "*".into()).or_insert_with(|| k.to_string());
            }
        }
    } else {
        out.push_str("too many elements to draw\n");
        return;
    }
    let cell = |c: usize| reader.get(&c).map_or(".", String::as_str);
    let width = (0..shown).map(|c| cell(c).len().max(c.to_string().len())).max().unwrap_or(1);
    for start in (0..shown).step_by(PER_LINE) {
        let line = start..shown.min(start + PER_LINE);
        let (mut top, mut bottom) = (String::from("cell   "), String::from("element"));
        for c in line {
            let _ = write!(top, "  {c:>width$}");
            let _ = write!(bottom, "  {:>width$}", cell(c));
        }
        let _ = writeln!(out, "{top}\n{bottom}");
    }
    if shown < cells {
        let _ = writeln!(out, "and {} cells more", cells - shown);
    }
}
