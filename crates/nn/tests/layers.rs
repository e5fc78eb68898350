//! Layers: initial values, refusals, and what forward computes.

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, ErrorKind};
use stridegrad_nn::init::{Fans, fans};
use stridegrad_nn::*;

fn init() -> Init {
    Init::cpu().seed(7)
}

fn values(t: &Tensor) -> Vec<f32> {
    t.to_vec()
}

/// All values within `bound` of 0, and some of them far out on both sides.
#[track_caller]
fn spread_over(t: &Tensor, bound: f32) {
    let v = values(t);
    assert!(v.iter().all(|x| x.abs() <= bound), "beyond {bound}");
    assert!(v.iter().any(|&x| x > 0.8 * bound) && v.iter().any(|&x| x < -0.8 * bound), "not up to {bound}");
}

#[test]
fn linear_and_conv_are_initialised_as_pytorch_does() {
    let l = Linear::builder(100, 50).build(&mut init());
    assert_eq!((l.weight.sizes(), l.in_features(), l.out_features()), (&[50, 100][..], 100, 50));
    spread_over(&l.weight, 0.1);
    spread_over(l.bias.as_ref().unwrap(), 0.1);
    let c = Conv2d::builder(8, 32, (3, 5)).groups(2).build(&mut init());
    assert_eq!(c.weight.sizes(), [32, 4, 3, 5]);
    spread_over(&c.weight, 1.0 / 60f32.sqrt());
    spread_over(c.bias.as_ref().unwrap(), 1.0 / 60f32.sqrt());
    assert!(c.weight.requires_grad() && c.weight.is_leaf() && c.bias.unwrap().requires_grad());
    assert!(Linear::builder(2, 2).bias(false).build(&mut init()).bias.is_none());
    let none = Linear::builder(0, 3).build(&mut init());
    assert_eq!((none.weight.sizes(), values(&none.bias.unwrap())), (&[3, 0][..], vec![0.0; 3]));
}

#[test]
fn the_seed_decides_and_draws_differ() {
    let w = |init: &mut Init| values(&Linear::builder(5, 5).build(init).weight);
    assert_eq!(w(&mut init()), w(&mut init()));
    assert_ne!(w(&mut init()), w(&mut Init::cpu().seed(8)));
    let mut one = init();
    assert_ne!(w(&mut one), w(&mut one));
    let double = Linear::builder(5, 5).build(&mut init().dtype(DType::F64));
    assert_eq!(double.weight.dtype(), DType::F64);
    let half = Linear::builder(5, 5).build(&mut init().dtype(DType::BF16));
    assert_eq!(half.bias.unwrap().dtype(), DType::BF16);
    let refused = Linear::builder(5, 5).try_build(&mut init().dtype(DType::I64));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn fans_and_gains() {
    assert_eq!(fans(&[8, 4, 3, 3]).unwrap(), Fans { fan_in: 36, fan_out: 72 });
    assert_eq!(fans(&[5, 3]).unwrap(), Fans { fan_in: 3, fan_out: 5 });
    assert_eq!(fans(&[5]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(fans(&[usize::MAX, 2, 2]).unwrap_err().kind(), ErrorKind::Overflow);
    use stridegrad_nn::init::Nonlinearity::*;
    let gains = [Linear, Sigmoid, Tanh, Relu, LeakyRelu(3f64.sqrt()), Selu].map(|n| n.gain());
    let want = [1.0, 1.0, 5.0 / 3.0, 2f64.sqrt(), 0.5f64.sqrt(), 0.75];
    assert!(gains.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12), "{gains:?}");
}

#[test]
fn initialisers() {
    spread_over(&init().kaiming_uniform(&[64, 4, 3, 3], 2f64.sqrt()).unwrap(), (6.0f32 / 36.0).sqrt());
    spread_over(&init().xavier_uniform(&[30, 20], 1.0).unwrap(), (6.0f32 / 50.0).sqrt());
    let std = |t: &Tensor| {
        let v = values(t);
        (v.iter().map(|x| x * x).sum::<f32>() / v.len() as f32).sqrt()
    };
    let k = init().kaiming_normal(&[400, 100], 1.0).unwrap();
    assert!((std(&k) - 0.1).abs() < 0.002, "{}", std(&k));
    let x = init().xavier_normal(&[300, 100], 1.0).unwrap();
    assert!((std(&x) - (2f32 / 400.0).sqrt()).abs() < 0.002, "{}", std(&x));
    assert_eq!(init().kaiming_uniform(&[3], 1.0).unwrap_err().kind(), ErrorKind::Shape);
    let empty = init().kaiming_uniform(&[0, 3], 1.0).unwrap();
    assert_eq!(empty.numel(), 0);
    assert!(init().constant(&[2], 3.0).unwrap().requires_grad());
    assert!(!init().buffer(&[2], 3.0).unwrap().requires_grad());
}

#[test]
fn linear_computes() {
    let mut l = Linear::builder(2, 3).build(&mut init());
    l.weight = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]);
    l.bias = Some(Tensor::from_slice(&[0.5f32, 0.0, -0.5], [3]));
    let x = Tensor::from_slice(&[1.0f32, 1.0, 0.0, 1.0], [2, 2]);
    assert_eq!(values(&l.forward(&x)), [3.5, 7.0, 10.5, 2.5, 4.0, 5.5]);
}

#[test]
fn conv_builders_refuse_what_makes_no_sense() {
    let refused = |b: Conv2dBuilder, says: &str| {
        let e = b.try_build(&mut init()).expect_err(says);
        assert_eq!(e.kind(), ErrorKind::Argument);
        assert!(e.to_string().contains(says), "{e}");
    };
    refused(Conv2d::builder(3, 4, 3).groups(2), "divisible by 2");
    refused(Conv2d::builder(4, 3, 3).groups(2), "divisible by 2");
    refused(Conv2d::builder(4, 4, 3).groups(0), "divisible by 0");
    refused(Conv2d::builder(4, 0, 3), "none may be 0");
    refused(Conv2d::builder(4, 4, [3, 0]), "none may be 0");
    refused(Conv2d::builder(4, 4, 3).stride(0), "none may be 0");
    refused(Conv2d::builder(4, 4, 3).dilation([1, 0]), "none may be 0");
    refused(Conv2d::builder(4, 4, 3).stride(2).padding(Padding::Same), "same");
}

#[test]
fn sequential_names_and_copies() {
    let init = &mut init();
    let net = Sequential::new()
        .add(Conv2d::builder(1, 2, 3).padding(1).build(init))
        .add(Relu)
        .add(Flatten::new())
        .add(Sequential::new().add(Linear::builder(32, 4).build(init)))
        .add(Lambda(|x| x.mul(2.0)));
    let names: Vec<_> = net.named_parameters().into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["0.weight", "0.bias", "3.0.weight", "3.0.bias"]);
    assert_eq!(format!("{net:?}"), "Sequential [Conv2d, Relu, Flatten, Sequential, Lambda]");
    let x = Tensor::ones([2, 1, 4, 4]);
    let copy = net.duplicate();
    assert_eq!(values(&copy.forward(&x)), values(&net.forward(&x)));
    assert!(!copy.parameters()[0].shares_storage(&net.parameters()[0]));
    assert!(Sequential::new().forward(&x).is_same(&x));
}

#[test]
fn activations_are_the_ops() {
    let x = Tensor::linspace(-2.0, 2.0, 8).view([2, 4]);
    let images = Tensor::arange(32.0).view([1, 2, 4, 4]);
    let pooled: [(Box<dyn Forward>, Tensor); 4] = [
        (Box::new(MaxPool2d::new(2)), images.max_pool2d(2)),
        (Box::new(AvgPool2d::new([2, 1])), images.avg_pool2d([2, 1])),
        (Box::new(AdaptiveAvgPool2d::new(1)), images.adaptive_avg_pool2d(1)),
        (Box::new(AdaptiveAvgPool2d::new([3, 2])), images.adaptive_avg_pool2d([3, 2])),
    ];
    for (layer, want) in &pooled {
        let y = layer.forward(&images);
        assert_eq!((y.sizes(), values(&y)), (want.sizes(), values(want)));
    }
    let pairs: [(Box<dyn Forward>, Tensor); 12] = [
        (Box::new(Relu), x.relu()),
        (Box::new(Sigmoid), x.sigmoid()),
        (Box::new(Tanh), x.tanh()),
        (Box::new(Silu), x.silu()),
        (Box::new(Gelu), x.gelu()),
        (Box::new(Softplus), x.softplus()),
        (Box::new(LeakyRelu::new(0.1)), x.leaky_relu(0.1)),
        (Box::new(Elu::new(0.7)), x.elu(0.7)),
        (Box::new(Softmax::new(0)), x.softmax(0)),
        (Box::new(LogSoftmax::new(1)), x.log_softmax(1)),
        (Box::new(Identity), x.clone()),
        (Box::new(Flatten::dims(0, -1)), x.ravel()),
    ];
    for (layer, want) in &pairs {
        let y = layer.forward(&x);
        assert_eq!((y.sizes(), values(&y)), (want.sizes(), values(want)));
        assert!(layer.parameters().is_empty());
    }
}

#[test]
fn padding_modes_of_a_convolution() {
    // Kernel 1, 10, 100 over 1, 2, 3, 4 with two more on either side: PyTorch's values.
    for (mode, want) in [
        (PadMode::ZEROS, [100, 210, 321, 432, 43, 4]),
        (PadMode::Reflect, [123, 212, 321, 432, 343, 234]),
        (PadMode::Replicate, [111, 211, 321, 432, 443, 444]),
        (PadMode::Circular, [143, 214, 321, 432, 143, 214]),
    ] {
        let mut layer =
            Conv2d::builder(1, 1, (1, 3)).padding((0, 2)).padding_mode(mode).bias(false).build(&mut init());
        layer.weight = Tensor::from_slice(&[1.0f32, 10.0, 100.0], [1, 1, 1, 3]);
        let y = layer.forward(&Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [1, 1, 1, 4]));
        assert_eq!(values(&y), want.map(|v| v as f32), "{mode:?}");
        assert_eq!(layer.named_parameters().len(), 1);
    }
    let mut same = Conv2d::builder(1, 1, (1, 2))
        .padding(Padding::Same)
        .padding_mode(PadMode::Circular)
        .bias(false)
        .build(&mut init());
    same.weight = Tensor::from_slice(&[1.0f32, 10.0], [1, 1, 1, 2]);
    let y = same.forward(&Tensor::from_slice(&[1.0f32, 2.0, 3.0], [1, 1, 1, 3]));
    assert_eq!(values(&y), [21.0, 32.0, 13.0]);
}

fn buffer(t: &Option<Tensor>) -> Vec<f32> {
    values(t.as_ref().unwrap())
}

fn image(v: &[f32]) -> Tensor {
    Tensor::from_slice(v, [v.len(), 1, 1, 1])
}

#[test]
fn batch_norm_keeps_running_statistics() {
    let mut bn = BatchNorm2d::builder(1).build(&mut init());
    let names: Vec<_> = bn.state_dict().names().map(str::to_owned).collect();
    assert_eq!(names, ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]);
    bn.forward(&image(&[1.0, 3.0]));
    assert_eq!((buffer(&bn.running_mean), buffer(&bn.running_var)), (vec![0.2], vec![1.1]));
    assert_eq!(bn.num_batches_tracked.as_ref().unwrap().item::<i64>(), 1);
    bn.eval();
    let y = values(&bn.forward(&image(&[0.2, 1.3])));
    assert!((y[0] - 0.0).abs() < 1e-6 && (y[1] - 1.1 / (1.1f32 + 1e-5).sqrt()).abs() < 1e-6);
    assert_eq!(bn.num_batches_tracked.as_ref().unwrap().item::<i64>(), 1, "evaluation counts nothing");
    let mut fresh = BatchNorm2d::builder(1).build(&mut init());
    fresh.forward(&image(&[1.0, 2.0, 3.0, 6.0]));
    let (mean, var) = (buffer(&fresh.running_mean)[0], buffer(&fresh.running_var)[0]);
    assert!((mean - 0.3).abs() < 1e-6 && (var - 1.3666667).abs() < 1e-6);
    fresh.eval();
    assert!(fresh.parameters().iter().all(Tensor::requires_grad));
    assert!(fresh.named_buffers().iter().all(|(_, b)| !b.requires_grad()));
}

#[test]
fn batch_norm_without_momentum_averages() {
    let bn = BatchNorm2d::builder(1).momentum(None).build(&mut init());
    bn.forward(&image(&[1.0, 3.0]));
    bn.forward(&image(&[5.0, 7.0]));
    assert_eq!(buffer(&bn.running_mean), [4.0]);
    assert_eq!(buffer(&bn.running_var), [2.0]);
}

#[test]
fn batch_norm_without_statistics_or_weights() {
    let mut bn = BatchNorm2d::builder(1).track_running_stats(false).affine(false).build(&mut init());
    assert!(bn.state_dict().is_empty());
    let train = values(&bn.forward(&image(&[1.0, 3.0])));
    bn.eval();
    assert_eq!(values(&bn.forward(&image(&[1.0, 3.0]))), train);
    assert!((train[1] - 1.0).abs() < 1e-4);
}

#[test]
#[should_panic(expected = "expected 4D input (got 2D input")]
fn batch_norm_wants_images() {
    BatchNorm2d::builder(1).build(&mut init()).forward(&Tensor::ones([2, 1]));
}

#[test]
fn dropout_drops_in_training_alone() {
    let mut net = Sequential::new().add(Dropout::new(0.25).generator(stridegrad_core::Generator::new(3)));
    let x = Tensor::ones([1000]);
    let y = values(&net.forward(&x));
    let kept = y.iter().filter(|&&v| v != 0.0).count();
    assert!(
        y.iter().all(|&v| v == 0.0 || (v - 4.0 / 3.0).abs() < 1e-6) && (650..850).contains(&kept),
        "{kept}"
    );
    net.eval();
    assert_eq!(values(&net.forward(&x)), [1.0; 1000]);
    let channels = values(&Dropout2d::new(0.5).forward(&Tensor::ones([4, 8, 2, 2])));
    assert!(channels.chunks(4).all(|c| c == [0.0; 4] || c == [2.0; 4]));
}

#[test]
#[should_panic(expected = "dropout probability has to be between 0 and 1, but got 1.5")]
fn dropout_is_a_probability() {
    let _ = Dropout::new(1.5);
}

#[test]
fn losses_are_the_methods() {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 1.0, 1.0, 1.0], [2, 3]);
    let y = Tensor::from_slice(&[2i64, 0], [2]);
    let close = |t: Tensor, want: f32| assert!((t.item::<f32>() - want).abs() < 1e-4, "{t:?}, not {want}");
    close(CrossEntropyLoss::new().forward(&x, &y), 0.7531);
    let weight = Some(Tensor::from_slice(&[1.0f32, 2.0, 4.0], [3]));
    let weighted = CrossEntropyLoss { weight: weight.clone(), ..CrossEntropyLoss::new() };
    close(weighted.forward(&x, &y), 0.5458);
    assert_eq!(weighted.named_buffers()[0].0, "weight");
    // Class 0 counts for nothing: what is left is the first row.
    close(CrossEntropyLoss { ignore_index: 0, ..CrossEntropyLoss::new() }.forward(&x, &y), 0.4076);
    let sum = NllLoss { weight, reduction: Reduction::Sum, ..NllLoss::new() };
    close(sum.forward(&x.log_softmax(1), &y), 2.7290);
    let (a, b) = (Tensor::from_slice(&[1.0f32, 3.0], [2]), Tensor::zeros([2]));
    close(MseLoss::new().forward(&a, &b), 5.0);
    close(L1Loss { reduction: Reduction::Sum }.forward(&a, &b), 4.0);
}
