//! Small inputs with the right values: each one is a fault that users of some framework met. Values are PyTorch's and
//! NumPy's. The names are those of the project's reference list.
#![forbid(unsafe_code)]

use stridegrad::audit::Audit;
use stridegrad::io::{load_state, safetensors::SafeTensors, save_state};
use stridegrad::prelude::*;
use stridegrad::{Conv2dOptions, ErrorKind, MaxPool2dOptions, Reduction};

fn f64s(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_slice(values, sizes)
}

/// A leaf of one row of values.
fn leaf(values: &[f64]) -> Tensor {
    f64s(values, &[values.len()]).requires_grad_(true)
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len()])
}

/// An image of one channel and one row.
fn strip(values: &[f64]) -> Tensor {
    f64s(values, &[1, 1, 1, values.len()])
}

fn grad_of(x: &Tensor) -> Vec<f64> {
    x.grad().expect("a gradient").try_to_vec_f64().unwrap()
}

#[track_caller]
fn close(got: &Tensor, want: &[f64]) {
    let got = got.try_to_vec_f64().unwrap();
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 5e-8), "{got:?}, expected {want:?}");
}

#[test]
fn t1_a_row_of_a_batch_times_a_transposed_matrix() {
    let audit = Audit::start();
    let a = Tensor::arange(12.0).view([1, 3, 4]).select(1, 2);
    let y = a.matmul(&Tensor::ones([2, 4]).t());
    assert_eq!((y.sizes(), y.to_vec::<f32>()), (&[1, 2][..], vec![38.0, 38.0]));
    assert_eq!(audit.copies(), []);
}

#[test]
fn t2_an_expanded_batch() {
    let y = Tensor::ones([1, 2, 2]).expand([3, 2, 2]).matmul(&Tensor::arange(12.0).view([3, 2, 2]));
    let want = [2.0, 4.0, 2.0, 4.0, 10.0, 12.0, 10.0, 12.0, 18.0, 20.0, 18.0, 20.0];
    assert_eq!(y.to_vec::<f32>(), want);
}

#[test]
fn t4_softmax_of_a_transposed_matrix() {
    let x = f64s(&(1..=12).map(f64::from).collect::<Vec<_>>(), &[3, 4]);
    close(&x.t().softmax(1).select(0, 0), &[0.00032932, 0.01798029, 0.98169035]);
}

#[test]
fn t7_a_mask_and_its_transpose() {
    let values = [true, true, false, true];
    let m = Tensor::from_slice(&values, [2, 2]);
    assert_eq!(m.bitwise_and(m.t()).to_vec::<bool>(), [true, false, false, true]);
    assert_eq!(m.logical_and(m.t()).to_vec::<bool>(), [true, false, false, true]);
    assert_eq!(m.to_vec::<bool>(), values);
}

#[test]
fn t8_even_and_odd_rows() {
    let z = Tensor::zeros([2, 3]).requires_grad_(true);
    let even = z.slice(0, Some(0), None, 2) * row(&[1.0, 2.0, 3.0]);
    let odd = z.slice(0, Some(1), None, 2) * row(&[100.0, 101.0, 102.0]);
    (even.sum() + odd.sum()).backward();
    assert_eq!(grad_of(&z), [1.0, 2.0, 3.0, 100.0, 101.0, 102.0]);
}

#[test]
fn t9_a_write_through_a_reversed_view() {
    let base = Tensor::zeros([6]);
    let source = Tensor::arange(6.0) * 2.0;
    base.slice(0, None, None, -1).copy_(&source.slice(0, None, None, -1));
    assert_eq!(base.to_vec::<f32>(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
}

/// What `write` leaves in `x`: its values as if everything had been read first, or an overlap refused and nothing
/// written.
#[track_caller]
fn as_if_read_first(x: &Tensor, want: &[f32], write: impl Fn(&Tensor) -> stridegrad::Result<Tensor>) {
    let before = x.to_vec::<f32>();
    match write(x) {
        Ok(_) => assert_eq!(x.to_vec::<f32>(), want),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Overlap);
            assert_eq!(x.to_vec::<f32>(), before);
        }
    }
}

#[test]
fn t11_columns_shifted_in_place() {
    let a = Tensor::arange(9.0).view([3, 3]);
    as_if_read_first(&a, &[0.0, 0.0, 1.0, 3.0, 3.0, 4.0, 6.0, 6.0, 7.0], |a| {
        a.slice(1, Some(1), None, 1).try_copy_(&a.slice(1, None, Some(-1), 1))
    });
}

#[test]
fn t12_minus_its_own_first_column() {
    let a = row(&[1.0, 2.0, 3.0, 4.0]).view([2, 2]);
    as_if_read_first(&a, &[0.0, 1.0, 0.0, 1.0], |a| a.try_sub_(a.slice(1, None, Some(1), 1)));
}

#[test]
fn t13_overlapping_windows_are_not_written() {
    let a = Tensor::arange(4.0);
    let e = a.as_strided([3, 2], [1, 1], None).try_add_(1).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Overlap);
    assert_eq!(a.to_vec::<f32>(), [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn t14_as_strided_of_an_expanded_tensor() {
    let x = Tensor::zeros([2]).requires_grad_(true);
    let y = x.expand([3, 2]).as_strided([3, 2], [0, 1], None) * Tensor::arange(6.0).view([3, 2]);
    y.sum().backward();
    assert_eq!(grad_of(&x), [6.0, 9.0]);
}

#[test]
fn t16_a_view_of_one_of_several_is_not_written() {
    let x = Tensor::ones([2, 2]).requires_grad_(true);
    let y = &x * 1.0;
    let v = y.unbind(0)[0].view([2, 1]);
    assert_eq!(v.try_mul_(2.0).unwrap_err().kind(), ErrorKind::InPlace);
}

#[test]
fn t18_a_depthwise_convolution_keeps_channels_last() {
    let x = Tensor::ones([2, 4, 5, 5]).to_format(MemoryFormat::ChannelsLast);
    let y = x.conv2d(&Tensor::ones([4, 1, 3, 3]), None, Conv2dOptions::new().groups(4));
    assert_eq!(y.strides(), [36, 1, 12, 4]);
    assert_eq!(y.to_vec::<f32>(), [9.0; 72]);
}

#[test]
fn t19_a_convolution_of_a_stepped_image() {
    let x = Tensor::arange(16.0).view([1, 1, 4, 4]).slice(2, None, None, 2).slice(3, None, None, 2);
    assert_eq!(x.conv2d(&Tensor::ones([1, 1, 2, 2]), None, Conv2dOptions::new()).to_vec::<f32>(), [20.0]);
}

#[test]
fn t21_a_strided_depthwise_convolution() {
    let arange = |n: i64, sizes: &[usize]| Tensor::arange(n as f64).view(sizes).requires_grad_(true);
    let (x, w, b) = (arange(64, &[1, 4, 4, 4]), arange(36, &[4, 1, 3, 3]), arange(4, &[4]));
    let y = x.conv2d(&w, Some(&b), Conv2dOptions::new().stride(2).padding(1).groups(4));
    assert_eq!(y.select(0, 0).select(0, 0).to_vec::<f32>(), [73.0, 154.0, 279.0, 438.0]);
    y.sum().backward();
    assert_eq!(grad_of(&w)[..9], [5.0, 10.0, 12.0, 10.0, 20.0, 24.0, 18.0, 36.0, 40.0]);
    let gx = [4.0, 8.0, 4.0, 5.0, 8.0, 16.0, 8.0, 10.0, 4.0, 8.0, 4.0, 5.0, 7.0, 14.0, 7.0, 8.0];
    assert_eq!(grad_of(&x)[..16], gx);
    assert_eq!(grad_of(&b), [4.0; 4]);
}

#[test]
fn t22_what_a_strided_convolution_leaves_out_has_no_gradient() {
    let x = Tensor::ones([1, 1, 1, 7]).requires_grad_(true);
    x.conv2d(&Tensor::ones([1, 1, 1, 4]), None, Conv2dOptions::new().stride(4)).sum().backward();
    assert_eq!(grad_of(&x), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn t24_max_pool_rounded_up() {
    let options = MaxPool2dOptions::new([1, 2]).stride([1, 2]).padding([0, 1]).ceil_mode(true);
    close(&strip(&[1.0, 2.0, 3.0, 4.0, 5.0]).max_pool2d(options), &[1.0, 3.0, 5.0]);
}

#[test]
fn t26_to_t28_the_gradient_of_max_pool_goes_to_one_element() {
    let pooled = |values: &[f64], side: usize| {
        let x = f64s(values, &[1, 1, side, side]).requires_grad_(true);
        x.max_pool2d(2).sum().backward();
        grad_of(&x)
    };
    assert_eq!(pooled(&[1.0, 2.0, 3.0, 4.0], 2), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(pooled(&[5.0; 4], 2), [1.0, 0.0, 0.0, 0.0]);
    let nine: Vec<f64> = (1..=9).map(f64::from).collect();
    assert_eq!(pooled(&nine, 3), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn t29_the_gradient_of_avg_pool_stays_inside_the_windows() {
    let x = Tensor::ones([1, 1, 3, 3]).requires_grad_(true);
    x.avg_pool2d(2).sum().backward();
    assert_eq!(grad_of(&x), [0.25, 0.25, 0.0, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn t31_a_second_derivative() {
    let x = leaf(&[2.0]);
    let y = x.pow(2.0) * &x;
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let g = grad(&[&y], &[&x], None, options).unwrap()[0].clone().unwrap();
    let gg = grad(&[&g], &[&x], None, BackwardOptions::default()).unwrap()[0].clone().unwrap();
    assert_eq!((g.item::<f64>(), gg.item::<f64>()), (12.0, 12.0));
    // Without a graph of its own a gradient says so.
    let y = x.pow(2.0) * &x;
    let g = grad(&[&y], &[&x], None, BackwardOptions::default()).unwrap()[0].clone().unwrap();
    assert_eq!(grad(&[&g], &[&x], None, BackwardOptions::default()).unwrap_err().kind(), ErrorKind::Autograd);
}

#[test]
fn t32_a_leaf_overwritten_before_backward() {
    let x = leaf(&[1.0, 2.0]);
    let l = x.square().sum();
    no_grad(|| x.copy_(&f64s(&[10.0, 20.0], &[2])));
    assert_eq!(l.try_backward().unwrap_err().kind(), ErrorKind::Autograd);
    assert!(x.grad().is_none());
}

#[test]
fn t34_a_value_written_into_a_slice() {
    let y = Tensor::zeros([2]);
    let s = row(&[3.0]).requires_grad_(true);
    y.slice(0, Some(0), Some(1), 1).copy_(&s);
    y.sum().backward();
    assert_eq!((y.to_vec::<f32>(), grad_of(&s)), (vec![3.0, 0.0], vec![1.0]));
}

#[test]
fn t35_nan_is_not_lost() {
    let nan = f64::NAN;
    assert!(f64s(&[1.0, nan, 3.0], &[3]).max().item::<f64>().is_nan());
    assert!(f64s(&[nan, 1.0], &[2]).max().item::<f64>().is_nan());
    assert!(f64s(&[nan], &[1]).relu().item::<f64>().is_nan());
    assert!(strip(&[1.0, nan, 3.0, 4.0]).max_pool2d([1, 4]).item::<f64>().is_nan());
}

#[test]
fn t37_the_gradient_of_a_zeroth_power_at_zero() {
    let x = leaf(&[0.0]);
    x.pow(0.0).sum().backward();
    assert_eq!(grad_of(&x), [0.0]);
}

#[test]
fn t38_the_gradients_of_relu_and_abs_at_zero() {
    for f in [Tensor::relu, Tensor::abs] {
        let x = leaf(&[0.0, -0.0]);
        f(&x).sum().backward();
        assert_eq!(grad_of(&x), [0.0, 0.0]);
    }
}

#[test]
fn t39_bce_with_logits_far_out() {
    let loss = row(&[1000.0, -1000.0]).bce_with_logits(&row(&[0.0, 1.0]), Reduction::None);
    assert_eq!(loss.to_vec::<f32>(), [1000.0, 1000.0]);
}

#[test]
fn t41_convolutions_that_cannot_be() {
    let (x, w) = (Tensor::ones([1, 1, 2, 2]), Tensor::ones([1, 1, 3, 3]));
    let e = x.try_conv2d(&w, None, Conv2dOptions::new()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.message().contains("(2 x 2)") && e.message().contains("(3 x 3)"), "{e}");
    let e = Tensor::ones([1, 1, 4, 4]).try_conv2d(&w, None, Conv2dOptions::new().stride(0)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
    assert!(e.message().contains("stride"), "{e}");
}

#[test]
fn t42_reductions_of_nothing() {
    let nothing = Tensor::zeros([0]);
    assert_eq!(nothing.sum().item::<f32>(), 0.0);
    assert!(nothing.mean().item::<f32>().is_nan());
    let e = nothing.try_max().unwrap_err();
    assert!(e.kind() == ErrorKind::Index, "{e:?}");
}

#[test]
fn t43_as_strided_stays_in_the_storage() {
    let e = Tensor::arange(6.0).try_as_strided([100], [1], None).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Index);
    assert!(e.message().contains("400 bytes") && e.message().contains("24"), "{e}");
}

#[test]
fn t44_slices_clamp_and_narrow_refuses() {
    let x = Tensor::arange(2.0);
    assert_eq!(x.slice(0, Some(1), Some(9), 1).to_vec::<f32>(), [1.0]);
    assert_eq!(x.i(s![1..9]).to_vec::<f32>(), [1.0]);
    assert_eq!(x.try_narrow(0, 1, 8).unwrap_err().kind(), ErrorKind::Index);
}

#[test]
fn t46_empty_metadata_loads() {
    let header = br#"{"__metadata__":{},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let file = [&(header.len() as u64).to_le_bytes()[..], header, &1.5f32.to_le_bytes()].concat();
    let path = std::env::temp_dir().join(format!("stridegrad-t46-{}", std::process::id()));
    std::fs::write(&path, &file).unwrap();
    let state = load_state(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(state.unwrap().get("a").unwrap().to_vec::<f32>(), [1.5]);
    assert_eq!(SafeTensors::from_bytes(file).unwrap().header().entries.len(), 1);
}

#[test]
fn t48_the_gradient_of_clamp_at_its_bounds() {
    let x = leaf(&[0.0, 0.5, 1.0, 2.0]);
    x.clamp(0.0, 1.0).sum().backward();
    assert_eq!(grad_of(&x), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn t50_layouts_survive_a_file() {
    let transposed = Tensor::arange(6.0).view([2, 3]).t();
    let images = Tensor::arange(24.0).view([2, 3, 2, 2]).to_format(MemoryFormat::ChannelsLast);
    let path = std::env::temp_dir().join(format!("stridegrad-t50-{}", std::process::id()));
    let state = [("transposed", transposed.clone()), ("images", images.clone())].into_iter().collect();
    save_state(&path, &state).unwrap();
    let read = load_state(&path);
    std::fs::remove_file(&path).unwrap();
    let read = read.unwrap();
    for (name, t) in [("transposed", transposed), ("images", images)] {
        let got = read.get(name).unwrap();
        assert_eq!((got.sizes(), got.strides()), (t.sizes(), t.strides()), "{name}");
        assert_eq!(got.to_vec::<f32>(), t.to_vec::<f32>(), "{name}");
    }
}

#[test]
fn a_hundred_parts_joined() {
    let parts: Vec<Tensor> = (0..100).map(|i| leaf(&[f64::from(i)])).collect();
    let joined = Tensor::cat(&parts, 0);
    assert_eq!(joined.sum().item::<f64>(), 4950.0);
    assert_eq!(Tensor::stack(&parts, 1).sizes(), [1, 100]);
    (joined.square() * 0.5).sum().backward();
    for (i, p) in parts.iter().enumerate() {
        assert_eq!(grad_of(p), [i as f64]);
    }
}

#[test]
fn a_hundred_uses_of_one_leaf() {
    // The gradient does not depend on the order in which the uses were recorded.
    let orders: [Vec<i64>; 2] = [(0..100).collect(), (0..100).rev().collect()];
    for create_graph in [false, true] {
        let gradient = |order: &Vec<i64>| {
            let x = Tensor::arange(100.0).requires_grad_(true);
            let y = order.iter().fold(Tensor::scalar(0.0), |sum, &i| sum + x.select(0, i).square() * i);
            let options = BackwardOptions { create_graph, ..Default::default() };
            let g = grad(&[&y], &[&x], None, options).unwrap()[0].clone().unwrap();
            assert_eq!(g.requires_grad(), create_graph);
            g.to_vec::<f32>()
        };
        let want: Vec<f32> = (0..100).map(|i| (2 * i * i) as f32).collect();
        assert_eq!((gradient(&orders[0]), gradient(&orders[1])), (want.clone(), want));
    }
}
