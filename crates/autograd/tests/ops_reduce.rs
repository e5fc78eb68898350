//! Reductions: empties, NaN, ties, dtypes, as PyTorch has them.

mod common;

use common::*;
use stridegrad_autograd::{BackwardOptions, Tensor, grad, tensor};
use stridegrad_core::{DType, ErrorKind};

#[test]
fn of_nothing() {
    let none = v(&[]);
    same(&none.sum(), &[0.0]);
    same(&none.prod(), &[1.0]);
    same(&none.mean(), &[NAN]);
    same(&none.var(1), &[NAN]);
    same(&none.std(0), &[NAN]);
    same(&none.logsumexp(0, false), &[-INF]);
    same(&none.norm(2.0), &[0.0]);
    same(&none.norm(1.0), &[0.0]);
    assert!(!none.any().item::<bool>() && none.all().item::<bool>());
    assert_eq!(none.softmax(0).sizes(), [0]);
    assert_eq!(none.cumsum(0).sizes(), [0]);
    for r in [none.try_max(), none.try_min(), none.try_amax(0, false), none.try_argmax(None, false)] {
        refused(r, ErrorKind::Index);
    }
    let x = Tensor::zeros([0, 3]);
    same(&x.sum_dims(0, false), &[0.0; 3]);
    same(&x.mean_dims(0, false), &[NAN; 3]);
    same(&x.prod_dims(0, false), &[1.0; 3]);
    refused(x.try_amax(0, false), ErrorKind::Index);
    refused(x.try_max_dim(0, false), ErrorKind::Index);
    refused(x.try_argmin(0, false), ErrorKind::Index);
    assert_eq!(x.amax(1, false).sizes(), [0]);
    assert_eq!(x.max_dim(1, true).1.sizes(), [0, 1]);
    assert_eq!(x.argmax(1, false).sizes(), [0]);
    // An empty list of dims reduces nothing.
    let y = v(&[1.0, 2.0]);
    for r in [y.sum_dims((), false), y.mean_dims((), false), y.amax((), false), y.prod_dims((), true)] {
        same(&r, &[1.0, 2.0]);
    }
}

#[test]
fn of_one() {
    let x = v(&[3.0]);
    same(&x.var(1), &[NAN]);
    same(&x.var(0), &[0.0]);
    let s = Tensor::scalar(3.0);
    for dim in [0, -1] {
        same(&s.sum_dims(dim, true), &[3.0]);
        same(&s.amax(dim, false), &[3.0]);
        assert_eq!(s.argmax(dim, true).sizes(), [0usize; 0]);
        assert_eq!(s.max_dim(dim, true).1.item::<i64>(), 0);
        same(&s.softmax(dim), &[1.0]);
        same(&s.log_softmax(dim), &[0.0]);
        same(&s.cumsum(dim), &[3.0]);
    }
    refused(s.try_sum_dims(1, false), ErrorKind::Dim);
    refused(x.try_mean_dims([0, 0], false), ErrorKind::Dim);
}

#[test]
fn dtypes() {
    let i = Tensor::from([i32::MAX, 1]);
    assert_eq!(i.sum().item::<i64>(), 2_147_483_648);
    assert_eq!(Tensor::from([200u8, 2]).cumsum(0).to_vec::<i64>(), [200, 202]);
    assert_eq!(tensor![true, true].prod().dtype(), DType::I64);
    for r in [i.try_mean(), i.try_var(1), i.try_std(1), i.try_norm(2.0), i.try_softmax(0)] {
        refused(r, ErrorKind::DType);
    }
    assert_eq!(i.amax(0, false).dtype(), DType::I32);
    assert_eq!(tensor![true, false].max().dtype(), DType::Bool);
    assert_eq!(i.logsumexp(0, false).dtype(), DType::F32);
    // The sum of many halves overflows; their mean does not, and counts exactly.
    let h = Tensor::full([70_000], 2.0).to_dtype(DType::F16);
    assert_eq!(h.mean().to_dtype(DType::F32).item::<f32>(), 2.0);
    assert_eq!(h.var(0).to_dtype(DType::F32).item::<f32>(), 0.0);
}

#[test]
fn nan_wins() {
    let x = v(&[1.0, NAN, 3.0, NAN]);
    same(&x.max(), &[NAN]);
    same(&x.min(), &[NAN]);
    same(&x.amax(0, false), &[NAN]);
    let (value, index) = x.max_dim(0, false);
    same(&value, &[NAN]);
    assert_eq!(index.item::<i64>(), 1);
    assert_eq!(x.argmin(0, false).item::<i64>(), 1);
    assert_eq!(x.argmax(None, true).sizes(), [1]);
    assert!(v(&[0.0, NAN]).any().item::<bool>() && x.all().item::<bool>());
    same_values(&grad_of(&[1.0, NAN, NAN], Tensor::max), &[0.0, 0.5, 0.5]);
}

#[test]
fn ties() {
    let x = [0.0, 5.0, 5.0, 1.0];
    same_values(&grad_of(&x, Tensor::max), &[0.0, 0.5, 0.5, 0.0]);
    same_values(&grad_of(&x, |x| x.amax(0, true)), &[0.0, 0.5, 0.5, 0.0]);
    same_values(&grad_of(&x, |x| x.max_dim(0, false).0), &[0.0, 1.0, 0.0, 0.0]);
    same_values(&grad_of(&[2.0, 0.0, 0.0], |x| x.min_dim(0, true).0), &[0.0, 1.0, 0.0]);
    assert_eq!(v(&x).argmax(0, false).item::<i64>(), 1);
    let m = tensor![[1.0, 3.0], [3.0, 2.0]];
    assert_eq!(m.argmax(None, false).item::<i64>(), 1);
    assert_eq!(m.t().argmax(None, false).item::<i64>(), 1);
    assert_eq!(m.argmax(None, true).sizes(), [1, 1]);
}

#[test]
fn products_with_zeros() {
    same_values(&grad_of(&[2.0, 3.0, 4.0], Tensor::prod), &[12.0, 8.0, 6.0]);
    same_values(&grad_of(&[2.0, 0.0, 4.0], Tensor::prod), &[0.0, 8.0, 0.0]);
    same_values(&grad_of(&[0.0, 0.0, 4.0], Tensor::prod), &[0.0, 0.0, 0.0]);
    // Second derivatives of xyz at (2, 0, 4) in the direction (1, 1, 1) of the gradient (yz, xz, xy).
    let x = leaf(&[2.0, 0.0, 4.0]);
    let graph = BackwardOptions { create_graph: true, ..Default::default() };
    let first = grad(&[&x.prod()], &[&x], None, graph).unwrap()[0].clone().unwrap();
    same(&first, &[0.0, 8.0, 0.0]);
    let second = grad(&[&first.sum()], &[&x], None, graph).unwrap()[0].clone().unwrap();
    same(&second, &[4.0, 6.0, 2.0]);
}

#[test]
fn norms_and_deviations_of_constants() {
    same_values(&grad_of(&[0.0; 3], |x| x.norm(2.0)), &[0.0; 3]);
    same_values(&grad_of(&[0.0; 3], |x| x.norm(1.0)), &[0.0; 3]);
    same_values(&grad_of(&[2.0; 3], |x| x.std(1)), &[0.0; 3]);
    same(&v(&[3.0, -4.0]).norm(f64::INFINITY), &[4.0]);
    same(&v(&[3.0, -4.0]).norm(1.0), &[7.0]);
    // No cancellation: a large mean does not swallow the variance.
    let x = v(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
    same(&x.var(1), &[30.0]);
    let f = Tensor::from([4096.25f32, 4096.5, 4096.75]);
    assert_eq!(f.var(1).item::<f32>(), 0.0625);
}

#[test]
fn soft_maxima() {
    close(&v(&[1000.0, 1000.0]).softmax(0).to_vec(), &[0.5, 0.5], 1e-15);
    same(&Tensor::from([-1e38f32, 1e38]).softmax(0), &[0.0, 1.0]);
    same(&v(&[1000.0, 0.0]).log_softmax(0), &[0.0, -1000.0]);
    same(&v(&[-INF, 0.0]).softmax(0), &[0.0, 1.0]);
    same(&v(&[-INF, -INF]).softmax(0), &[NAN, NAN]);
    same(&v(&[-INF, -INF]).log_softmax(0), &[NAN, NAN]);
    same(&v(&[INF, 0.0]).softmax(0), &[NAN, NAN]);
    same(&v(&[-INF, -INF]).logsumexp(0, false), &[-INF]);
    same(&v(&[INF, 0.0]).logsumexp(0, false), &[INF]);
    close(&v(&[1000.0, 1000.0]).logsumexp(0, true).to_vec(), &[1000.0 + 2f64.ln()], 1e-15);
    let x = (Tensor::arange(12.0) + 1.0).view([3, 4]).t().softmax(1);
    let row: Vec<f64> = x.select(0, 0).to_dtype(DType::F64).to_vec();
    close(&row, &[0.00032932, 0.01798029, 0.98169035], 1e-7);
    // Half precision sums in f32: 3000 equal terms give 1/3000, rounded once.
    let h = Tensor::zeros([3000]).to_dtype(DType::F16).softmax(0).to_dtype(DType::F32);
    assert_eq!(h.select(0, 17).item::<f32>(), half_of(1.0 / 3000.0));
}

fn half_of(v: f32) -> f32 {
    Tensor::scalar(v).to_dtype(DType::F16).to_dtype(DType::F32).item()
}

#[test]
fn results_are_row_major() {
    let x = Tensor::zeros([2, 3, 4, 5]).to_format(stridegrad_core::MemoryFormat::ChannelsLast);
    assert_eq!(x.mean_dims([2, 3], true).strides(), [3, 1, 1, 1]);
    assert_eq!(x.sum_dims(1, true).strides(), [20, 20, 5, 1]);
    assert_eq!(x.var_dims(1, 1, true).strides(), [20, 20, 5, 1]);
    assert_eq!(x.softmax(1).strides(), [60, 20, 5, 1]);
    assert_eq!(x.log_softmax(1).strides(), [60, 20, 5, 1]);
    assert_eq!(x.cumsum(1).strides(), [60, 20, 5, 1]);
    assert_eq!(x.logsumexp(1, true).strides(), [20, 20, 5, 1]);
}
