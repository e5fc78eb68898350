//! Max pooling to given sizes.

use stridegrad_core::{DType, MemoryFormat, Result, bail, exec};

use super::contiguous::copy_in;
use super::index_select::index_select;
use super::max_pool2d::{MaxPool2dOptions, pool};
use super::pair::IntoPair;
use super::pooling::{batched, check_images, image_layout};
use crate::Tensor;
use crate::faces::faces;

const OP: &str = "adaptive_max_pool2d";

/// The windows of a dim laid side by side: the position each place takes its element from, and the places a window has.
/// Windows differ by one in size; a smaller one has its last element twice, which changes no maximum and no first place.
fn side_by_side(size: usize, out: usize) -> Result<(Vec<i64>, usize)> {
    // One number a window must fit in memory before they are looked at one by one.
    list(Some(out), std::iter::empty())?;
    let edge = |i: usize| i as u128 * size as u128;
    let window = |i: usize| (edge(i) / out as u128) as usize..edge(i + 1).div_ceil(out as u128) as usize;
    let longest = (0..out).map(|i| window(i).len()).max().unwrap_or(0);
    let places =
        (0..out).flat_map(|i| (0..longest).map(move |k| (window(i).start + k).min(window(i).end - 1) as i64));
    Ok((list(out.checked_mul(longest), places)?, longest))
}

/// A list of so many numbers, or an error if there is no memory for it.
fn list(len: Option<usize>, values: impl Iterator<Item = i64>) -> Result<Vec<i64>> {
    let mut list = Vec::new();
    match len {
        Some(n) if list.try_reserve_exact(n).is_ok() => list.extend(values),
        _ => bail!(OutOfMemory, OP, "the list of the windows' elements does not fit in memory"),
    }
    Ok(list)
}

/// Values and positions, of images of rank 4.
fn adaptive(x: &Tensor, [p, q]: [usize; 2]) -> Result<(Tensor, Tensor)> {
    check_images(OP, x)?;
    let &[n, c, h, w] = x.sizes() else {
        bail!(Shape, OP, "expected images of rank 4, got sizes {:?}", x.sizes());
    };
    let layout = image_layout(x, &[n, c, p, q])?;
    if p == 0 || q == 0 {
        // No windows: no elements of the input, which the graph knows all the same.
        let none = x.try_narrow(2, 0, 0)?.try_select(3, 0)?.try_unsqueeze(3)?;
        let values = copy_in(OP, &none.try_reshape([n, c, p, q])?, layout)?;
        return Ok((values, Tensor::from_array(exec::full(layout, 0.into(), DType::I64, x.device())?)));
    }
    if h.is_multiple_of(p) && w.is_multiple_of(q) {
        return pool(x, &MaxPool2dOptions::new([h / p, w / q]));
    }
    let ((rows, kh), (columns, kw)) = (side_by_side(h, p)?, side_by_side(w, q)?);
    let index = |list: &[i64]| Tensor::try_from_slice(list, [list.len()])?.try_to_device(x.device());
    let (at_rows, at_columns) = (index(&rows)?, index(&columns)?);
    // Looked up in the order of memory, so that the format stays.
    let spread = match x.suggested_format() {
        MemoryFormat::ChannelsLast => {
            let pixels = x.try_permute([0, 2, 3, 1])?;
            index_select(&index_select(&pixels, 1, &at_rows)?, 2, &at_columns)?.try_permute([0, 3, 1, 2])?
        }
        _ => index_select(&index_select(x, 2, &at_rows)?, 3, &at_columns)?,
    };
    let (values, places) = pool(&spread, &MaxPool2dOptions::new([kh, kw]))?;
    // Back to positions in the input's planes.
    let origin = rows.iter().flat_map(|r| columns.iter().map(move |c| r * w as i64 + c));
    let origin = list(rows.len().checked_mul(columns.len()), origin)?;
    let flat = places.try_reshape([places.numel()])?;
    let positions = index_select(&index(&origin)?, 0, &flat)?.try_view(places.sizes())?;
    let positions = exec::copy_to(positions.array(), layout, DType::I64)?;
    Ok((values, Tensor::from_array(positions)))
}

faces! {
    /// The largest values of images (N, C, H, W), or of one image (C, H, W), in as many windows as the given height and
    /// width say: output `i` of `o` looks at `floor(i L / o) .. ceil((i + 1) L / o)`.
    ///
    /// Ties and NaN are treated as in [`Tensor::max_pool2d`]; the result is channels-last if the input is.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(5.0).view([1, 1, 1, 5]);
    /// assert_eq!(x.adaptive_max_pool2d([1, 3]).to_vec::<f32>(), [1.0, 3.0, 4.0]);
    /// ```
    pub fn adaptive_max_pool2d | try_adaptive_max_pool2d(&self, output_size: impl IntoPair) -> Tensor {
        let size = output_size.into_pair();
        batched(OP, self, |x| Ok(adaptive(x, size)?.0))
    }

    /// As [`Tensor::adaptive_max_pool2d`], with the position of each value in its H x W plane, `i64`.
    pub fn adaptive_max_pool2d_with_indices | try_adaptive_max_pool2d_with_indices(&self, output_size: impl IntoPair) -> (Tensor, Tensor) {
        let size = output_size.into_pair();
        if self.dim() == 3 {
            let (values, positions) = adaptive(&self.try_unsqueeze(0)?, size)?;
            return Ok((values.try_squeeze_dims(0)?, positions.try_squeeze_dims(0)?));
        }
        let mut positions = None;
        let values = batched(OP, self, |x| {
            let (values, at) = adaptive(x, size)?;
            positions = Some(at);
            Ok(values)
        })?;
        match positions {
            Some(positions) => Ok((values, positions)),
            None => bail!(Unsupported, OP, "the backend gave no positions"),
        }
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    // Values and the first position of each.
    fn reference(x: &Ref, out: [usize; 2]) -> [Ref; 2] {
        let lead = x.sizes.len() - 2;
        let sizes = [&x.sizes[..lead], &out].concat();
        let width = x.sizes[lead + 1];
        let best = |index: &[usize]| {
            let range = |i: usize| {
                let (l, k) = (x.sizes[lead + i], index[lead + i]);
                k * l / out[i]..((k + 1) * l).div_ceil(out[i])
            };
            let mut best = (f64::NEG_INFINITY, 0.0);
            for a in range(0) {
                for b in range(1) {
                    let v = x.at(&[&index[..lead], &[a, b]].concat());
                    if v > best.0 {
                        best = (v, (a * width + b) as f64);
                    }
                }
            }
            best
        };
        [Ref::from_fn(&sizes, |i| best(i).0), Ref::from_fn(&sizes, |i| best(i).1)]
    }
    OpSpec::new(OP, || {
        let cases: [(&[usize], [usize; 2]); 8] = [
            (&[2, 3, 4, 4], [2, 2]),
            (&[2, 3, 5, 7], [3, 2]),
            (&[2, 3, 4, 4], [1, 1]),
            (&[1, 2, 2, 3], [3, 5]),
            (&[1, 2, 3, 3], [0, 2]),
            (&[0, 2, 3, 3], [2, 2]),
            (&[3, 5, 4], [3, 3]),
            (&[2, 33, 19, 23], [7, 7]),
        ];
        let mut all = Vec::new();
        for (x, out) in cases {
            let inputs = || vec![Input::new(x, Domain::Distinct)];
            let values = Sample::new(
                format!("{x:?} {out:?}"),
                inputs(),
                move |t| t[0].try_adaptive_max_pool2d(out),
                move |r| reference(&r[0], out)[0].clone(),
            );
            let both = Sample::many(
                format!("{x:?} {out:?} with indices"),
                inputs(),
                move |t| t[0].try_adaptive_max_pool2d_with_indices(out).map(|(v, i)| vec![v, i]),
                move |r| reference(&r[0], out).to_vec(),
            )
            .result_dtype(|k, dtype| if k == 1 { DType::I64 } else { dtype });
            all.extend([values, both].map(|s| {
                let s = s.channels_last_if(&[0]);
                if x.len() == 4 && x[1] == 33 { s.no_grad() } else { s }
            }));
        }
        all
    })
    .refusal("rank 2", ErrorKind::Shape, || Tensor::try_ones([4, 4])?.try_adaptive_max_pool2d(2))
    .refusal("no pixels", ErrorKind::Shape, || Tensor::try_ones([1, 2, 0, 4])?.try_adaptive_max_pool2d(2))
    .refusal("sizes beyond memory", ErrorKind::Overflow, || {
        Tensor::try_ones([1, 1, 3, 3])?.try_adaptive_max_pool2d([usize::MAX, 2])
    })
}
