//! Functions of one operand at their special points, as PyTorch has them.

mod common;

use common::*;
use stridegrad_autograd::{Tensor, tensor};
use stridegrad_core::{DType, ErrorKind, Scalar};

#[test]
fn gradients_at_kinks() {
    same_values(&grad_of(&[-1.0, 0.0, 2.0], Tensor::abs), &[-1.0, 0.0, 1.0]);
    same_values(&grad_of(&[-1.0, 0.0, 2.0], Tensor::relu), &[0.0, 0.0, 1.0]);
    same_values(&grad_of(&[-1.0, 0.0, 2.0], |x| x.leaky_relu(0.1)), &[0.1, 0.1, 1.0]);
    same_values(&grad_of(&[0.0, 3.0], |x| x.elu(1.0)), &[1.0, 1.0]);
    same_values(&grad_of(&[0.0], Tensor::sqrt), &[INF]);
    for step in [Tensor::sign, Tensor::floor, Tensor::ceil, Tensor::round, Tensor::trunc] {
        same_values(&grad_of(&[-1.5, 0.0, 0.4, 2.0], step), &[0.0; 4]);
    }
}

#[test]
fn clamp_at_its_bounds_and_beyond() {
    // The gradient at a bound is 0: the documented choice.
    let x = [-1.0, 0.0, 0.5, 1.0, 2.0];
    same_values(&grad_of(&x, |x| x.clamp(0.0, 1.0)), &[0.0, 0.0, 1.0, 0.0, 0.0]);
    same_values(&grad_of(&[-INF, 3.0, INF], |x| x.clamp(None, 1.0)), &[1.0, 0.0, 0.0]);
    same_values(&grad_of(&[-INF, 3.0, INF], |x| x.clamp_min(1.0)), &[0.0, 1.0, 1.0]);
    same(&v(&[0.0, 5.0]).clamp(2.0, 1.0), &[1.0, 1.0]);
    same(&v(&[1.0, NAN]).clamp(0.0, NAN), &[NAN, NAN]);
    same(&v(&[NAN]).clamp(0.0, 1.0), &[NAN]);
    let ints = tensor![-3, 300];
    assert_eq!(ints.clamp(0, 255).to_vec::<i64>(), [0, 255]);
    assert_eq!(ints.clamp(0, 1.5).dtype(), DType::F32);
    let big = i64::MAX - 1;
    assert_eq!(Tensor::from([i64::MIN, i64::MAX]).clamp(None, big).to_vec::<i64>(), [i64::MIN, big]);
    refused(ints.try_clamp(None, None::<Scalar>), ErrorKind::Argument);
}

#[test]
fn nan_passes_or_is_told() {
    let x = v(&[NAN, -0.0]);
    for f in [Tensor::relu, Tensor::abs, |x: &Tensor| x.leaky_relu(0.1), |x: &Tensor| x.clamp_max(6.0)] {
        assert!(f(&x).to_vec::<f64>()[0].is_nan());
    }
    assert!(x.relu().to_vec::<f64>()[1].is_sign_negative());
    same(&x.sign(), &[0.0, 0.0]);
    let odd = v(&[NAN, INF, -INF, 1.0]);
    assert_eq!(odd.isnan().to_vec::<bool>(), [true, false, false, false]);
    assert_eq!(odd.isinf().to_vec::<bool>(), [false, true, true, false]);
    assert_eq!(odd.isfinite().to_vec::<bool>(), [false, false, false, true]);
    assert_eq!(tensor![i64::MAX].isinf().to_vec::<bool>(), [false]);
    assert_eq!(tensor![i64::MAX].isfinite().to_vec::<bool>(), [true]);
    assert_eq!(odd.to_dtype(DType::Bool).to_vec::<bool>(), [true; 4]);
}

#[test]
fn rounding_and_signs() {
    let x = v(&[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999]);
    same(&x.round(), &[-2.0, -2.0, -0.0, 0.0, 2.0, 2.0, 2.0]);
    same(&x.trunc(), &[-2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    assert_eq!(Tensor::from([i32::MIN, -5]).abs().to_vec::<i32>(), [i32::MIN, 5]);
    assert_eq!(Tensor::from([3u8, 0]).sign().to_vec::<u8>(), [1, 0]);
    assert_eq!(Tensor::from([7i16]).floor().dtype(), DType::I16);
}

#[test]
fn far_from_zero_nothing_overflows() {
    same(&v(&[-1000.0, 1000.0]).sigmoid(), &[0.0, 1.0]);
    same(&v(&[-1000.0, 1000.0]).softplus(), &[0.0, 1000.0]);
    same_values(&grad_of(&[-1000.0, 0.0, 1000.0], Tensor::softplus), &[0.0, 0.5, 1.0]);
    same(&v(&[-1000.0, 1000.0]).tanh(), &[-1.0, 1.0]);
    same(&v(&[-1000.0, 1000.0]).silu(), &[-0.0, 1000.0]);
    same(&v(&[-100.0, 100.0]).gelu(), &[-0.0, 100.0]);
    same(&v(&[-100.0, 100.0]).gelu_tanh(), &[-0.0, 100.0]);
    same(&v(&[1000.0]).elu(1.0), &[1000.0]);
    same_values(&grad_of(&[-1000.0, 1000.0], |x| x.elu(1.0)), &[0.0, 1.0]);
    same(&v(&[0.0, -1.0]).log(), &[-INF, NAN]);
    same(&v(&[-1.0]).log1p(), &[-INF]);
    close(&v(&[1e-12]).log1p().to_vec(), &[1e-12], 1e-24);
    close(&v(&[1e-12]).expm1().to_vec(), &[1e-12], 1e-24);
}

#[test]
fn integers_give_floats() {
    for f in
        [Tensor::sqrt, Tensor::exp, Tensor::log, Tensor::sin, Tensor::sigmoid, Tensor::rsqrt, Tensor::erf]
    {
        assert_eq!(f(&tensor![1, 4]).dtype(), DType::F32);
        assert_eq!(f(&tensor![true]).dtype(), DType::F32);
        assert_eq!(f(&tensor![1.0].to_dtype(DType::BF16)).dtype(), DType::BF16);
    }
    assert_eq!(tensor![true].square().to_vec::<i64>(), [1]);
}

#[test]
fn gelu_as_pytorch() {
    let x = v(&[-2.0, -0.5, 0.0, 0.5, 2.0]);
    // torch.nn.functional.gelu in float64.
    let exact = [-0.04550026389635842, -0.15426876936299344, 0.0, 0.34573123063700656, 1.9544997361036416];
    let tanh = [-0.04540230591222494, -0.15428599017485606, 0.0, 0.34571400982514394, 1.954597694087775];
    close(&x.gelu().to_vec(), &exact, 1e-14);
    close(&x.gelu_tanh().to_vec(), &tanh, 1e-14);
}
