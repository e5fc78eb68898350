use super::*;
use crate::isa::{Isa, with_isa};

/// A four-dimensional operand of any strides somewhere in a buffer.
struct Placed<T> {
    data: Vec<T>,
    base: isize,
    sizes: [usize; 4],
    strides: [isize; 4],
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lay {
    Contiguous,
    ChannelsLast,
    /// Every second element of rows that are longer, channels last.
    Stepped,
    /// Both spatial dims run backwards.
    Reversed,
    /// The spatial dims swapped.
    Transposed,
    /// Dims in the order w, n, h, c from outermost to innermost.
    Odd,
    /// Stride 0 along the first dim.
    Repeated,
}
use Lay::*;

fn strides(sizes: [usize; 4], lay: Lay) -> [isize; 4] {
    let dense = |order: [usize; 4], inner: isize| {
        let mut strides = [0; 4];
        let mut step = inner;
        for d in order.into_iter().rev() {
            strides[d] = step;
            step *= sizes[d].max(1) as isize;
        }
        strides
    };
    match lay {
        Contiguous => dense([0, 1, 2, 3], 1),
        ChannelsLast => dense([0, 2, 3, 1], 1),
        Stepped => dense([0, 2, 3, 1], 2),
        Reversed => {
            let s = dense([0, 1, 2, 3], 1);
            [s[0], s[1], -s[2], -s[3]]
        }
        Transposed => dense([0, 1, 3, 2], 1),
        Odd => dense([3, 0, 2, 1], 1),
        Repeated => {
            let s = dense([0, 1, 2, 3], 1);
            [0, s[1], s[2], s[3]]
        }
    }
}

impl<T: Copy> Placed<T> {
    fn new(sizes: [usize; 4], lay: Lay, value: impl Fn(usize) -> T) -> Self {
        let strides = strides(sizes, lay);
        let ends = (0..4).map(|d| (sizes[d].max(1) as isize - 1) * strides[d]);
        let low: isize = ends.clone().filter(|&e| e < 0).sum();
        let high: isize = ends.filter(|&e| e > 0).sum();
        let empty = sizes.contains(&0);
        let data = (0..if empty { 0 } else { (high - low) as usize + 1 }).map(value).collect();
        Placed { data, base: -low, sizes, strides }
    }
    fn view(&self) -> View4<T> {
        View4::new(self.data.as_ptr().wrapping_offset(self.base), self.strides)
    }
    fn view_mut(&mut self) -> View4Mut<T> {
        View4Mut::new(self.data.as_mut_ptr().wrapping_offset(self.base), self.strides)
    }
    fn at(&self, index: [usize; 4]) -> T {
        let i = self.base + dot(self.strides, index.map(|i| i as isize));
        self.data[i as usize]
    }
    fn indices(&self) -> impl Iterator<Item = [usize; 4]> + use<T> {
        let s = self.sizes;
        (0..s.iter().product()).map(move |i: usize| {
            [i / (s[1] * s[2] * s[3]), i / (s[2] * s[3]) % s[1], i / s[3] % s[2], i % s[3]]
        })
    }
}

fn value(i: usize) -> f64 {
    // Mixed well: values that repeat would make rounding errors line up.
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

/// Calls `f` with (output index, input index, weight index) of every product of the convolution.
fn products(g: &ConvGeometry, mut f: impl FnMut([usize; 4], [usize; 4], [usize; 4])) {
    let (cg, kg) = (g.c / g.groups, g.k / g.groups);
    for n in 0..g.n {
        for k in 0..g.k {
            for p in 0..g.p {
                for q in 0..g.q {
                    for c in 0..cg {
                        for r in 0..g.r {
                            for s in 0..g.s {
                                let h = (p * g.stride[0] + r * g.dilation[0]).wrapping_sub(g.pad_before[0]);
                                let w = (q * g.stride[1] + s * g.dilation[1]).wrapping_sub(g.pad_before[1]);
                                if h < g.h && w < g.w {
                                    f([n, k, p, q], [n, k / kg * cg + c, h, w], [k, c, r, s]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn flat(sizes: [usize; 4], i: [usize; 4]) -> usize {
    ((i[0] * sizes[1] + i[1]) * sizes[2] + i[2]) * sizes[3] + i[3]
}

/// Compares an operand with f64 sums, given beside the sum of magnitudes; the rest of the buffer must be untouched.
fn compare<T: Copy + PartialEq + std::fmt::Debug>(
    name: &str,
    got: &Placed<T>,
    before: &[T],
    (want, size): (&[f64], &[f64]),
    to: fn(T) -> f64,
    eps: f64,
) {
    let mut written = vec![false; got.data.len()];
    for i in got.indices() {
        let at = flat(got.sizes, i);
        let x = to(got.at(i));
        let bound = eps * size[at];
        assert!((x - want[at]).abs() <= bound, "{name} at {i:?}: {x} for {}", want[at]);
        written[(got.base + dot(got.strides, i.map(|i| i as isize))) as usize] = true;
    }
    for (i, w) in written.iter().enumerate() {
        assert!(*w || got.data[i] == before[i], "{name}: wrote outside the output at {i}");
    }
}

/// From and to f64.
type Conversions<T> = (fn(f64) -> T, fn(T) -> f64);

fn check<T: Float>(
    g: &ConvGeometry,
    [lx, lw, ly]: [Lay; 3],
    bias: bool,
    (from, to): Conversions<T>,
    eps: f64,
) {
    let xs = [g.n, g.c, g.h, g.w];
    let ws = [g.k, g.c / g.groups, g.r, g.s];
    let ys = [g.n, g.k, g.p, g.q];
    let not_repeated = |l: Lay| if l == Repeated { Contiguous } else { l };
    let name = format!("{g:?} {lx:?} {lw:?} {ly:?}");
    let x = Placed::new(xs, lx, |i| from(value(i)));
    let w = Placed::new(ws, lw, |i| from(value(i + 31)));
    let dy = Placed::new(ys, ly, |i| from(value(i + 57)));
    let b: Vec<T> = (0..2 * g.k).map(|i| from(value(i + 5))).collect();
    let sums = |n: [usize; 4]| (vec![0.0; n.iter().product()], vec![0.0; n.iter().product()]);
    let (mut y_want, mut y_size) = sums(ys);
    let (mut x_want, mut x_size) = sums(xs);
    let (mut w_want, mut w_size) = sums(ws);
    if bias {
        for (i, v) in y_want.iter_mut().enumerate() {
            *v = to(b[2 * (i / (g.p * g.q).max(1) % g.k)]);
        }
    }
    products(g, |yi, xi, wi| {
        let (xv, wv, dv) = (to(x.at(xi)), to(w.at(wi)), to(dy.at(yi)));
        let (yf, xf, wf) = (flat(ys, yi), flat(xs, xi), flat(ws, wi));
        y_want[yf] += xv * wv;
        y_size[yf] += (xv * wv).abs();
        x_want[xf] += dv * wv;
        x_size[xf] += (dv * wv).abs();
        w_want[wf] += dv * xv;
        w_size[wf] += (dv * xv).abs();
    });
    // Rounding errors of a plain sum grow like the square root of its length.
    let bound = |size: &mut Vec<f64>, terms: usize| {
        size.iter_mut().for_each(|s| *s = (*s + 1.0) * (4.0 + (terms as f64).sqrt()));
    };
    bound(&mut y_size, g.c / g.groups * g.r * g.s);
    bound(&mut x_size, g.k / g.groups * g.r * g.s);
    bound(&mut w_size, g.n * g.p * g.q);
    let mut y = Placed::new(ys, not_repeated(ly), |i| from(value(i)));
    let before = y.data.clone();
    // SAFETY: the operands hold what their strides name.
    unsafe { forward(g, x.view(), w.view(), bias.then_some((b.as_ptr(), 2)), y.view_mut()) };
    compare(&format!("forward {name}"), &y, &before, (&y_want, &y_size), to, eps);
    let mut dx = Placed::new(xs, not_repeated(lx), |i| from(value(i)));
    let before = dx.data.clone();
    // SAFETY: as above.
    unsafe { input_grad(g, dy.view(), w.view(), dx.view_mut()) };
    compare(&format!("input_grad {name}"), &dx, &before, (&x_want, &x_size), to, eps);
    let mut dw = Placed::new(ws, not_repeated(lw), |i| from(value(i)));
    let before = dw.data.clone();
    // SAFETY: as above.
    unsafe { weight_grad(g, x.view(), dy.view(), dw.view_mut()) };
    compare(&format!("weight_grad {name}"), &dw, &before, (&w_want, &w_size), to, eps);
}

fn both(g: &ConvGeometry, lays: [Lay; 3], bias: bool) {
    check::<f32>(g, lays, bias, (|x| x as f32, f64::from), 6e-8);
    check::<f64>(g, lays, bias, (|x| x, |x| x), 1.2e-16);
}

fn on_every_isa(f: impl Fn()) {
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        with_isa(isa, &f);
    }
}

/// Sizes `(n, c, h, w, k, r, s)` with symmetric padding.
fn geometry(
    (n, c, h, w): (usize, usize, usize, usize),
    (k, r, s): (usize, usize, usize),
    stride: [usize; 2],
    pad: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
) -> ConvGeometry {
    let out = |size, kernel, d: usize| {
        ConvGeometry::output_size(size, kernel, stride[d], (pad[d], pad[d]), dilation[d]).expect("fits")
    };
    let (p, q) = (out(h, r, 0), out(w, s, 1));
    ConvGeometry { n, c, h, w, k, r, s, stride, pad_before: pad, pad_after: pad, dilation, groups, p, q }
}

fn some_geometries() -> Vec<ConvGeometry> {
    vec![
        geometry((2, 3, 9, 11), (5, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        geometry((2, 17, 7, 6), (34, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        geometry((1, 20, 8, 9), (40, 3, 2), [2, 2], [1, 0], [1, 1], 1),
        geometry((2, 4, 10, 9), (16, 3, 3), [2, 1], [2, 2], [1, 2], 1),
        geometry((1, 18, 11, 12), (6, 3, 3), [3, 2], [2, 1], [2, 3], 1),
        geometry((3, 1, 12, 20), (6, 5, 5), [1, 1], [0, 0], [1, 1], 1),
        geometry((2, 3, 15, 15), (8, 7, 7), [2, 2], [3, 3], [1, 1], 1),
        geometry((2, 19, 5, 6), (33, 1, 1), [1, 1], [0, 0], [1, 1], 1),
        geometry((2, 6, 6, 5), (7, 1, 1), [2, 2], [0, 0], [1, 1], 1),
        geometry((2, 4, 5, 5), (4, 1, 1), [1, 1], [1, 1], [1, 1], 1),
        geometry((2, 6, 7, 7), (9, 3, 3), [1, 1], [1, 1], [1, 1], 3),
        geometry((2, 5, 7, 8), (5, 3, 3), [1, 1], [1, 1], [1, 1], 5),
        geometry((2, 40, 6, 7), (40, 3, 3), [2, 2], [1, 1], [1, 1], 40),
        geometry((1, 3, 6, 7), (6, 3, 2), [2, 1], [1, 1], [1, 2], 3),
        geometry((2, 2, 4, 4), (3, 4, 4), [4, 4], [0, 0], [1, 1], 1),
        geometry((1, 2, 7, 7), (2, 4, 4), [4, 4], [0, 0], [1, 1], 1),
        geometry((1, 2, 3, 3), (2, 5, 5), [1, 1], [3, 3], [1, 1], 1),
        geometry((1, 1, 1, 1), (1, 1, 1), [1, 1], [0, 0], [1, 1], 1),
        geometry((1, 70, 2, 2), (70, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    ]
}

#[test]
fn every_geometry_in_both_formats_on_every_isa() {
    on_every_isa(|| {
        for (i, g) in some_geometries().iter().enumerate() {
            both(g, [Contiguous; 3], i % 2 == 0);
            both(g, [ChannelsLast; 3], i % 2 == 1);
            both(g, [Contiguous, ChannelsLast, ChannelsLast], true);
            both(g, [ChannelsLast, Contiguous, Contiguous], false);
        }
    });
}

#[test]
fn every_stride_pattern() {
    let all = [Contiguous, ChannelsLast, Stepped, Reversed, Transposed, Odd, Repeated];
    for (i, g) in some_geometries().iter().enumerate() {
        for a in 0..all.len() {
            for b in 0..all.len() {
                both(g, [all[a], all[b], all[(a + b + i) % all.len()]], (a + b) % 2 == 0);
            }
        }
    }
}

#[test]
fn padding_on_one_side() {
    on_every_isa(|| {
        for (before, after) in [([2, 0], [0, 1]), ([0, 1], [2, 0])] {
            for stride in [[1, 1], [2, 3]] {
                let base = geometry((2, 3, 6, 7), (5, 3, 2), stride, [0, 0], [1, 1], 1);
                let p = ConvGeometry::output_size(6, 3, stride[0], (before[0], after[0]), 1).unwrap();
                let q = ConvGeometry::output_size(7, 2, stride[1], (before[1], after[1]), 1).unwrap();
                let g = ConvGeometry { pad_before: before, pad_after: after, p, q, ..base };
                both(&g, [Contiguous; 3], true);
                both(&g, [ChannelsLast; 3], true);
            }
        }
    });
}

#[test]
fn sizes_that_straddle_blocks_and_parts() {
    // Several blocks, parts and weight groups: more pixels and channels than one of each.
    for g in [
        geometry((2, 24, 40, 40), (40, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        geometry((2, 300, 6, 6), (290, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        geometry((3, 3, 70, 70), (12, 5, 5), [1, 1], [2, 2], [1, 1], 1),
    ] {
        for lay in [Contiguous, ChannelsLast] {
            check::<f32>(&g, [lay; 3], true, (|x| x as f32, f64::from), 6e-8);
        }
    }
}

#[test]
fn nothing_to_do() {
    let g = geometry((0, 3, 5, 5), (4, 3, 3), [1, 1], [1, 1], [1, 1], 1);
    both(&g, [Contiguous; 3], true);
    let g = geometry((2, 0, 5, 5), (4, 3, 3), [1, 1], [1, 1], [1, 1], 1);
    both(&g, [Contiguous; 3], true);
    both(&g, [Contiguous; 3], false);
    let g = geometry((0, 4, 5, 5), (4, 3, 3), [1, 1], [1, 1], [1, 1], 4);
    both(&g, [ChannelsLast; 3], true);
}

#[test]
fn same_bits_for_any_number_of_threads() {
    for g in [
        geometry((4, 16, 20, 20), (32, 3, 3), [1, 1], [1, 1], [1, 1], 1),
        geometry((4, 3, 32, 32), (16, 5, 5), [2, 2], [2, 2], [1, 1], 1),
        geometry((4, 64, 14, 14), (64, 3, 3), [1, 1], [1, 1], [1, 1], 64),
    ] {
        for lay in [Contiguous, ChannelsLast] {
            let run = || {
                let x = Placed::new([g.n, g.c, g.h, g.w], lay, |i| value(i) as f32);
                let w = Placed::new([g.k, g.c / g.groups, g.r, g.s], lay, |i| value(i + 3) as f32);
                let mut y = Placed::new([g.n, g.k, g.p, g.q], lay, |_| 0f32);
                let mut dx = Placed::new(x.sizes, lay, |_| 0f32);
                let mut dw = Placed::new(w.sizes, lay, |_| 0f32);
                // SAFETY: the operands hold what their strides name.
                unsafe {
                    forward(&g, x.view(), w.view(), None, y.view_mut());
                    input_grad(&g, y.view(), w.view(), dx.view_mut());
                    weight_grad(&g, x.view(), y.view(), dw.view_mut());
                }
                [y.data, dx.data, dw.data].concat()
            };
            let pool = |t: usize| rayon::ThreadPoolBuilder::new().num_threads(t).build().unwrap();
            let one = pool(1).install(run);
            for t in [2, 5] {
                assert!(pool(t).install(run).iter().zip(&one).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}

#[test]
fn integers_wrap() {
    for g in some_geometries() {
        let x = Placed::new([g.n, g.c, g.h, g.w], Reversed, |i| i as i64 * 1_000_003_577_211);
        let w = Placed::new([g.k, g.c / g.groups, g.r, g.s], ChannelsLast, |i| i as i64 * 77_777_777 - 5);
        let mut y = Placed::new([g.n, g.k, g.p, g.q], Odd, |i| i as i64);
        let mut want = vec![0i64; g.n * g.k * g.p * g.q];
        products(&g, |yi, xi, wi| {
            let at = &mut want[flat([g.n, g.k, g.p, g.q], yi)];
            *at = at.wrapping_add(x.at(xi).wrapping_mul(w.at(wi)));
        });
        // SAFETY: the operands hold what their strides name.
        unsafe { forward_i64(&g, x.view(), w.view(), y.view_mut()) };
        for i in y.indices() {
            assert_eq!(y.at(i), want[flat(y.sizes, i)]);
        }
    }
}

#[test]
fn output_sizes() {
    let size = ConvGeometry::output_size;
    assert_eq!(size(28, 5, 1, (0, 0), 1), Some(24));
    assert_eq!(size(7, 4, 4, (0, 0), 1), Some(1));
    assert_eq!(size(2, 3, 1, (0, 0), 1), None);
    assert_eq!(size(2, 3, 1, (1, 0), 1), Some(1));
    assert_eq!(size(5, 3, 0, (0, 0), 1), None);
    assert_eq!(size(5, 0, 1, (0, 0), 1), None);
    assert_eq!(size(5, 3, 2, (1, 1), 2), Some(2));
    assert_eq!(size(usize::MAX, 3, 1, (1, 1), 1), None);
}
