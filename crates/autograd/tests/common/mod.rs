//! What the tests of ops share.
#![allow(dead_code)]

use stridegrad_autograd::Tensor;
use stridegrad_core::{ErrorKind, Result};

pub const INF: f64 = f64::INFINITY;
pub const NAN: f64 = f64::NAN;

/// A vector of `f64`.
pub fn v(values: &[f64]) -> Tensor {
    Tensor::from(values)
}

/// A vector of `f64` that requires grad.
pub fn leaf(values: &[f64]) -> Tensor {
    v(values).requires_grad_(true)
}

/// The gradient of the sum of `f`.
pub fn grad_of(x: &[f64], f: impl Fn(&Tensor) -> Tensor) -> Vec<f64> {
    let x = leaf(x);
    f(&x).sum().backward();
    x.grad().map_or_else(Vec::new, |g| g.to_vec())
}

/// Values as they are; NaN equals NaN.
#[track_caller]
pub fn same(got: &Tensor, want: &[f64]) {
    let got = got.try_to_vec_f64().unwrap();
    same_values(&got, want);
}

/// Values as they are; NaN equals NaN.
#[track_caller]
pub fn same_values(got: &[f64], want: &[f64]) {
    let equal = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    assert!(got.len() == want.len() && got.iter().zip(want).all(equal), "got {got:?}, want {want:?}");
}

/// Values up to rounding.
#[track_caller]
pub fn close(got: &[f64], want: &[f64], tolerance: f64) {
    let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= tolerance * (1.0 + b.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "got {got:?}, want {want:?}");
}

/// That a call is refused, with an error of this kind.
#[track_caller]
pub fn refused<T>(result: Result<T>, kind: ErrorKind) {
    match result {
        Ok(_) => panic!("not refused"),
        Err(e) => assert_eq!(e.kind(), kind, "{e}"),
    }
}
