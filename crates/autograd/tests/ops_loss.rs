//! Losses and dropout: values, gradients and refusals of the semantics tables (A17, A23, T39).

use stridegrad_autograd::{CrossEntropyOptions, NllLossOptions, Reduction, Tensor};
use stridegrad_core::{DType, ErrorKind, Generator, MemoryFormat, Result};

fn scores() -> Tensor {
    Tensor::from_slice(&[1.0f64, 2.0, 3.0, 1.0, 1.0, 1.0], [2, 3])
}

fn classes(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, [values.len()])
}

fn weights() -> Tensor {
    Tensor::from_slice(&[1.0f64, 2.0, 4.0], [3])
}

fn o() -> CrossEntropyOptions {
    CrossEntropyOptions::new()
}

#[track_caller]
fn near(got: &Tensor, want: &[f64]) {
    let got = got.try_to_vec_f64().unwrap();
    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 5e-5 || (a.is_nan() && b.is_nan());
    assert!(got.len() == want.len() && got.iter().zip(want).all(close), "{got:?}, expected {want:?}");
}

fn text(r: Result<Tensor>) -> String {
    r.expect_err("must be refused").to_string()
}

#[test]
fn a17_classes() {
    let (x, y) = (scores(), classes(&[2, 0]));
    let (none, sum) = (Reduction::None, Reduction::Sum);
    near(&x.cross_entropy_with(&y, o().reduction(none)), &[0.4076, 1.0986]);
    near(&x.cross_entropy(&y), &[0.7531]);
    let weighted = o().weight(&weights());
    near(&x.cross_entropy_with(&y, weighted.clone().reduction(none)), &[1.6304, 1.0986]);
    near(&x.cross_entropy_with(&y, weighted.clone()), &[0.5458]);
    near(&x.cross_entropy_with(&y, weighted.clone().reduction(sum)), &[2.7290]);
    let smooth = o().label_smoothing(0.1);
    near(&x.cross_entropy_with(&y, smooth.clone().reduction(none)), &[0.5076, 1.0986]);
    near(&x.cross_entropy_with(&y, smooth), &[0.8031]);
    let both = weighted.label_smoothing(0.1);
    near(&x.cross_entropy_with(&y, both.clone().reduction(none)), &[1.6958, 1.2451]);
    near(&x.cross_entropy_with(&y, both), &[0.5882]);
}

#[test]
fn a17_ignored() {
    let (x, y) = (scores(), classes(&[2, -100]));
    near(&x.cross_entropy(&y), &[0.4076]);
    let none = x.cross_entropy_with(&y, o().reduction(Reduction::None));
    near(&none, &[0.4076, 0.0]);
    near(&x.cross_entropy_with(&classes(&[2, 0]), o().ignore_index(0)), &[0.4076]);
    near(&x.cross_entropy_with(&y, o().label_smoothing(0.1)), &[0.5076]);
    near(&x.cross_entropy_with(&y, o().label_smoothing(0.1).weight(&weights())), &[0.4240]);
    // Nothing is left: NaN, but the gradient is 0.
    for (reduction, want) in [(Reduction::Mean, f64::NAN), (Reduction::Sum, 0.0)] {
        let x = scores().requires_grad_(true);
        let loss = x.cross_entropy_with(&classes(&[-100, -100]), o().reduction(reduction));
        near(&loss, &[want]);
        loss.backward();
        near(&x.grad().unwrap(), &[0.0; 6]);
    }
    let empty = Tensor::zeros([0, 3]).requires_grad_(true);
    let loss = empty.cross_entropy(&classes(&[]));
    assert!(loss.item::<f32>().is_nan());
    loss.backward();
    assert_eq!(empty.grad().unwrap().sizes(), [0, 3]);
    // An infinite loss that is ignored stays out.
    let certain = Tensor::from_slice(&[f64::NEG_INFINITY, 0.0, 0.0, 0.0], [2, 2]);
    near(&certain.cross_entropy_with(&classes(&[-100, 0]), o().reduction(Reduction::Sum)), &[2f64.ln()]);
}

#[test]
fn a17_probabilities() {
    let x = scores();
    let p = Tensor::from_slice(&[0.0f64, 0.0, 1.0, 0.5, 0.5, 0.0], [2, 3]);
    near(&x.cross_entropy_with(&p, o().reduction(Reduction::None)), &[0.4076, 1.0986]);
    near(&x.cross_entropy(&p), &[0.7531]);
    near(&x.cross_entropy_with(&p, o().weight(&weights())), &[1.6392]);
    near(&x.cross_entropy_with(&p, o().label_smoothing(0.1)), &[0.8031]);
}

#[test]
fn a17_other_ranks() {
    let one = Tensor::from_slice(&[1.0f64, 2.0, 3.0], [3]).requires_grad_(true);
    let loss = one.cross_entropy(&Tensor::scalar(2));
    assert_eq!(loss.sizes(), [0usize; 0]);
    near(&loss, &[0.4076]);
    loss.backward();
    near(&one.grad().unwrap(), &[0.0900, 0.2447, -0.3348]);
    let none = one.detach().cross_entropy_with(&Tensor::scalar(2), o().reduction(Reduction::None));
    assert_eq!(none.sizes(), [0usize; 0]);
    let images = Tensor::arange(24.0).view([2, 3, 2, 2]);
    let targets = Tensor::from_slice(&[0i64, 1, 2, 0, 1, 2, 0, 1], [2, 2, 2]);
    near(&images.cross_entropy(&targets), &[4.51848]);
    near(&images.to_format(MemoryFormat::ChannelsLast).cross_entropy(&targets), &[4.51848]);
}

#[test]
fn a17_gradients_of_the_mean() {
    let x = scores().requires_grad_(true);
    x.cross_entropy(&classes(&[2, 0])).backward();
    near(&x.grad().unwrap(), &[0.0450, 0.1224, -0.1674, -0.3333, 0.1667, 0.1667]);
    let x = scores().requires_grad_(true);
    x.cross_entropy_with(&classes(&[2, 0]), o().weight(&weights()).label_smoothing(0.1)).backward();
    near(&x.grad().unwrap(), &[0.06236, 0.17429, -0.23665, -0.11111, 0.06222, 0.04889]);
}

#[test]
fn a17_nll_after_log_softmax_is_cross_entropy() {
    let (log_p, y) = (scores().log_softmax(1), classes(&[2, 0]));
    near(&log_p.nll_loss(&y), &[0.7531]);
    let options = NllLossOptions::new().weight(&weights()).reduction(Reduction::None);
    near(&log_p.nll_loss_with(&y, options), &[1.6304, 1.0986]);
}

#[test]
fn a17_refusals_come_before_anything_is_done() {
    let x = scores();
    for (message, want) in [
        (text(x.try_cross_entropy(&classes(&[2, 3]))), "target 3 is out of bounds"),
        (text(x.try_cross_entropy(&classes(&[-1, 0]))), "target -1 is out of bounds"),
        (
            text(x.try_cross_entropy(&classes(&[0, 0, 0]))),
            "expected input batch_size (2) to match target batch_size (3)",
        ),
        (
            text(x.try_cross_entropy_with(
                &classes(&[0, 0]),
                o().weight(&Tensor::ones([2]).to_dtype(DType::F64)),
            )),
            "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]",
        ),
        (
            text(x.try_cross_entropy_with(&classes(&[0, 0]), o().label_smoothing(2.0))),
            "label_smoothing must be between 0.0 and 1.0. Got: 2",
        ),
        (
            text(x.try_cross_entropy(&Tensor::ones([2]))),
            "expected target dtype to be i64, i32 or u8, but got f32",
        ),
        (
            text(x.try_cross_entropy_with(&x, o().ignore_index(0))),
            "ignore_index is not supported for floating point target",
        ),
        (text(x.try_mse_loss(&Tensor::ones([3]), Reduction::Mean)), "must have the same sizes"),
    ] {
        assert!(message.contains(want), "{message}\nlacks {want}");
    }
    let wide = x.try_cross_entropy_with(&classes(&[0, 0]), o().weight(&Tensor::ones([3])));
    assert_eq!(wide.err().map(|e| e.kind()), Some(ErrorKind::DType));
}

#[test]
fn a17_errors_of_numbers() {
    let (x, t) = (Tensor::from_slice(&[1.0f64, 2.0, 3.0], [3]), Tensor::from_slice(&[1.0f64, 0.0, 0.0], [3]));
    for (reduction, want, grads) in [
        (Reduction::Mean, &[4.3333333][..], [0.0, 1.3333333, 2.0]),
        (Reduction::Sum, &[13.0], [0.0, 4.0, 6.0]),
        (Reduction::None, &[0.0, 4.0, 9.0], [0.0, 4.0, 6.0]),
    ] {
        let x = x.detach().requires_grad_(true);
        let loss = x.mse_loss(&t, reduction);
        near(&loss, want);
        loss.sum().backward();
        near(&x.grad().unwrap(), &grads);
    }
    near(&x.l1_loss(&t, Reduction::Mean), &[5.0 / 3.0]);
    let nothing = Tensor::zeros([0]);
    assert!(nothing.mse_loss(&nothing, Reduction::Mean).item::<f32>().is_nan());
    assert_eq!(nothing.mse_loss(&nothing, Reduction::Sum).item::<f32>(), 0.0);
}

#[test]
fn t39_bce_of_large_logits() {
    let x = Tensor::from_slice(&[1000.0f32, -1000.0, 0.0], [3]).requires_grad_(true);
    let t = Tensor::from_slice(&[0.0f32, 1.0, 1.0], [3]);
    let loss = x.bce_with_logits(&t, Reduction::None);
    near(&loss, &[1000.0, 1000.0, std::f64::consts::LN_2]);
    loss.sum().backward();
    near(&x.grad().unwrap(), &[1.0, -1.0, -0.5]);
}

#[test]
fn a23_dropout() {
    let g = Generator::new(3);
    let x = Tensor::from_slice(&[0.0f32, f32::INFINITY, -1.0], [3]);
    // Everything is left out, which an infinity does not survive.
    near(&x.dropout(1.0, true, &g), &[0.0, f64::NAN, 0.0]);
    for same in [x.dropout(0.0, true, &g), x.dropout(0.5, false, &g)] {
        assert!(same.is_same(&x));
    }
    for p in [-0.1, 1.5, f64::NAN] {
        assert!(
            text(x.try_dropout(p, true, &g))
                .contains("dropout probability has to be between 0 and 1, but got")
        );
    }
    let ones = Tensor::ones([64, 64]).requires_grad_(true);
    let y = ones.dropout(0.25, true, &Generator::new(5));
    let kept = y.to_vec::<f32>();
    assert!(kept.iter().all(|&v| v == 0.0 || v == 4.0 / 3.0));
    let part = kept.iter().filter(|&&v| v > 0.0).count() as f64 / 4096.0;
    assert!((part - 0.75).abs() < 0.03, "{part}");
    y.sum().backward();
    assert_eq!(ones.grad().unwrap().to_vec::<f32>(), kept);
    // The same elements in every dtype and layout.
    let again = Tensor::ones([64, 64]).t().to_dtype(DType::F64).dropout(0.25, true, &Generator::new(5));
    assert!(again.to_vec::<f64>().iter().zip(&kept).all(|(a, b)| (*a > 0.0) == (*b > 0.0)));
}

#[test]
fn a23_dropout2d_leaves_out_channels_and_keeps_the_format() {
    let x = Tensor::ones([8, 16, 3, 3]).to_format(MemoryFormat::ChannelsLast);
    let y = x.dropout2d(0.5, true, &Generator::new(1));
    assert_eq!(y.strides(), x.strides());
    let channels = y.contiguous().view([128, 9]).to_vec::<f32>();
    let whole = channels.chunks(9).filter(|c| c.iter().all(|&v| v == 2.0)).count();
    let none = channels.chunks(9).filter(|c| c.iter().all(|&v| v == 0.0)).count();
    assert_eq!(whole + none, 128);
    assert!((40..90).contains(&whole), "{whole}");
    assert_eq!(x.dropout(0.5, true, &Generator::new(1)).strides(), x.strides());
}
