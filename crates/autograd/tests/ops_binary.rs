//! Functions of two operands at their special points, as PyTorch has them.

mod common;

use common::*;
use stridegrad_autograd::{Tensor, tensor};
use stridegrad_core::{DType, ErrorKind};

/// The gradients of the sum of `f` with respect to both operands.
fn grads(a: &[f64], b: &[f64], f: impl Fn(&Tensor, &Tensor) -> Tensor) -> [Vec<f64>; 2] {
    let (a, b) = (leaf(a), leaf(b));
    f(&a, &b).sum().backward();
    [&a, &b].map(|t| t.grad().unwrap().to_vec())
}

#[test]
fn powers_at_zero() {
    same_values(&grad_of(&[0.0, 0.0, 2.0], |x| x.pow(0)), &[0.0, 0.0, 0.0]);
    same_values(&grad_of(&[0.0], |x| x.pow(1)), &[1.0]);
    same_values(&grad_of(&[0.0], |x| x.pow(2)), &[0.0]);
    same_values(&grad_of(&[0.0], |x| x.pow(0.5)), &[INF]);
    let [gx, ge] = grads(&[0.0, 0.0, 2.0], &[0.0, 2.0, 0.0], |x, e| x.pow(e));
    same_values(&gx, &[0.0, 0.0, 0.0]);
    close(&ge, &[0.0, 0.0, 2f64.ln()], 1e-15);
    assert_eq!(tensor![0, 5].pow(0).to_vec::<i64>(), [1, 1]);
    assert_eq!(tensor![2, 1, -1].pow(tensor![-1, -1, -1]).to_vec::<i64>(), [0, 1, -1]);
    refused(tensor![2].try_pow(-1), ErrorKind::Argument);
    same(&v(&[2.0, -2.0]).pow(-1), &[0.5, -0.5]);
    same(&v(&[-8.0]).pow(1.0 / 3.0), &[NAN]);
    assert_eq!(tensor![2, 3].pow(2).to_vec::<i64>(), [4, 9]);
    assert_eq!(tensor![2].pow(0.5).dtype(), DType::F32);
    assert_eq!(tensor![true].pow(2).dtype(), DType::I64);
}

#[test]
fn ties_share_the_gradient() {
    let [a, b] = grads(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0], |a, b| a.maximum(b));
    same_values(&a, &[0.5, 0.0, 1.0]);
    same_values(&b, &[0.5, 1.0, 0.0]);
    let [a, b] = grads(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0], |a, b| a.minimum(b));
    same_values(&a, &[0.5, 1.0, 0.0]);
    same_values(&b, &[0.5, 0.0, 1.0]);
    same(&v(&[1.0, NAN, 1.0]).maximum(v(&[NAN, 1.0, 2.0])), &[NAN, NAN, 2.0]);
    same(&v(&[1.0, NAN, 1.0]).minimum(v(&[NAN, 1.0, 2.0])), &[NAN, NAN, 1.0]);
    let [a, b] = grads(&[NAN], &[1.0], |a, b| a.maximum(b));
    assert_eq!((a, b), (vec![1.0], vec![1.0]));
    // A number broadcasts, and the tie is shared with it.
    same_values(&grad_of(&[0.0, 1.0], |x| x.maximum(0.0)), &[0.5, 1.0]);
}

#[test]
fn floor_division_and_remainders() {
    let (a, b) = (tensor![7, -7, 7, -7], tensor![2, 2, -2, -2]);
    assert_eq!(a.floor_divide(&b).to_vec::<i64>(), [3, -4, -4, 3]);
    assert_eq!(a.remainder(&b).to_vec::<i64>(), [1, 1, -1, -1]);
    assert_eq!(a.fmod(&b).to_vec::<i64>(), [1, -1, 1, -1]);
    for f in [
        |a: &Tensor, b: &Tensor| a.try_floor_divide(b),
        |a: &Tensor, b: &Tensor| a.try_remainder(b),
        |a: &Tensor, b: &Tensor| a.try_fmod(b),
    ] {
        refused(f(&tensor![1, 2], &tensor![1, 0]), ErrorKind::Argument);
        refused(f(&tensor![true], &tensor![true]), ErrorKind::DType);
    }
    refused(tensor![1].try_remainder(0), ErrorKind::Argument);
    let x = v(&[7.5, -7.5, 1.0, -1.0, 0.0, INF, 1.0]);
    let y = v(&[2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.1]);
    same(&x.floor_divide(&y), &[3.0, -4.0, INF, -INF, NAN, NAN, 9.0]);
    same(&v(&[-7.5, 7.5, 1.0, -1.0]).remainder(v(&[2.0, -2.0, 0.0, INF])), &[0.5, -0.5, NAN, INF]);
    same(&v(&[1.0, -1.0]).floor_divide(INF), &[0.0, -1.0]);
    close(&v(&[1.0]).remainder(0.1).to_vec(), &[0.1], 1e-15);
    assert!(v(&[-0.5]).floor_divide(-INF).to_vec::<f64>()[0].is_sign_positive());
    assert!(v(&[0.5]).fmod(-2.0).to_vec::<f64>()[0] == 0.5);
    let [a, b] = grads(&[7.0, -7.0], &[2.0, 2.0], |a, b| a.remainder(b));
    assert_eq!((a, b), (vec![1.0, 1.0], vec![-3.0, 4.0]));
    let [a, b] = grads(&[7.0, -7.0], &[2.0, 2.0], |a, b| a.fmod(b));
    assert_eq!((a, b), (vec![1.0, 1.0], vec![-3.0, 3.0]));
    let [a, b] = grads(&[7.0, -7.0], &[2.0, 2.0], |a, b| a.floor_divide(b));
    assert_eq!((a, b), (vec![0.0; 2], vec![0.0; 2]));
}

#[test]
fn comparisons_promote() {
    assert_eq!(tensor![1, 2].lt(1.5).to_vec::<bool>(), [true, false]);
    assert_eq!(Tensor::from([255u8]).gt(Tensor::from([-1i8])).to_vec::<bool>(), [true]);
    // Compared as integers: in f32 they would be equal.
    assert_eq!(tensor![16_777_217i64].eq(tensor![16_777_216i64]).to_vec::<bool>(), [false]);
    let nan = v(&[NAN]);
    let all: Vec<bool> = [nan.eq(&nan), nan.lt(&nan), nan.le(&nan), nan.gt(&nan), nan.ge(&nan), nan.ne(&nan)]
        .iter()
        .flat_map(Tensor::to_vec::<bool>)
        .collect();
    assert_eq!(all, [false, false, false, false, false, true]);
    let x = leaf(&[1.0]);
    assert!(!x.eq(&x).requires_grad());
    let m = tensor![[true, false], [true, true]];
    assert_eq!(m.bitwise_and(m.t()).to_vec::<bool>(), [true, false, false, true]);
    assert_eq!(m.to_vec::<bool>(), [true, false, true, true]);
    assert_eq!((!&m).to_vec::<bool>(), [false, true, false, false]);
    assert_eq!((&m | true).to_vec::<bool>(), [true; 4]);
    assert_eq!((m.clone() ^ &m).to_vec::<bool>(), [false; 4]);
    assert_eq!((tensor![6] & 3).to_vec::<i64>(), [2]);
    assert_eq!(Tensor::from([0u8, 255]).bitwise_not().to_vec::<u8>(), [255, 0]);
    assert_eq!(v(&[0.0, NAN]).logical_not().to_vec::<bool>(), [true, false]);
    refused(tensor![1.0].try_bitwise_or(1), ErrorKind::DType);
}

#[test]
fn where_chooses_and_does_not_hide_nan() {
    let x = leaf(&[0.0, 1.0]);
    x.gt(0.0).where_(x.log(), 0.0).sum().backward();
    same_values(&x.grad().unwrap().to_vec::<f64>(), &[NAN, 1.0]);
    let y = tensor![true, false].where_(tensor![1, 2], tensor![0.5, 0.25]);
    assert_eq!(y.to_vec::<f32>(), [1.0, 0.25]);
    assert_eq!(tensor![true].where_(1, 2).dtype(), DType::I64);
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0, 2.0, 3.0]));
    Tensor::where_(&tensor![true, true, false], &a, &b).sum().backward();
    assert_eq!(a.grad().unwrap().to_vec::<f64>(), [2.0]);
    assert_eq!(b.grad().unwrap().to_vec::<f64>(), [0.0, 0.0, 1.0]);
}

#[test]
fn masked_fill_in_and_out_of_place() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    let value = Tensor::scalar(9.0).to_dtype(DType::F64).requires_grad_(true);
    let mask = tensor![true, false, true];
    let y = &x * 1.0;
    y.masked_fill_(&mask, &value);
    same(&y, &[9.0, 2.0, 9.0]);
    (&y * &v(&[1.0, 10.0, 100.0])).sum().backward();
    same(&x.grad().unwrap(), &[0.0, 10.0, 0.0]);
    same(&value.grad().unwrap(), &[101.0]);
    assert_eq!(tensor![1.0].to_dtype(DType::F16).masked_fill(&tensor![true], &value).dtype(), DType::F16);
    refused(tensor![1].try_masked_fill(&tensor![true], 1.5), ErrorKind::DType);
    refused(x.try_masked_fill(&tensor![1, 0, 1], 0.0), ErrorKind::DType);
}

#[test]
fn in_place_subtraction_and_division() {
    let mut x = v(&[6.0, 8.0]);
    x -= 2.0;
    x /= &v(&[2.0, 3.0]);
    same(&x, &[2.0, 2.0]);
    refused(tensor![4].try_div_(2), ErrorKind::DType);
    refused(tensor![4].try_sub_(0.5), ErrorKind::DType);
    refused(tensor![true].try_sub_(true), ErrorKind::DType);
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[4.0]));
    let y = &a * 1.0;
    y.div_(&b).sub_(&b);
    y.sum().backward();
    same(&a.grad().unwrap(), &[0.25, 0.25]);
    close(&b.grad().unwrap().to_vec(), &[-3.0 / 16.0 - 2.0], 1e-15);
    // Narrow destinations keep their dtype.
    let h = tensor![1.0, 2.0].to_dtype(DType::F16);
    assert_eq!(h.sub_(v(&[0.5, 0.5])).dtype(), DType::F16);
}
