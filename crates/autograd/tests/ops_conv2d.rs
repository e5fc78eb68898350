//! Convolutions: values, formats, gradients and refusals of the semantics tables (A18-A20, T18-T22, T41).

use stridegrad_autograd::{
    BackwardOptions, Conv2dOptions, GradcheckOptions, Padding, Tensor, grad, gradcheck, gradgradcheck,
};
use stridegrad_core::audit::deny_copies;
use stridegrad_core::{DType, MemoryFormat, Result};

const CL: MemoryFormat = MemoryFormat::ChannelsLast;

fn o() -> Conv2dOptions {
    Conv2dOptions::new()
}

fn arange(sizes: &[usize]) -> Tensor {
    Tensor::arange(sizes.iter().product::<usize>() as f64).view(sizes)
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [1, 1, 1, values.len()])
}

fn text(r: Result<Tensor>) -> String {
    r.expect_err("must be refused").to_string()
}

#[test]
fn a18_same_puts_what_is_odd_on_the_right() {
    let same = |x: &[f32], w: &[f32], o: Conv2dOptions| {
        row(x).conv2d(&row(w), None, o.padding(Padding::Same)).to_vec::<f32>()
    };
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(same(&five[..3], &[1.0, 10.0], o()), [21.0, 32.0, 3.0]);
    assert_eq!(same(&five, &[1.0, 10.0, 100.0, 1000.0], o()), [3210.0, 4321.0, 5432.0, 543.0, 54.0]);
    assert_eq!(same(&five, &[1.0, 10.0], o().dilation(2)), [20.0, 31.0, 42.0, 53.0, 4.0]);
    let valid = row(&five[..3]).conv2d(&row(&[1.0, 10.0]), None, o().padding(Padding::Valid));
    assert_eq!(valid.to_vec::<f32>(), [21.0, 32.0]);
}

#[test]
fn a18_batches_of_any_size() {
    // One image of rank 3.
    let y = arange(&[2, 4, 4]).conv2d(&arange(&[3, 2, 3, 3]), None, o());
    assert_eq!((y.sizes(), y.strides()), (&[3, 2, 2][..], &[4, 2, 1][..]));
    assert_eq!(y.to_vec::<f32>()[..6], [2793.0, 2946.0, 3405.0, 3558.0, 7005.0, 7482.0]);
    // No images.
    let x = Tensor::zeros([0, 2, 4, 4]).requires_grad_(true);
    let w = arange(&[3, 2, 3, 3]).requires_grad_(true);
    let b = arange(&[3]).requires_grad_(true);
    let y = x.conv2d(&w, Some(&b), o());
    assert_eq!((y.sizes(), y.strides()), (&[0, 3, 2, 2][..], &[12, 4, 2, 1][..]));
    y.sum().backward();
    assert_eq!(x.grad().unwrap().sizes(), [0, 2, 4, 4]);
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [0.0; 54]);
    assert_eq!(b.grad().unwrap().to_vec::<f32>(), [0.0; 3]);
}

#[test]
fn a18_without_input_channels_there_is_the_bias() {
    let (x, w) = (Tensor::zeros([2, 0, 5, 5]), Tensor::zeros([2, 0, 3, 3]));
    let b = Tensor::from_slice(&[1.0f32, 2.0], [2]).requires_grad_(true);
    let y = x.conv2d(&w, Some(&b), o());
    assert_eq!(y.sizes(), [2, 2, 3, 3]);
    assert_eq!(y.select(0, 1).to_vec::<f32>(), [[1.0; 9], [2.0; 9]].concat());
    y.sum().backward();
    assert_eq!(b.grad().unwrap().to_vec::<f32>(), [18.0, 18.0]);
    assert_eq!(x.conv2d(&w, None, o()).to_vec::<f32>(), [0.0; 36]);
}

#[test]
fn a18_integers() {
    let x = Tensor::arange(9).view([1, 1, 3, 3]);
    let y = x.conv2d(&Tensor::full([1, 1, 2, 2], 1), None, o());
    assert_eq!((y.dtype(), y.to_vec::<i64>()), (DType::I64, vec![8, 12, 20, 24]));
}

#[test]
fn a18_refusals_in_pytorchs_words() {
    let refuse = |x: &[usize], w: &[usize], bias: Option<usize>, o: Conv2dOptions| {
        let b = bias.map(|n| Tensor::ones([n]));
        text(Tensor::ones(x).try_conv2d(&Tensor::ones(w), b.as_ref(), o))
    };
    let (x, w) = (&[2, 3, 5, 5][..], &[6, 3, 3, 3][..]);
    for (message, want) in [
        (
            refuse(&[5, 5], w, None, o()),
            "3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 5]",
        ),
        (refuse(x, w, None, o().stride(0)), "non-positive stride is not supported"),
        (refuse(x, w, None, o().dilation(0)), "dilation should be greater than zero, but got [0, 0]"),
        (refuse(x, w, None, o().groups(0)), "non-positive groups is not supported"),
        (
            refuse(&[1, 4, 5, 5], &[3, 2, 3, 3], None, o().groups(2)),
            "divisible by 2 at dimension 0, but got weight of size [3, 2, 3, 3] instead",
        ),
        (
            refuse(&[2, 4, 5, 5], w, None, o()),
            "given groups=1, weight of size [6, 3, 3, 3], expected input[2, 4, 5, 5] to have 3 channels, but got 4 channels instead",
        ),
        (
            refuse(x, &[6, 3, 7, 7], None, o()),
            "calculated padded input size per channel: (5 x 5). Kernel size: (7 x 7). Kernel size can't be greater than actual input size",
        ),
        (refuse(x, w, None, o().dilation(3)), "(5 x 5). Kernel size: (7 x 7)."),
        (
            refuse(x, w, Some(5), o()),
            "given weight of size [6, 3, 3, 3], expected bias to be 1-dimensional with 6 elements, but got bias of size [5] instead",
        ),
        (refuse(&[1, 3, 0, 5], w, None, o()), "(0 x 5). Kernel size: (3 x 3)."),
        (refuse(x, w, None, o().padding(Padding::Same).stride(2)), "not supported for strided convolutions"),
        (refuse(x, &[6, 3, 0, 3], None, o()), "kernel size should be greater than zero, but got [0, 3]"),
        (refuse(x, &[0, 3, 3, 3], None, o()), "weight of size [0, 3, 3, 3]"),
        // T41.
        (refuse(&[1, 1, 2, 2], &[1, 1, 3, 3], None, o()), "(2 x 2). Kernel size: (3 x 3)."),
    ] {
        assert!(message.contains(want), "{message}\nlacks {want}");
    }
    let mixed = text(Tensor::ones(x).try_conv2d(&Tensor::ones(w).to_dtype(DType::F64), None, o()));
    assert!(mixed.contains("input type (f32) and weight type (f64) should be the same"), "{mixed}");
}

#[test]
fn absurd_numbers_are_refused_or_harmless() {
    let (x, w) = (Tensor::ones([1, 1, 3, 3]), Tensor::ones([1, 1, 2, 2]));
    for huge in [usize::MAX, usize::MAX / 2, isize::MAX as usize, 1 << 40] {
        assert!(x.try_conv2d(&w, None, o().padding(huge)).is_err());
        assert!(x.try_conv2d(&w, None, o().padding(huge).stride(huge)).is_err());
        assert!(x.try_conv2d(&w, None, o().dilation(huge)).is_err());
        assert!(x.try_conv2d(&w, None, o().groups(huge)).is_err());
        assert!(x.try_conv2d(&w, None, o().padding(Padding::Same).dilation(huge)).is_err());
        // A step that is never taken.
        assert_eq!(x.conv2d(&w, None, o().stride(huge)).to_vec::<f32>(), [4.0]);
        let one = Tensor::ones([1, 1, 1, 1]);
        assert_eq!(x.conv2d(&one, None, o().dilation(huge)).to_vec::<f32>(), [1.0; 9]);
    }
}

#[test]
fn a19_which_results_are_channels_last() {
    let cl = |t: &Tensor| t.to_format(CL);
    let (x, w) = (arange(&[2, 4, 5, 5]), arange(&[6, 4, 3, 3]));
    let y = |x: &Tensor, w: &Tensor, o: Conv2dOptions| x.conv2d(w, None, o).strides().to_vec();
    let (row_major, channels_last) = ([54, 9, 3, 1], [54, 1, 18, 6]);
    assert_eq!(y(&x, &w, o()), row_major);
    assert_eq!(y(&cl(&x), &w, o()), channels_last);
    assert_eq!(y(&x, &cl(&w), o()), channels_last);
    assert_eq!(y(&cl(&x), &cl(&w), o()), channels_last);
    // One pixel or one channel: only a mark makes it channels-last.
    let pointwise = arange(&[6, 4, 1, 1]);
    assert_eq!(y(&x, &pointwise.contiguous_in(CL), o()), [150, 25, 5, 1]);
    assert_eq!(y(&x, &cl(&pointwise), o()), [150, 1, 30, 6]);
    let depthwise = arange(&[4, 1, 3, 3]);
    assert_eq!(y(&x, &depthwise.contiguous_in(CL), o().groups(4)), [36, 9, 3, 1]);
    // T18.
    assert_eq!(y(&x.contiguous_in(CL), &depthwise, o().groups(4)), [36, 1, 12, 4]);
    let gray = arange(&[2, 1, 5, 5]);
    assert_eq!(y(&gray.contiguous_in(CL), &arange(&[6, 1, 3, 3]), o()), row_major);
    assert_eq!(y(&cl(&gray), &arange(&[6, 1, 3, 3]), o()), channels_last);
    // A kernel as large as the image, no images, one image.
    assert_eq!(y(&cl(&arange(&[2, 4, 3, 3])), &w, o()), [6, 1, 6, 6]);
    assert_eq!(y(&cl(&Tensor::zeros([0, 4, 5, 5])), &w, o()), row_major);
    assert_eq!(y(&cl(&x).select(0, 0), &w, o()), [9, 3, 1]);
    let f64s = |t: &Tensor| t.to_dtype(DType::F64);
    assert_eq!(y(&f64s(&cl(&x)), &f64s(&w), o()), channels_last);
}

#[test]
fn a19_raw_gradients_follow_the_operands_and_leaves_their_own_strides() {
    for (x_cl, w_cl) in [(false, false), (true, false), (false, true), (true, true)] {
        let format = |cl| if cl { CL } else { MemoryFormat::Contiguous };
        let x = arange(&[2, 4, 5, 5]).to_format(format(x_cl)).detach().requires_grad_(true);
        let w = arange(&[6, 4, 3, 3]).to_format(format(w_cl)).detach().requires_grad_(true);
        let y = x.conv2d(&w, None, o()).sum();
        let keep = BackwardOptions { retain_graph: true, ..Default::default() };
        let raw = grad(&[&y], &[&x, &w], None, keep).unwrap();
        for g in raw.into_iter().flatten() {
            assert_eq!(g.suggested_format(), format(x_cl || w_cl), "x {x_cl} w {w_cl}");
        }
        y.backward();
        assert_eq!(x.grad().unwrap().strides(), x.strides());
        assert_eq!(w.grad().unwrap().strides(), w.strides());
    }
}

/// Gradients of the sum of a convolution.
fn gradients(x: &Tensor, w: &Tensor, b: Option<&Tensor>, o: Conv2dOptions) -> (Vec<f32>, Vec<f32>) {
    let (x, w) = (x.detach().requires_grad_(true), w.detach().requires_grad_(true));
    x.conv2d(&w, b, o).sum().backward();
    (x.grad().unwrap().to_vec(), w.grad().unwrap().to_vec())
}

#[test]
fn a20_fixed_gradients() {
    let strided = o().padding(1).stride(2);
    let (_, gw) =
        gradients(&Tensor::ones([1, 2, 4, 4]), &Tensor::ones([2, 1, 3, 3]), None, strided.groups(2));
    let one = [1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 2.0, 4.0, 4.0];
    assert_eq!(gw, [one, one].concat());
    let x = arange(&[1, 1, 7, 7]).add(1.0);
    let (_, gw) = gradients(&x, &Tensor::ones([1, 1, 3, 3]), None, strided.dilation(2));
    assert_eq!(gw, [68.0, 108.0, 76.0, 144.0, 225.0, 156.0, 124.0, 192.0, 132.0]);
    // T22: the tail that no window reaches gets nothing.
    let (gx, _) = gradients(&row(&[1.0; 7]), &row(&[1.0; 4]), None, o().stride(4));
    assert_eq!(gx, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a20_t21_depthwise() {
    for format in [MemoryFormat::Contiguous, CL] {
        let x = arange(&[1, 4, 4, 4]).to_format(format);
        let (w, b) = (arange(&[4, 1, 3, 3]), arange(&[4]).requires_grad_(true));
        let options = o().stride(2).padding(1).groups(4);
        let y = x.conv2d(&w, Some(&b), options);
        assert_eq!(y.select(0, 0).select(0, 0).to_vec::<f32>(), [73.0, 154.0, 279.0, 438.0]);
        assert_eq!(y.select(0, 0).select(0, 3).to_vec::<f32>(), [6682.0, 10165.0, 10731.0, 16263.0]);
        let (gx, gw) = gradients(&x, &w, Some(&b), options);
        assert_eq!(gw[..9], [5.0, 10.0, 12.0, 10.0, 20.0, 24.0, 18.0, 36.0, 40.0]);
        assert_eq!(
            gx[..16],
            [4.0, 8.0, 4.0, 5.0, 8.0, 16.0, 8.0, 10.0, 4.0, 8.0, 4.0, 5.0, 7.0, 14.0, 7.0, 8.0]
        );
        assert_eq!(b.grad().unwrap().to_vec::<f32>(), [4.0; 4]);
    }
}

#[test]
fn t19_a_stepped_view_is_read_as_it_is() {
    let _no_copies = deny_copies();
    let stepped = arange(&[1, 1, 4, 4]).slice(2, None, None, 2).slice(3, None, None, 2);
    assert_eq!(stepped.conv2d(&Tensor::ones([1, 1, 2, 2]), None, o()).item::<f32>(), 20.0);
}

#[test]
fn a_kernel_read_through_a_transposed_view() {
    // The gradient of the view's base adds up through the view.
    let base = arange(&[3, 3]).requires_grad_(true);
    let x = arange(&[1, 1, 4, 4]);
    let y = x.conv2d(&base.t().view([1, 1, 3, 3]), None, o());
    let copied = x.conv2d(&base.t().contiguous().view([1, 1, 3, 3]), None, o());
    assert_eq!(y.to_vec::<f32>(), copied.to_vec::<f32>());
    y.sum().backward();
    assert_eq!(base.grad().unwrap().to_vec::<f32>(), [10.0, 26.0, 42.0, 14.0, 30.0, 46.0, 18.0, 34.0, 50.0]);
}

#[test]
fn a20_gradients_of_any_order() {
    let leaf = |sizes: &[usize]| {
        let t = arange(sizes).to_dtype(DType::F64);
        let n = t.numel() as f64;
        // Neither symmetric nor monotonous.
        t.mul(7.0 / n).sub(3.0).mul(t.mul(0.1).sub(0.7)).detach().requires_grad_(true)
    };
    let options = GradcheckOptions::default().fast(true);
    for (x, w, conv) in [
        (&[2, 2, 4, 4][..], &[3, 2, 3, 3][..], o()),
        (&[1, 2, 5, 5], &[2, 2, 3, 3], o().stride(2).padding(1)),
        (&[1, 2, 5, 5], &[2, 2, 3, 3], o().dilation(2).padding(2)),
        (&[1, 4, 4, 4], &[2, 2, 3, 3], o().groups(2)),
        (&[1, 4, 5, 4], &[4, 2, 3, 3], o().stride([2, 1]).padding([0, 1]).groups(2)),
        (&[1, 3, 5, 5], &[3, 1, 3, 3], o().groups(3).stride(2).padding(1)),
        (&[1, 1, 4, 4], &[2, 1, 2, 2], o().padding(Padding::Same)),
    ] {
        let inputs = [leaf(x), leaf(w), leaf(&w[..1])];
        gradcheck(|t| t[0].try_conv2d(&t[1], Some(&t[2]), conv), &inputs, options).unwrap();
        gradgradcheck(|t| t[0].try_conv2d(&t[1], Some(&t[2]), conv), &inputs, options).unwrap();
    }
}

#[test]
fn conv1d_is_a_row_of_conv2d() {
    let (x, w) = (arange(&[2, 3, 7]), arange(&[4, 3, 3]));
    let y = x.conv1d(&w, None, o().stride(2).padding(1));
    let rows = x.unsqueeze(2).conv2d(&w.unsqueeze(2), None, o().stride(2).padding([0, 1])).squeeze_dims(2);
    assert_eq!((y.sizes(), y.to_vec::<f32>()), (&[2, 4, 4][..], rows.to_vec::<f32>()));
    assert_eq!(x.select(0, 1).conv1d(&w, None, o()).sizes(), [4, 5]);
    assert!(text(x.try_conv1d(&Tensor::ones([4, 2, 3]), None, o())).starts_with("conv1d: given groups=1"));
}
