//! Layout variants: the same values in every kind of stride pattern.

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, Device, Layout, MemoryFormat, Result};

/// A way to lay out values.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name, as it stands in the names of checks.
    pub name: &'static str,
    /// The layout, inside a bigger storage.
    pub layout: Layout,
    /// Whether elements share places: then not all values can be laid out so, see [`Variant::admit`].
    pub overlapping: bool,
}

/// A variant filled with values.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The whole storage, as a flat tensor.
    pub line: Tensor,
    /// The values: no view for autograd, so that it can be a leaf of this layout.
    pub tensor: Tensor,
    layout: Layout,
}

/// Every variant that the sizes allow, `contiguous` first.
///
/// All of them lie in a bigger storage that holds other numbers around them (see [`around`]).
pub fn variants(sizes: &[usize]) -> Vec<Variant> {
    let mut all: Vec<Variant> = Vec::new();
    let add = |all: &mut Vec<Variant>, name, layout: Result<Layout>, overlapping| {
        let layout = layout.unwrap_or_else(|e| panic!("variant {name} of {sizes:?}: {e}"));
        if all.iter().all(|v: &Variant| v.layout != layout) {
            all.push(Variant { name, layout, overlapping });
        }
    };
    let rank = sizes.len();
    let row_major = Layout::contiguous(sizes).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
    let strides = row_major.strides();
    add(&mut all, "contiguous", Ok(row_major), false);
    add(&mut all, "offset", row_major.with_offset(5), false);
    add(&mut all, "permuted", in_order(sizes, &(0..rank).collect::<Vec<_>>()), false);
    // The middle dim fastest, the first slowest but one: neither row- nor column-major.
    let cyclic: Vec<usize> = (0..rank).map(|k| (k + 1) % rank.max(1)).collect();
    add(&mut all, "cyclic", in_order(sizes, &cyclic), false);
    let stepped: Vec<isize> = strides.iter().map(|s| 2 * s).collect();
    add(&mut all, "stepped", Layout::new(sizes, &stepped, 3), false);
    if rank >= 2 {
        // As `narrow` of the last dim gives: gaps between rows.
        let mut wide = sizes.to_vec();
        wide[rank - 1] += 2;
        let wide =
            Layout::contiguous(&wide).and_then(|l| l.narrow(rank as i64 - 1, 1, sizes[rank - 1] as i64));
        add(&mut all, "narrowed", wide, false);
    }
    let dims: Vec<i64> = (0..rank as i64).collect();
    add(&mut all, "reversed", row_major.reversed(&dims), false);
    if rank >= 2 {
        add(&mut all, "reversed_last", row_major.reversed(&[-1]), false);
    }
    if rank == 4 {
        let marked = row_major.in_format(MemoryFormat::ChannelsLast);
        if let Ok(marked) = marked {
            let free = |d: usize| if sizes[d] == 1 { strides[d] } else { marked.strides()[d] };
            let unmarked: Vec<isize> = (0..4).map(free).collect();
            add(&mut all, "channels_last", Ok(marked), false);
            add(&mut all, "channels_last_unmarked", Layout::new(sizes, &unmarked, 0), false);
            let padded: Vec<isize> = marked.strides().iter().map(|s| 2 * s).collect();
            add(&mut all, "channels_last_stepped", Layout::new(sizes, &padded, 1), false);
        }
    }
    if sizes.contains(&1) {
        let odd: Vec<isize> = (0..rank).map(|d| if sizes[d] == 1 { 999 } else { strides[d] }).collect();
        add(&mut all, "odd_ones", Layout::new(sizes, &odd, 0), false);
    }
    if sizes.contains(&0) {
        let odd: Vec<isize> = (0..rank as isize).map(|d| 7 - 2 * d).collect();
        add(&mut all, "odd_empty", Layout::new(sizes, &odd, 2), false);
    }
    if sizes.contains(&0) {
        return all; // without elements nothing is shared
    }
    let repeats = |d: usize| {
        let mut small = sizes.to_vec();
        small[d] = 1;
        let whole: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        Layout::contiguous(&small).and_then(|l| l.expand(&whole))
    };
    if let Some(d) = sizes.iter().position(|&n| n > 1) {
        add(&mut all, "broadcast", repeats(d), true);
    }
    if let Some(d) = sizes.iter().rposition(|&n| n > 1) {
        add(&mut all, "broadcast_last", repeats(d), true);
    }
    // As `unfold` gives: windows that share elements.
    if rank >= 2 && sizes[rank - 1] > 1 && sizes[rank - 2] > 1 {
        let mut windows = strides.to_vec();
        (windows[rank - 2], windows[rank - 1]) = (1, 1);
        add(&mut all, "overlapping", Layout::new(sizes, &windows, 4), true);
    }
    all
}

/// Dense, the dims from the fastest to the slowest as given.
fn in_order(sizes: &[usize], order: &[usize]) -> Result<Layout> {
    let mut strides = vec![1isize; sizes.len()];
    let mut next = 1;
    for &d in order {
        strides[d] = next;
        next *= sizes[d].max(1) as isize;
    }
    Layout::new(sizes, &strides, 0)
}

/// What lies in the storage around the values: NaN, an odd small integer, `true`; for indices a number far out of any
/// range.
pub fn around(dtype: DType) -> f64 {
    match dtype {
        d if d.is_floating() => f64::NAN,
        DType::I64 => (1u64 << 40) as f64,
        DType::Bool => 1.0,
        _ => 77.0,
    }
}

impl Variant {
    /// The number of elements of the storage.
    fn extent(&self) -> usize {
        self.layout.span().map_or(self.layout.offset(), |(_, hi)| hi + 1) + 3
    }

    /// The values that result when `values` are written in row-major order and read back: the same, unless places are
    /// shared.
    pub fn admit(&self, values: &[f64]) -> Vec<f64> {
        if !self.overlapping {
            return values.to_vec();
        }
        let mut line = vec![0.0; self.extent()];
        for (at, &v) in self.layout.offsets().zip(values) {
            line[at] = v;
        }
        self.layout.offsets().map(|at| line[at]).collect()
    }

    /// Lays out row-major values.
    pub fn place(&self, values: &[f64], dtype: DType, device: Device) -> Result<Placed> {
        assert_eq!(values.len(), self.layout.numel(), "values for {:?}", self.layout.sizes());
        let mut line = vec![around(dtype); self.extent()];
        for (at, &v) in self.layout.offsets().zip(values) {
            line[at] = v;
        }
        let line = Tensor::try_from_slice(&line, [line.len()])?.try_to_dtype(dtype)?.try_to_device(device)?;
        let tensor = self.window(&line)?.detach();
        Ok(Placed { line, tensor, layout: self.layout })
    }

    /// The window on a line of its extent, as views.
    fn window(&self, line: &Tensor) -> Result<Tensor> {
        window(line, &self.layout)
    }

    /// The sum, for each element of the line, of the elements of the window that lie there.
    pub fn scatter(&self, values: &[f64]) -> Vec<f64> {
        let mut line = vec![0.0; self.extent()];
        for (at, &v) in self.layout.offsets().zip(values) {
            line[at] += v;
        }
        line
    }
}

fn window(line: &Tensor, layout: &Layout) -> Result<Tensor> {
    let forwards: Vec<isize> = layout.strides().iter().map(|s| s.abs()).collect();
    let start = layout.span().map_or(0, |_| {
        let back: isize =
            (0..layout.rank()).map(|d| (layout.size(d) as isize - 1) * layout.strides()[d].min(0)).sum();
        layout.offset().saturating_add_signed(back)
    });
    let turned: Vec<i64> =
        (0..layout.rank()).filter(|&d| layout.strides()[d] < 0).map(|d| d as i64).collect();
    let view = line.try_as_strided(layout.sizes(), &forwards[..], Some(start))?;
    if turned.is_empty() { Ok(view) } else { view.try_reversed(&turned[..]) }
}

impl Placed {
    /// The window once more, as a view of `line` that autograd tracks.
    pub fn view(&self, line: &Tensor) -> Result<Tensor> {
        window(line, &self.layout)
    }

    /// The storage's values, to see later what has changed.
    pub fn bits(&self) -> Result<Vec<u64>> {
        Ok(self.line.try_to_vec_f64()?.into_iter().map(f64::to_bits).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_holds_the_values_it_admits() {
        for sizes in [&[][..], &[5], &[3, 4], &[2, 3, 4], &[2, 3, 4, 5], &[2, 1, 4, 1], &[2, 0, 3], &[1, 1]] {
            let n: usize = sizes.iter().product();
            let values: Vec<f64> = (0..n).map(|i| (i % 2) as f64).collect();
            for v in variants(sizes) {
                for dtype in [DType::F64, DType::BF16, DType::I8, DType::Bool] {
                    let placed = v.place(&v.admit(&values), dtype, Device::CPU).unwrap();
                    let (name, read) = (v.name, placed.tensor.try_to_vec_f64().unwrap());
                    assert_eq!(read, v.admit(&values), "{name} of {sizes:?}");
                    assert_eq!(placed.tensor.strides(), v.layout.strides(), "{name} of {sizes:?}");
                    // Without elements there is no first one.
                    assert!(n == 0 || placed.tensor.layout() == &v.layout, "{name} of {sizes:?}");
                    assert_eq!(placed.tensor.sizes(), sizes);
                    assert!(!placed.tensor.is_view() && placed.tensor.shares_storage(&placed.line));
                    assert_eq!(placed.tensor.version(), 0, "{name} of {sizes:?}");
                    assert!(v.overlapping || placed.line.numel() >= n + 3);
                }
                assert_eq!(
                    v.overlapping,
                    stridegrad_core::self_overlaps(&v.layout),
                    "{} of {sizes:?}",
                    v.name
                );
            }
        }
    }

    #[test]
    fn the_named_kinds_are_there() {
        let names = |sizes: &[usize]| variants(sizes).into_iter().map(|v| v.name).collect::<Vec<_>>();
        let all = names(&[2, 3, 4, 5]);
        for name in
            ["contiguous", "offset", "permuted", "cyclic", "stepped", "narrowed", "reversed", "broadcast"]
        {
            assert!(all.contains(&name), "{name} in {all:?}");
        }
        assert!(all.contains(&"channels_last") && all.contains(&"overlapping"));
        assert!(names(&[2, 3, 1, 5]).contains(&"channels_last_unmarked"));
        assert!(names(&[1, 3]).contains(&"odd_ones"));
        assert!(names(&[2, 0]).contains(&"odd_empty"));
        assert_eq!(names(&[]), ["contiguous", "offset", "stepped"]);
    }
}
