//! Tensors print as PyTorch prints them: `snapshots/display.txt` holds its very output.

use stridegrad_autograd::{Tensor, s, tensor};
use stridegrad_core::DType;

/// The tensors of `snapshots/display.py`, in its order.
fn tensors() -> Vec<Tensor> {
    vec![
        tensor![[1.0, 2.0], [3.0, 4.0]],
        tensor![1.0, 2.5, -3.0],
        tensor![1, -20, 300],
        tensor![[true, false], [false, true]],
        Tensor::scalar(2.5),
        Tensor::scalar(3),
        Tensor::scalar(3.0),
        tensor![0.0, -0.0, 0.0],
        tensor![0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        tensor![1.0, f64::NAN, f64::INFINITY, 250.0],
        tensor![1.5, f64::NAN, f64::NEG_INFINITY, -250.0],
        tensor![1e-5, 1.0],
        tensor![1e-4, 0.05],
        tensor![1.0, 1001.0],
        tensor![1.0, 1000.0],
        tensor![2e8, 3e8],
        tensor![1e20, -1e-20, 0.0],
        Tensor::from([1e200, 1.0]),
        tensor![0.03125, 0.09375, 0.15625],
        tensor![0.99999, 0.5],
        Tensor::from([1.0, 2.0]),
        tensor![1.0, 2.5].to_dtype(DType::F16),
        tensor![1.0, 2.5].to_dtype(DType::BF16),
        tensor![1u8, 200],
        Tensor::from([1i32, -2]),
        Tensor::arange(24.0).view([2, 3, 4]),
        Tensor::arange(16).view([2, 2, 2, 2]),
        Tensor::arange(30.0),
        Tensor::arange(30.0) * 0.1,
        Tensor::arange(1001.0),
        Tensor::arange(1000.0).view([100, 10]).i(s![..4]),
        Tensor::arange(1200).view([30, 40]),
        Tensor::arange(1200.0).view([2, 3, 200]),
        Tensor::arange(2000.0).view([20, 10, 10]) * 0.5,
        Tensor::zeros([7, 2, 8, 10]),
        Tensor::zeros([0]),
        Tensor::zeros([2, 0, 3]),
        Tensor::zeros([0]).to_dtype(DType::I64),
        Tensor::zeros([0, 2]).to_dtype(DType::Bool),
        Tensor::zeros([0]).to_dtype(DType::F64),
        tensor![1.0, 2.0].requires_grad_(true),
        tensor![1.0, 2.0].requires_grad_(true).exp(),
        Tensor::from([1.0, 2.0]).requires_grad_(true).exp(),
        Tensor::zeros([15]).requires_grad_(true),
        Tensor::zeros([17]).to_dtype(DType::F64).requires_grad_(true),
        Tensor::zeros([13]).requires_grad_(true),
        Tensor::arange(6.0).view([2, 3]).t(),
        tensor![1.0].requires_grad_(true).view([1, 1]),
    ]
}

#[test]
fn as_pytorch_prints() {
    let expected: Vec<(&str, &str)> = include_str!("snapshots/display.txt")
        .strip_prefix("== ")
        .into_iter()
        .flat_map(|text| text.split("\n== "))
        .filter_map(|case| case.split_once('\n'))
        .collect();
    let tensors = tensors();
    assert_eq!(tensors.len(), expected.len());
    for (t, (case, want)) in tensors.iter().zip(expected) {
        assert_eq!(t.to_string(), want.trim_end_matches('\n'), "{case}");
    }
}

#[test]
fn a_precision_sets_the_digits() {
    let t = tensor![1.0, 2.0 / 3.0];
    assert_eq!(format!("{t:.2}"), "tensor([1.00, 0.67])");
    assert_eq!(format!("{:.1}", &t * 1e9), "tensor([1.0e+09, 6.7e+08])");
}

#[test]
fn printing_does_not_need_rows_in_memory_order() {
    let t = Tensor::arange(6.0).view([2, 3]);
    assert_eq!(t.t().to_string(), t.t().contiguous().to_string());
    assert_eq!(t.reversed([0, 1]).to_string(), "tensor([[5., 4., 3.],\n        [2., 1., 0.]])");
    assert_eq!(Tensor::scalar(1.0).expand([3]).to_string(), "tensor([1., 1., 1.])");
}
