//! Absurd arguments to the `try_` faces: an error or a result, never a panic.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use stridegrad::prelude::*;
use stridegrad::{AvgPool2dOptions, Conv2dOptions, MaxPool2dOptions, PadMode, Result};

/// Runs each case; what panicked, or did neither of what was expected, by name.
#[derive(Default)]
struct Cases(Vec<String>);

impl Cases {
    fn run<T>(&mut self, name: &str, must_fail: bool, f: impl FnOnce() -> Result<T>) {
        match catch_unwind(AssertUnwindSafe(|| f().map(drop))) {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                self.0.push(format!("{name}: panicked: {}", text.unwrap_or_default()));
            }
            Ok(Ok(())) if must_fail => self.0.push(format!("{name}: accepted")),
            Ok(_) => {}
        }
    }

    /// An error is the only right answer.
    fn refused<T>(&mut self, name: &str, f: impl FnOnce() -> Result<T>) {
        self.run(name, true, f);
    }

    /// Either is right.
    fn no_panic<T>(&mut self, name: &str, f: impl FnOnce() -> Result<T>) {
        self.run(name, false, f);
    }

    #[track_caller]
    fn end(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

const BIG: usize = 1 << 44;
const EXTREMES: [i64; 8] = [i64::MIN, i64::MIN + 1, -1 << 40, -3, 1 << 40, 1 << 62, i64::MAX - 1, i64::MAX];

#[test]
fn creation() {
    let g = Generator::new(1);
    let mut c = Cases::default();
    for n in [BIG, 1 << 61, 1 << 62, 1 << 63, usize::MAX] {
        c.refused(&format!("zeros {n}"), || Tensor::try_zeros([n]));
        c.refused(&format!("ones {n}"), || Tensor::try_ones([n, 3]));
        c.refused(&format!("full {n}"), || Tensor::try_full([3, n], true));
        c.refused(&format!("linspace {n}"), || Tensor::try_linspace(0.0, 1.0, n));
        c.refused(&format!("randperm {n}"), || Tensor::try_randperm(n, &g));
        c.refused(&format!("eye {n}"), || Tensor::try_eye(n, 2));
        c.refused(&format!("eye 2 {n}"), || Tensor::try_eye(n, n));
        c.refused(&format!("rand {n}"), || Tensor::try_rand([n], &g));
        c.refused(&format!("randn {n}"), || Tensor::try_randn([2, n], &g));
        c.refused(&format!("randint {n}"), || Tensor::try_randint(0, 3, [n], &g));
        c.refused(&format!("bernoulli {n}"), || Tensor::try_bernoulli([n], 0.5, DType::F32, &g));
        c.refused(&format!("from_slice {n}"), || Tensor::try_from_slice(&[1.0f32], [n]));
        c.refused(&format!("from_le_bytes {n}"), || Tensor::try_from_le_bytes(&[0; 8], DType::F64, [n]));
        c.no_panic(&format!("zeros {n} x 0"), || Tensor::try_zeros([n, 0]));
        c.no_panic(&format!("eye {n} x 0"), || Tensor::try_eye(n, 0));
    }
    for e in EXTREMES {
        for f in EXTREMES {
            c.refused(&format!("zeros {e} {f}"), || Tensor::try_zeros([e, f]));
            c.no_panic(&format!("randint {e} {f}"), || Tensor::try_randint(e, f, [5], &g));
            for s in [e, f, 0, 1, -1] {
                if ((f as i128 - e as i128) / i128::from(s).max(1)).abs() > 1 << 40 {
                    c.no_panic(&format!("arange {e} {f} {s}"), || Tensor::try_arange_step(e, f, s));
                }
            }
        }
        if !(-1 << 20..1 << 41).contains(&e) {
            c.no_panic(&format!("arange {e}"), || Tensor::try_arange(e));
        }
    }
    for x in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, -1e300, 1e15] {
        c.refused(&format!("arange {x}"), || {
            Tensor::try_arange(x).and_then(|t| if x < 0.0 { Tensor::try_zeros([-1]) } else { Ok(t) })
        });
        c.no_panic(&format!("linspace {x}"), || Tensor::try_linspace(x, -x, 5));
        c.refused(&format!("arange step {x}"), || Tensor::try_arange_step(0.0, x, 1e-300 * x.signum()));
        c.no_panic("uniform", || Tensor::try_uniform([3], x, -x, DType::F32, &g));
        c.no_panic("normal", || Tensor::try_normal([3], x, x, DType::F32, &g));
        c.no_panic("bernoulli", || Tensor::try_bernoulli([3], x, DType::F32, &g));
    }
    c.refused("rank 9", || Tensor::try_zeros([1; 9]));
    c.refused("bytes short", || Tensor::try_from_le_bytes(&[0; 7], DType::F32, [2]));
    c.refused("bytes long", || Tensor::try_from_le_bytes(&[0; 9], DType::F32, [2]));
    c.no_panic("bytes as bool", || Tensor::try_from_le_bytes(&[7, 2], DType::Bool, [2]));
    c.end();
}

#[test]
fn what_expands_beyond_memory() {
    let g = Generator::new(1);
    let mut c = Cases::default();
    let huge = Tensor::ones([1]).expand([BIG]);
    let square = Tensor::ones([1, 1]).expand([1 << 22, 1 << 22]);
    let i = Tensor::full([1], 0).expand([BIG]);
    c.refused("contiguous", || huge.try_contiguous());
    c.refused("copy", || huge.try_copy());
    c.refused("add", || huge.try_add(&huge));
    c.refused("exp", || huge.try_exp());
    c.refused("to_vec", || huge.try_to_vec::<f32>());
    c.refused("to_vec_f64", || huge.try_to_vec_f64());
    c.refused("to_le_bytes", || huge.try_to_le_bytes());
    c.refused("to_dtype", || huge.try_to_dtype(DType::F64));
    c.refused("cumsum", || huge.try_cumsum(0));
    c.refused("flip", || huge.try_flip(0));
    c.refused("roll", || huge.try_roll(1, 0));
    c.refused("pad", || huge.try_pad([1, 1], PadMode::ZEROS));
    c.refused("cat", || Tensor::try_cat(&[&huge, &huge], 0));
    c.refused("stack", || Tensor::try_stack(&[&huge, &huge], 0));
    c.refused("outer", || huge.try_outer(&huge));
    c.refused("square mm", || square.try_mm(&square));
    c.refused("matmul", || square.try_matmul(&Tensor::ones([1 << 22, 1]).expand([1 << 22, 1 << 22])));
    // Integers are widened for the product: a copy that does not fit.
    let one = Tensor::full_on([1, 1], 1, DType::I32, Device::CPU);
    c.refused("product of integers", || one.try_expand([1, BIG])?.try_matmul(&one.try_expand([BIG, 1])?));
    c.refused("one_hot", || i.try_one_hot(2));
    c.refused("one_hot huge classes", || Tensor::full([2], 0).try_one_hot(1 << 50));
    c.refused("index_select", || Tensor::ones([2]).try_index_select(0, &i));
    c.refused("gather", || huge.try_gather(0, &i));
    c.refused("where", || huge.try_gt(1.0));
    c.refused("dropout", || huge.try_dropout(0.5, true, &g));
    c.refused("repeat", || Tensor::ones([2]).try_repeat([1i64 << 50]));
    c.refused("repeat overflow", || Tensor::ones([2]).try_repeat([1i64 << 62, 1 << 62]));
    c.refused("tril", || square.try_tril(0));
    c.refused("zeros_like", || huge.try_zeros_like());
    c.refused("contiguous channels last", || {
        Tensor::ones([1, 1, 1, 1])
            .expand([1 << 20, 2, 1 << 20, 2])
            .try_contiguous_in(MemoryFormat::ChannelsLast)
    });
    c.refused("split into single elements", || huge.try_split(1, 0));
    c.refused("unbind", || huge.try_unbind(0));
    c.refused("chunk", || huge.try_chunk(i64::MAX, 0));
    c.refused("unfold", || huge.try_unfold(0, i64::MAX, 1));
    // A backward whose gradient is expanded to what does not fit.
    let x = Tensor::ones([1]).requires_grad_(true);
    c.no_panic("unfold huge views", || huge.try_unfold(0, 1 << 43, 1));
    c.refused("expanded backward", || (&x.expand([BIG]).narrow(0, 0, 3) * 2.0).try_backward());
    c.end();
}

#[test]
fn views() {
    let mut c = Cases::default();
    let x = Tensor::arange(24.0).view([2, 3, 4]);
    let zero = Tensor::zeros([2, 0, 3]);
    let scalar = Tensor::scalar(1.0);
    for t in [&x, &zero, &scalar, &Tensor::ones([1]).expand([1i64 << 40, 1])] {
        for a in EXTREMES {
            c.no_panic("select", || t.try_select(a, 0));
            c.refused("select index", || {
                t.try_select(0, a).and_then(|r| {
                    if t.sizes().first() == Some(&(1 << 40)) { Tensor::try_zeros([-1]) } else { Ok(r) }
                })
            });
            c.no_panic("softmax", || t.try_softmax(if t.numel() < 100 { a } else { 99 }));
            c.refused("squeeze", || {
                t.try_squeeze_dims(a).and_then(|r| if a == -3 { Tensor::try_zeros([-1]) } else { Ok(r) })
            });
            c.refused("unsqueeze", || {
                t.try_unsqueeze(a).and_then(|r| if a == -3 { Tensor::try_zeros([-1]) } else { Ok(r) })
            });
            c.no_panic("sum", || t.try_sum_dims(if t.numel() < 100 { a } else { 99 }, false));
            c.no_panic("amax", || t.try_amax(if t.numel() < 100 { a } else { 99 }, false));
            c.no_panic("cumsum", || t.try_cumsum(if t.numel() < 100 { a } else { 99 }));
            c.no_panic("tril", || if t.numel() < 100 { t.try_tril(a) } else { t.try_t() });
            c.no_panic("triu", || if t.numel() < 100 { t.try_triu(a) } else { t.try_t() });
            c.no_panic("unflatten", || t.try_unflatten(0, [a, -1]));
            c.no_panic("flatten", || t.try_flatten(a, a));
            c.no_panic("movedim", || t.try_movedim(a, 0));
            c.no_panic("view", || t.try_view([a, -1]));
            c.no_panic("reshape", || t.try_reshape([-1, a, a]));
            c.no_panic("expand", || t.try_expand([a, 2, 3, 4]));
            c.no_panic("repeat", || if t.numel() < 100 { t.try_repeat([a, a, a, a]) } else { t.try_t() });
            c.no_panic("pow", || if t.numel() < 100 { t.try_pow(a) } else { t.try_t() });
            for b in EXTREMES.into_iter().chain([0, 1]) {
                c.no_panic("narrow", || t.try_narrow(0, a, b));
                c.no_panic("narrow", || t.try_narrow(0, b, a));
                c.no_panic("split_sizes", || t.try_split_sizes([a, b], 0));
                c.no_panic("diagonal", || t.try_diagonal(a, b, 0));
                c.no_panic("diagonal", || t.try_diagonal(a, 0, 1));
                c.no_panic("unfold", || t.try_unfold(0, a, b));
                c.no_panic("unfold", || t.try_unfold(0, b, a));
                c.no_panic("transpose", || t.try_transpose(a, b));
                c.no_panic("roll", || if t.numel() < 100 { t.try_roll([a, b], [0, 0]) } else { t.try_t() });
                c.no_panic("pad", || {
                    if t.numel() < 100 { t.try_pad([a, b], PadMode::ZEROS) } else { t.try_t() }
                });
                for mode in [PadMode::Reflect, PadMode::Replicate, PadMode::Circular] {
                    c.no_panic("pad", || if t.numel() < 100 { t.try_pad([a, b], mode) } else { t.try_t() });
                }
                c.no_panic("as_strided", || t.try_as_strided([2, a], [b, 1], None));
                c.no_panic("as_strided", || t.try_as_strided([2, 2], [a, b], None));
                c.no_panic("as_strided", || t.try_as_strided([2, 2], [a, b], Some(usize::MAX)));
                c.no_panic("as_strided", || t.try_as_strided([0, 2], [a, b], Some(a as usize)));
                c.no_panic("as_strided sum", || {
                    t.try_as_strided([0, 2], [a, b], Some(a as usize))?.try_sum()
                });
                c.no_panic("as_strided one", || t.try_as_strided([1, 1], [a, b], Some(0))?.try_add(1.0));
                c.no_panic("as_strided one", || t.try_as_strided([1, 1], [a, b], Some(0))?.try_to_vec_f64());
                for step in EXTREMES.into_iter().chain([0, 1, -1]) {
                    c.no_panic("slice", || t.try_slice(0, Some(a), Some(b), step));
                    c.no_panic("slice", || t.try_slice(0, Some(b), None, step));
                    c.no_panic("slice", || t.try_slice(0, None, Some(b), step));
                }
            }
        }
    }
    let small = x.select(0, 0);
    c.refused("view -1 twice", || x.try_view([-1, -1]));
    c.refused("view of nothing by -1", || zero.try_view([-1, 0]));
    c.refused("permute twice", || x.try_permute([0, 0, 1]));
    c.refused("permute few", || x.try_permute([0, 1]));
    c.refused("split 0", || x.try_split(0, 0));
    c.refused("split -1", || x.try_split(-1, 0));
    c.refused("chunk 0", || x.try_chunk(0, 0));
    c.refused("cat none", || Tensor::try_cat(&[] as &[Tensor], 0));
    c.refused("stack none", || Tensor::try_stack(&[] as &[Tensor], 0));
    c.refused("cat mismatched", || Tensor::try_cat(&[&x, &small], 0));
    c.refused("stack mismatched", || Tensor::try_stack(&[&x, &small], 0));
    c.refused("cat scalars", || Tensor::try_cat(&[&scalar, &scalar], 0));
    for bad in [-5, 4, i64::MAX, i64::MIN] {
        let index = Tensor::full([1, 1, 1], bad);
        c.refused("gather", || x.try_gather(2, &index));
        c.refused("scatter", || x.try_scatter_add(2, &index, &Tensor::ones([1, 1, 1])));
        c.refused("index_select", || x.try_index_select(2, &index.view([1])));
        c.refused("index_add", || x.try_index_add(2, &index.view([1]), &Tensor::ones([2, 3, 1])));
        c.refused("nll", || Tensor::ones([1, 3]).try_nll_loss(&Tensor::full([1], bad)));
        c.refused("cross entropy", || Tensor::ones([1, 3]).try_cross_entropy(&Tensor::full([1], bad)));
        c.refused("one hot", || Tensor::full([1], bad).try_one_hot(3));
    }
    c.refused("gather rank", || x.try_gather(2, &Tensor::full([1], 0)));
    c.refused("gather f32", || x.try_gather(2, &Tensor::ones([1, 1, 1])));
    c.end();
}

#[test]
fn windows() {
    let mut c = Cases::default();
    let extremes = [0, 1, 2, 1 << 31, 1 << 61, 1 << 62, 1 << 63, usize::MAX - 1, usize::MAX];
    let x = Tensor::ones([1, 2, 4, 5]).requires_grad_(true);
    let w = Tensor::ones([2, 2, 2, 2]).requires_grad_(true);
    for a in extremes {
        for b in extremes {
            for d in [0, 1, 1 << 31, 1 << 62, usize::MAX] {
                for ceil in [false, true] {
                    let max = MaxPool2dOptions::new(a).padding(b).dilation(d).ceil_mode(ceil);
                    let small = a <= 2 || b <= 2;
                    if small {
                        c.no_panic(&format!("max {max:?}"), || {
                            x.try_max_pool2d(max)?.try_sum()?.try_backward()
                        });
                        c.no_panic(&format!("max {max:?}"), || {
                            x.try_max_pool2d(max.stride(1))?.try_sum()?.try_backward()
                        });
                        let avg = AvgPool2dOptions::new(a).padding(b).stride(d).ceil_mode(ceil);
                        c.no_panic(&format!("avg {avg:?}"), || {
                            x.try_avg_pool2d(avg)?.try_sum()?.try_backward()
                        });
                    }
                }
                let o = Conv2dOptions::new().padding(a).stride(b).dilation(d);
                // A padding that makes an output of many gigabytes is no fault.
                if a != 1 << 31 {
                    c.no_panic(&format!("conv {o:?}"), || {
                        x.try_conv2d(&w, None, o)?.try_sum()?.try_backward()
                    });
                }
            }
            c.no_panic("groups", || x.try_conv2d(&w, None, Conv2dOptions::new().groups(a)));
        }
        if a != 1 << 31 {
            c.no_panic(&format!("adaptive {a}"), || x.try_adaptive_avg_pool2d(a));
            c.no_panic(&format!("adaptive max {a}"), || x.try_adaptive_max_pool2d(a));
        }
    }
    c.end();
}

#[test]
fn minus_zero_stays() {
    assert!(Tensor::full([2], -0.0).to_vec::<f32>().iter().all(|v| v.is_sign_negative()));
    assert!(Tensor::scalar(-0.0).item::<f32>().is_sign_negative());
    let x = Tensor::ones([2]);
    x.fill_(-0.0);
    assert!(x.to_vec::<f32>().iter().all(|v| v.is_sign_negative()));
}
