//! Where we differ from PyTorch: a test for each row of the table in `docs/src/differences.md` (rows about files are tests
//! of the crate io, the flipped and sliced ones are among the facts and the semantics).
#![forbid(unsafe_code)]

use stridegrad::prelude::*;
use stridegrad::{Conv2dOptions, ErrorKind};

#[test]
fn flip_copies_and_reversed_is_the_view() {
    let x = Tensor::arange(3.0);
    assert!(!x.flip(0).shares_storage(&x));
    assert!(x.reversed(0).shares_storage(&x) && x.slice(0, None, None, -1).shares_storage(&x));
    assert_eq!(x.reversed(0).strides(), [-1]);
}

#[test]
fn an_empty_list_of_dims_is_none() {
    let x = Tensor::arange(6.0).view([2, 3]);
    assert_eq!(x.sum_dims((), false).sizes(), [2, 3]);
    assert_eq!(x.mean_dims((), true).to_vec::<f32>(), x.to_vec::<f32>());
    assert_eq!(x.sum().sizes(), [0usize; 0]);
}

#[test]
fn floats_saturate_as_integers() {
    let x = Tensor::from_slice(&[f64::NAN, 1e30, -1e30, -1.0, 300.0, f64::INFINITY], [6]);
    assert_eq!(x.to_dtype(DType::I32).to_vec::<i32>(), [0, i32::MAX, i32::MIN, -1, 300, i32::MAX]);
    assert_eq!(x.to_dtype(DType::U8).to_vec::<u8>(), [0, 255, 0, 0, 255, 255]);
    assert_eq!(x.to_dtype(DType::I8).to_vec::<i8>(), [0, 127, -128, -1, 127, 127]);
}

#[test]
fn integer_division_by_zero_is_refused_before_anything_is_written() {
    let (x, zero) = (Tensor::from_slice(&[1i64, 2], [2]), Tensor::from_slice(&[1i64, 0], [2]));
    for result in [x.try_floor_divide(&zero), x.try_remainder(&zero), x.try_floor_divide(0)] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Argument);
    }
    assert_eq!(x.to_vec::<i64>(), [1, 2]);
    // True division is floating-point.
    assert_eq!(x.div(&zero).to_vec::<f32>(), [1.0, f32::INFINITY]);
}

#[test]
fn a_negative_size_of_expand_is_named() {
    let e = Tensor::ones([3, 1]).try_expand([3, -2]).unwrap_err();
    assert!(e.message().contains("-2"), "{e}");
}

#[test]
fn convolutions_of_nothing() {
    let bias = Tensor::from_slice(&[1.5f32, -2.0], [2]);
    let (x, w) = (Tensor::zeros([2, 0, 5, 5]), Tensor::zeros([2, 0, 3, 3]));
    let y = x.conv2d(&w, Some(&bias), Conv2dOptions::new());
    assert_eq!(y.sizes(), [2, 2, 3, 3]);
    assert!(y.select(1, 0).to_vec::<f32>().iter().all(|&v| v == 1.5));
    assert!(y.select(1, 1).to_vec::<f32>().iter().all(|&v| v == -2.0));
    let e = Tensor::ones([1, 1, 4, 4]).try_conv2d(&Tensor::zeros([1, 1, 0, 0]), None, Conv2dOptions::new());
    assert!(e.unwrap_err().message().contains("kernel size"));
}

#[test]
fn losses_do_not_broadcast() {
    let e = Tensor::ones([3, 1]).try_mse_loss(&Tensor::ones([3]), Reduction::Mean).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
}

#[test]
fn a_parameter_twice_is_refused() {
    let p = Tensor::ones([2]).requires_grad_(true);
    let e = Optim::try_with([p.clone(), p], SgdRule::new(0.1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
}

#[test]
fn a_gradient_from_the_user_is_not_aliased() {
    let x = Tensor::zeros([2, 3]).requires_grad_(true);
    let seed = Tensor::ones([6]);
    x.view([6]).backward_with(Some(&seed), BackwardOptions::default());
    let g = x.grad().unwrap();
    assert!(!g.shares_storage(&seed));
    seed.fill_(7.0);
    assert_eq!(g.to_vec::<f32>(), [1.0; 6]);
}

#[test]
fn clone_is_a_handle_and_copy_copies() {
    let x = Tensor::ones([2]);
    assert!(x.clone().is_same(&x));
    assert!(!x.copy().shares_storage(&x));
    // A write through detach() is noticed: there is no way round the version counter.
    let w = x.requires_grad_(true);
    let y = (&w * &w).sum();
    w.detach().fill_(5.0);
    assert_eq!(y.try_backward().unwrap_err().kind(), ErrorKind::Autograd);
}

#[test]
fn numbers_wrap() {
    assert_eq!((Tensor::from_slice(&[1u8], [1]) + 300).to_vec::<u8>(), [45]);
}
