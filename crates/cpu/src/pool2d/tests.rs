use super::*;
use crate::isa::{Isa, with_isa};
use crate::ukr::Float;

/// How a 4-d operand lies in memory; strides in elements and the element (0, 0, 0, 0).
fn layout(sizes: [usize; 4], kind: usize) -> ([isize; 4], isize, usize) {
    let s = sizes.map(|s| s as isize);
    let row_major = [s[1] * s[2] * s[3], s[2] * s[3], s[3], 1];
    let total: isize = s.iter().product();
    match kind {
        0 => (row_major, 0, total as usize),
        1 => ([s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]], 0, total as usize),
        // Stepped, reversed and transposed.
        2 => (row_major.map(|x| 2 * x), 0, 2 * total as usize),
        3 => (
            [row_major[0], row_major[1], -row_major[2], -1],
            ((s[2] - 1) * s[3] + s[3] - 1).max(0),
            total as usize,
        ),
        _ => ([s[1] * s[2] * s[3], s[2] * s[3], 1, s[2]], 0, total as usize),
    }
}

struct Placed<T> {
    data: Vec<T>,
    sizes: [usize; 4],
    strides: [isize; 4],
    base: isize,
}

impl<T: Copy> Placed<T> {
    fn new(sizes: [usize; 4], kind: usize, value: impl Fn(usize) -> T) -> Self {
        let (strides, base, len) = layout(sizes, kind);
        Placed { data: (0..len).map(value).collect(), sizes, strides, base }
    }
    fn view(&self) -> View4<T> {
        View4::new(self.data.as_ptr().wrapping_offset(self.base), self.strides)
    }
    fn view_mut(&mut self) -> View4Mut<T> {
        View4Mut::new(self.data.as_mut_ptr().wrapping_offset(self.base), self.strides)
    }
    fn at(&self, i: [usize; 4]) -> T {
        let offset: isize = (0..4).map(|d| i[d] as isize * self.strides[d]).sum();
        self.data[(self.base + offset) as usize]
    }
    fn indices(&self) -> impl Iterator<Item = [usize; 4]> + use<T> {
        let s = self.sizes;
        (0..s.iter().product()).map(move |i: usize| {
            [i / (s[1] * s[2] * s[3]), i / (s[2] * s[3]) % s[1], i / s[3] % s[2], i % s[3]]
        })
    }
}

fn out(size: usize, k: usize, s: usize, p: usize, d: usize, ceil: bool) -> usize {
    let reach = size + 2 * p - d * (k - 1) - 1;
    let mut o = if ceil { reach.div_ceil(s) } else { reach / s } + 1;
    if ceil && (o - 1) * s >= size + p {
        o -= 1;
    }
    o
}

fn geometry(
    [n, c, h, w]: [usize; 4],
    kernel: [usize; 2],
    stride: [usize; 2],
    pad: [usize; 2],
    dilation: [usize; 2],
    ceil: bool,
) -> PoolGeometry {
    let p = out(h, kernel[0], stride[0], pad[0], dilation[0], ceil);
    let q = out(w, kernel[1], stride[1], pad[1], dilation[1], ceil);
    PoolGeometry { n, c, h, w, kernel, stride, pad, dilation, p, q }
}

fn some() -> Vec<PoolGeometry> {
    vec![
        geometry([2, 3, 6, 8], [2, 2], [2, 2], [0, 0], [1, 1], false),
        geometry([2, 70, 7, 9], [3, 3], [2, 2], [1, 1], [1, 1], false),
        geometry([1, 5, 9, 150], [3, 2], [1, 1], [1, 1], [1, 1], true),
        geometry([2, 4, 5, 5], [2, 2], [2, 2], [1, 1], [1, 1], true),
        geometry([1, 8, 10, 11], [3, 3], [2, 3], [1, 0], [2, 3], false),
        geometry([2, 2, 3, 3], [3, 3], [1, 1], [1, 1], [1, 1], false),
        geometry([1, 6, 1, 1], [1, 1], [1, 1], [0, 0], [1, 1], false),
        geometry([0, 3, 4, 4], [2, 2], [2, 2], [0, 0], [1, 1], false),
    ]
}

fn on_every_isa(f: impl Fn()) {
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        with_isa(isa, &f);
    }
}

fn value(i: usize) -> f64 {
    ((i * 7919 + 5) % 41) as f64 / 4.0 - 5.0
}

/// PyTorch's loop for one window.
fn naive_max<T: PoolElement>(g: &PoolGeometry, x: &Placed<T>, [n, c, p, q]: [usize; 4]) -> (T, i64) {
    let (mut best, mut index) = (T::LOWEST, None);
    for r in 0..g.kernel[0] {
        for s in 0..g.kernel[1] {
            let h = (p * g.stride[0] + r * g.dilation[0]).wrapping_sub(g.pad[0]);
            let w = (q * g.stride[1] + s * g.dilation[1]).wrapping_sub(g.pad[1]);
            if h >= g.h || w >= g.w {
                continue;
            }
            let v = x.at([n, c, h, w]);
            #[allow(clippy::eq_op)]
            if v > best || v != v {
                (best, index) = (v, Some(h * g.w + w));
            } else if index.is_none() {
                index = Some(h * g.w + w);
            }
        }
    }
    (best, index.unwrap_or(0) as i64)
}

fn max_is_right<T>(from: fn(f64) -> T, same: fn(T, T) -> bool)
where
    T: PoolElement + Default + std::ops::AddAssign + std::fmt::Debug,
{
    for g in some() {
        for lay in 0..25 {
            let (lx, ly) = (lay / 5, lay % 5);
            let x = Placed::new([g.n, g.c, g.h, g.w], lx, |i| from(value(i)));
            let mut y = Placed::new([g.n, g.c, g.p, g.q], ly, |_| from(9.0));
            let mut at = Placed::new([g.n, g.c, g.p, g.q], if lay % 2 == 0 { ly } else { 0 }, |_| -1i64);
            // SAFETY: the operands hold what their strides name.
            unsafe { max_pool2d(&g, x.view(), y.view_mut(), at.view_mut()) };
            let mut want = vec![T::default(); g.n * g.c * g.h * g.w];
            let dy = Placed::new([g.n, g.c, g.p, g.q], ly, |i| from(value(i + 3)));
            for i in y.indices() {
                let (v, index) = naive_max(&g, &x, i);
                assert!(same(y.at(i), v), "{g:?} {lx} {ly} at {i:?}: {:?} for {v:?}", y.at(i));
                assert_eq!(at.at(i), index, "{g:?} {lx} {ly} at {i:?}");
                want[(i[0] * g.c + i[1]) * g.h * g.w + index as usize] += dy.at(i);
            }
            let mut dx = Placed::new([g.n, g.c, g.h, g.w], lx, |_| from(7.0));
            // SAFETY: as above; the indices are the forward pass's.
            unsafe { max_pool2d_backward(&g, dy.view(), at.view(), dx.view_mut()) };
            for i in dx.indices() {
                let want = want[((i[0] * g.c + i[1]) * g.h + i[2]) * g.w + i[3]];
                assert!(same(dx.at(i), want), "backward {g:?} {lx} {ly} at {i:?}");
            }
        }
    }
}

#[test]
fn max_with_ties_and_nan_on_every_isa() {
    on_every_isa(|| {
        max_is_right::<f32>(|x| x as f32, |a, b| a == b);
        // NaN among the inputs and the gradients.
        max_is_right::<f64>(
            move |x| if x == 2.0 { f64::NAN } else { x },
            |a, b| a == b || (a.is_nan() && b.is_nan()),
        );
        max_is_right::<i64>(|x| (x * 4.0) as i64, |a, b| a == b);
    });
}

fn one_row(values: &[f64], kernel: usize, stride: usize, pad: usize, ceil: bool) -> (Vec<f64>, Vec<i64>) {
    let w = values.len();
    let g = geometry([1, 1, 1, w], [1, kernel], [1, stride], [0, pad], [1, 1], ceil);
    let x = Placed::new([1, 1, 1, w], 0, |i| values[i]);
    let mut y = Placed::new([1, 1, 1, g.q], 0, |_| 0.0);
    let mut at = Placed::new([1, 1, 1, g.q], 0, |_| 0i64);
    // SAFETY: the operands hold what their strides name.
    unsafe { max_pool2d(&g, x.view(), y.view_mut(), at.view_mut()) };
    (y.data, at.data)
}

#[test]
fn max_values_of_the_reference() {
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(one_row(&five, 2, 2, 0, false).0, [2.0, 4.0]);
    assert_eq!(one_row(&five, 2, 2, 0, true).0, [2.0, 4.0, 5.0]);
    assert_eq!(one_row(&five, 2, 2, 1, true).0, [1.0, 3.0, 5.0]);
    assert_eq!(one_row(&five[..3], 2, 2, 1, true).0, [1.0, 3.0]);
    assert_eq!(
        one_row(&five[..4], 2, 3, 1, false).0,
        [1.0, 4.0][..one_row(&five[..4], 2, 3, 1, false).0.len()]
    );
    assert_eq!(one_row(&five[..2], 1, 2, 0, true).0, [1.0]);
    assert_eq!(one_row(&[f64::NAN, 1.0, f64::NAN], 3, 1, 0, false).1, [2]);
    assert_eq!(one_row(&[f64::NEG_INFINITY; 3], 3, 1, 0, false).1, [0]);
    assert_eq!(one_row(&[4.0; 4], 2, 1, 0, false).1, [0, 1, 2]);
}

fn avg_is_right<T: Float>(from: fn(f64) -> T, to: fn(T) -> f64, eps: f64) {
    let check = |g: &PoolGeometry, average: Option<Average>| {
        for lay in 0..25 {
            let (lx, ly) = (lay / 5, lay % 5);
            let x = Placed::new([g.n, g.c, g.h, g.w], lx, |i| from(value(i)));
            let dy = Placed::new([g.n, g.c, g.p, g.q], ly, |i| from(value(i + 9)));
            let mut y = Placed::new([g.n, g.c, g.p, g.q], ly, |_| from(9.0));
            let mut dx = Placed::new([g.n, g.c, g.h, g.w], lx, |_| from(9.0));
            // SAFETY: the operands hold what their strides name.
            unsafe {
                match average {
                    Some(a) => {
                        avg_pool2d(g, a, x.view(), y.view_mut());
                        avg_pool2d_backward(g, a, dy.view(), dx.view_mut());
                    }
                    None => {
                        adaptive_avg_pool2d(g, x.view(), y.view_mut());
                        adaptive_avg_pool2d_backward(g, dy.view(), dx.view_mut());
                    }
                }
            }
            let mut want = vec![0.0; g.n * g.c * g.h * g.w];
            for i in y.indices() {
                let [n, c, p, q] = i;
                let range = |d: usize, o: usize| -> (isize, isize, isize) {
                    let size = if d == 0 { g.h } else { g.w } as isize;
                    if average.is_none() {
                        let outs = if d == 0 { g.p } else { g.q } as isize;
                        let o = o as isize;
                        let (a, b) = (o * size / outs, ((o + 1) * size + outs - 1) / outs);
                        return (a, b, b - a);
                    }
                    let start = (o * g.stride[d]) as isize - g.pad[d] as isize;
                    let end = (start + g.kernel[d] as isize).min(size + g.pad[d] as isize);
                    (start.max(0), end.min(size), end - start)
                };
                let ((h0, h1, ch), (w0, w1, cw)) = (range(0, p), range(1, q));
                let count = match average {
                    Some(Average::IncludePad) => (ch * cw) as f64,
                    Some(Average::Divisor(d)) => d,
                    _ => ((h1 - h0) * (w1 - w0)) as f64,
                };
                let mut sum = 0.0;
                for h in h0..h1 {
                    for w in w0..w1 {
                        sum += to(x.at([n, c, h as usize, w as usize]));
                        want[((n * g.c + c) * g.h + h as usize) * g.w + w as usize] += to(dy.at(i)) / count;
                    }
                }
                assert!((to(y.at(i)) - sum / count).abs() < eps, "{g:?} {average:?} {lx} {ly} at {i:?}");
            }
            for i in dx.indices() {
                let want = want[((i[0] * g.c + i[1]) * g.h + i[2]) * g.w + i[3]];
                assert!((to(dx.at(i)) - want).abs() < eps, "backward {g:?} {average:?} {lx} {ly} at {i:?}");
            }
        }
    };
    for g in some() {
        let g = PoolGeometry { dilation: [1, 1], ..g };
        for average in [Average::IncludePad, Average::ExcludePad, Average::Divisor(3.0)] {
            if some().contains(&g) {
                check(&g, Some(average));
            }
        }
        for (p, q) in [(1, 1), (2, 3), (g.h, g.w), (g.h + 2, 2), (0, 1)] {
            check(&PoolGeometry { p, q, ..g }, None);
        }
    }
}

#[test]
fn averages_on_every_isa() {
    on_every_isa(|| {
        avg_is_right::<f32>(|x| x as f32, f64::from, 1e-4);
        avg_is_right::<f64>(|x| x, |x| x, 1e-12);
    });
}

#[test]
fn average_values_of_the_reference() {
    let row = |values: &[f64], kernel, stride, pad, ceil, average| {
        let w = values.len();
        let g = geometry([1, 1, 1, w], [1, kernel], [1, stride], [0, pad], [1, 1], ceil);
        let x = Placed::new([1, 1, 1, w], 0, |i| values[i]);
        let mut y = Placed::new([1, 1, 1, g.q], 0, |_| 0.0);
        // SAFETY: the operands hold what their strides name.
        unsafe { avg_pool2d(&g, average, x.view(), y.view_mut()) };
        y.data
    };
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(row(&five, 2, 2, 0, true, Average::IncludePad), [1.5, 3.5, 5.0]);
    assert_eq!(row(&five[..3], 3, 1, 1, false, Average::IncludePad), [1.0, 2.0, 5.0 / 3.0]);
    assert_eq!(row(&five[..3], 3, 1, 1, false, Average::ExcludePad), [1.5, 2.0, 2.5]);
    assert_eq!(row(&five[..4], 3, 2, 1, true, Average::IncludePad), [1.0, 3.0, 2.0]);
    assert_eq!(row(&five[..4], 3, 2, 1, true, Average::ExcludePad), [1.5, 3.0, 4.0]);
}
