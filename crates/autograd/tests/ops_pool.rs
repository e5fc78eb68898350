//! Pooling: values, gradients and refusals of the semantics tables (A22, A19, T24-T29).

use std::slice::from_ref;

use stridegrad_autograd::{
    AvgPool2dOptions, GradcheckOptions, MaxPool2dOptions, Tensor, gradcheck, gradgradcheck,
};
use stridegrad_core::{DType, MemoryFormat, Result};

const CL: MemoryFormat = MemoryFormat::ChannelsLast;

fn arange(sizes: &[usize]) -> Tensor {
    Tensor::arange(sizes.iter().product::<usize>() as f64).view(sizes)
}

fn row(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [1, 1, 1, values.len()])
}

fn to(n: usize) -> Tensor {
    Tensor::arange(n as f64).add(1.0).to_dtype(DType::F64).view([1, 1, 1, n])
}

/// A result and the gradient of its sum.
fn with_gradient(x: &Tensor, f: impl Fn(&Tensor) -> Tensor) -> (Vec<f64>, Vec<f64>) {
    let x = x.detach().requires_grad_(true);
    let y = f(&x);
    y.sum().backward();
    (y.try_to_vec_f64().unwrap(), x.grad().unwrap().try_to_vec_f64().unwrap())
}

fn text(r: Result<Tensor>) -> String {
    r.expect_err("must be refused").to_string()
}

#[test]
fn a22_max() {
    let max = |x: &Tensor, o: MaxPool2dOptions| with_gradient(x, |x| x.max_pool2d(o));
    let o = |k, s| MaxPool2dOptions::new([1, k]).stride([1, s]);
    assert_eq!(max(&to(5), o(2, 2)), (vec![2.0, 4.0], vec![0.0, 1.0, 0.0, 1.0, 0.0]));
    assert_eq!(max(&to(5), o(2, 2).ceil_mode(true)), (vec![2.0, 4.0, 5.0], vec![0.0, 1.0, 0.0, 1.0, 1.0]));
    // T24.
    let padded = |k, s| o(k, s).padding([0, 1]);
    assert_eq!(
        max(&to(5), padded(2, 2).ceil_mode(true)),
        (vec![1.0, 3.0, 5.0], vec![1.0, 0.0, 1.0, 0.0, 1.0])
    );
    assert_eq!(max(&to(3), padded(2, 2).ceil_mode(true)), (vec![1.0, 3.0], vec![1.0, 0.0, 1.0]));
    assert_eq!(max(&to(4), padded(2, 3)), (vec![1.0, 4.0], vec![1.0, 0.0, 0.0, 1.0]));
    assert_eq!(max(&to(2), o(1, 2).ceil_mode(true)), (vec![1.0], vec![1.0, 0.0]));
    assert_eq!(max(&to(5), o(2, 1).dilation([1, 2])), (vec![3.0, 4.0, 5.0], vec![0.0, 0.0, 1.0, 1.0, 1.0]));
    assert_eq!(max(&row(&[1.0, 2.0, 1.0]), o(2, 1)), (vec![2.0, 2.0], vec![0.0, 2.0, 0.0]));
}

#[test]
fn t26_t27_t28_the_gradient_goes_to_one_element() {
    let max = |values: &[f64], n: usize| {
        with_gradient(&Tensor::from_slice(values, [1, 1, n, n]), |x| x.max_pool2d(2)).1
    };
    assert_eq!(max(&[1.0, 2.0, 3.0, 4.0], 2), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(max(&[1.0; 4], 2), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(
        max(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 3),
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    );
}

#[test]
fn a22_ties_nan_and_infinity() {
    let indices = |values: &[f64]| {
        let (v, at) = row(values).max_pool2d_with_indices([1, values.len()]);
        (v.item::<f64>(), at.item::<i64>())
    };
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(indices(&[2.0, 3.0, 3.0]), (3.0, 1));
    let (v, at) = indices(&[nan, 1.0, nan]);
    assert!(v.is_nan() && at == 2, "{v} at {at}");
    assert_eq!(indices(&[-inf, -inf]), (-inf, 0));
    let (_, at) = arange(&[2, 4, 4]).max_pool2d_with_indices(2);
    assert_eq!((at.sizes(), at.to_vec::<i64>()), (&[2, 2, 2][..], vec![5, 7, 13, 15, 5, 7, 13, 15]));
    let integers = Tensor::arange(4).view([1, 1, 2, 2]).max_pool2d(2);
    assert_eq!(integers.to_vec::<i64>(), [3]);
}

#[test]
fn a22_avg() {
    let avg = |x: &Tensor, o: AvgPool2dOptions| with_gradient(x, |x| x.avg_pool2d(o));
    let o = |k, s| AvgPool2dOptions::new([1, k]).stride([1, s]);
    let third = |n: f64| n / 3.0;
    assert_eq!(avg(&to(5), o(2, 2).ceil_mode(true)), (vec![1.5, 3.5, 5.0], vec![0.5, 0.5, 0.5, 0.5, 1.0]));
    let padded = o(3, 1).padding([0, 1]);
    let close = |(y, g): (Vec<f64>, Vec<f64>), want_y: &[f64], want_g: &[f64]| {
        let near =
            |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near(&y, want_y) && near(&g, want_g), "{y:?} {g:?}");
    };
    close(avg(&to(3), padded), &[1.0, 2.0, third(5.0)], &[third(2.0), 1.0, third(2.0)]);
    let exclude = padded.count_include_pad(false);
    close(avg(&to(3), exclude), &[1.5, 2.0, 2.5], &[0.5 + third(1.0), 1.0 + third(1.0), 0.5 + third(1.0)]);
    let ceil = o(3, 2).padding([0, 1]).ceil_mode(true);
    assert_eq!(avg(&to(4), ceil).0, [1.0, 3.0, 2.0]);
    assert_eq!(avg(&to(4), ceil.count_include_pad(false)).0, [1.5, 3.0, 4.0]);
    let divided = avg(&to(4).view([1, 1, 2, 2]), AvgPool2dOptions::new(2).divisor_override(3));
    close(divided, &[third(10.0)], &[third(1.0); 4]);
    // T29.
    let (y, g) = avg(&Tensor::ones([1, 1, 3, 3]), AvgPool2dOptions::new(2));
    assert_eq!((y, g), (vec![1.0], vec![0.25, 0.25, 0.0, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]));
}

#[test]
fn a22_adaptive_avg() {
    let adaptive = |n: usize, out: usize| with_gradient(&to(n), |x| x.adaptive_avg_pool2d([1, out]));
    let (y, g) = adaptive(5, 3);
    assert_eq!(y, [1.5, 3.0, 4.5]);
    assert!(
        g.iter().zip([0.5, 5.0 / 6.0, 1.0 / 3.0, 5.0 / 6.0, 0.5]).all(|(a, b)| (a - b).abs() < 1e-12),
        "{g:?}"
    );
    assert_eq!(adaptive(2, 3), (vec![1.0, 1.5, 2.0], vec![1.5, 1.5]));
    let none = to(3).adaptive_avg_pool2d([1, 0]);
    assert_eq!((none.sizes(), none.strides()), (&[1, 1, 1, 0][..], &[1, 1, 1, 1][..]));
}

#[test]
fn a19_pools_keep_channels_last() {
    let x = arange(&[2, 4, 5, 5]).to_format(CL).requires_grad_(true);
    for y in [x.max_pool2d(2), x.avg_pool2d(2), x.adaptive_avg_pool2d(2)] {
        assert_eq!((y.sizes(), y.strides()), (&[2, 4, 2, 2][..], &[16, 1, 8, 4][..]));
        y.sum().backward();
        assert_eq!(x.grad().unwrap().strides(), x.strides());
    }
    assert_eq!(x.adaptive_avg_pool2d(1).strides(), [4, 1, 4, 4]);
    assert_eq!(Tensor::zeros([0, 2, 4, 4]).max_pool2d(2).strides(), [8, 4, 2, 1]);
}

#[test]
fn a22_refusals() {
    let x = Tensor::ones([1, 1, 1, 4]);
    let o = MaxPool2dOptions::new([1, 2]);
    for (message, want) in [
        (
            text(x.try_max_pool2d(o.padding([0, 2]))),
            "pad should be at most half of effective kernel size, but got pad=[0, 2], kernel_size=[1, 2]",
        ),
        (text(x.try_max_pool2d(o.stride([1, 0]))), "stride should not be zero"),
        (text(x.try_max_pool2d([0, 2])), "kernel size should not be zero"),
        (text(x.try_max_pool2d(o.dilation(0))), "dilation should not be zero"),
        (
            text(Tensor::ones([1, 1, 1, 1]).try_max_pool2d(o)),
            "given input size: (1x1x1). Calculated output size: (1x1x0). Output size is too small",
        ),
        (text(Tensor::ones([2, 0, 4, 4]).try_max_pool2d(2)), "but got: [2, 0, 4, 4]"),
        (
            text(Tensor::ones([4, 4]).try_avg_pool2d(2)),
            "expected 3D or 4D (batch mode) tensor for input, but got sizes [4, 4]",
        ),
        (
            text(x.try_avg_pool2d(AvgPool2dOptions::new([1, 2]).divisor_override(0))),
            "divisor must be not zero",
        ),
    ] {
        assert!(message.contains(want), "{message}\nlacks {want}");
    }
    for huge in [usize::MAX, isize::MAX as usize, 1 << 40] {
        assert!(x.try_max_pool2d([1, huge]).is_err());
        assert!(x.try_max_pool2d(o.dilation([1, huge])).is_err());
        assert_eq!(x.max_pool2d(o.stride([1, huge])).to_vec::<f32>(), [1.0]);
        assert!(x.try_avg_pool2d(AvgPool2dOptions::new([1, huge]).padding([0, huge / 2])).is_err());
        assert!(x.try_adaptive_avg_pool2d([huge, huge]).is_err());
        // The last window may hang over, however far.
        let over = AvgPool2dOptions::new([1, huge - 1]).stride([1, huge]).ceil_mode(true);
        assert_eq!(x.avg_pool2d(over).to_vec::<f32>(), [1.0]);
    }
}

#[test]
fn gradients_of_any_order() {
    // A permutation: no two values are close.
    let x = arange(&[2, 2, 5, 5]).to_dtype(DType::F64).mul(37.0);
    let x = x.sub(x.mul(0.01).to_dtype(DType::I64).mul(100)).mul(0.05).detach().requires_grad_(true);
    let options = GradcheckOptions::default().fast(true);
    let max = MaxPool2dOptions::new(3).stride(2).padding(1);
    let avg = AvgPool2dOptions::new(3).stride(2).padding(1).count_include_pad(false);
    gradcheck(|t| t[0].try_max_pool2d(max), from_ref(&x), options).unwrap();
    gradcheck(|t| t[0].try_avg_pool2d(avg), from_ref(&x), options).unwrap();
    gradcheck(|t| t[0].try_adaptive_avg_pool2d(3), from_ref(&x), options).unwrap();
    gradgradcheck(
        |t| {
            let y = t[0].max_pool2d(max);
            &y * &y
        },
        from_ref(&x),
        options,
    )
    .unwrap();
    gradgradcheck(
        |t| {
            let y = t[0].avg_pool2d(avg);
            &y * &y
        },
        from_ref(&x),
        options,
    )
    .unwrap();
    gradgradcheck(
        |t| {
            let y = t[0].adaptive_avg_pool2d(3);
            &y * &y
        },
        &[x],
        options,
    )
    .unwrap();
}

#[test]
fn a22_adaptive_max() {
    let max = |n: usize, out: usize| with_gradient(&to(n), |x| x.adaptive_max_pool2d([1, out]));
    assert_eq!(max(5, 3), (vec![2.0, 4.0, 5.0], vec![0.0, 1.0, 0.0, 1.0, 1.0]));
    assert_eq!(max(2, 3), (vec![1.0, 2.0, 2.0], vec![1.0, 2.0]));
    let (y, at) = arange(&[1, 5, 5]).to_dtype(DType::F64).adaptive_max_pool2d_with_indices([2, 3]);
    assert_eq!(y.to_vec::<f64>(), [11.0, 13.0, 14.0, 21.0, 23.0, 24.0]);
    assert_eq!(at.to_vec::<i64>(), [11, 13, 14, 21, 23, 24]);
    let x = arange(&[2, 4, 5, 5]).to_format(CL);
    assert_eq!(x.adaptive_max_pool2d(2).strides(), [16, 1, 8, 4]);
    assert_eq!(x.adaptive_max_pool2d(5).strides(), x.strides());
    for huge in [usize::MAX, 1 << 62, 1 << 45] {
        assert!(x.try_adaptive_max_pool2d([huge, 1]).is_err());
    }
}
