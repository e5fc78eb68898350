//! A LeNet made by PyTorch, from its own safetensors file: logits, loss, the gradient of every parameter, three steps of
//! SGD with momentum and three of AdamW, in both dtypes and both memory formats.
#![forbid(unsafe_code)]

use stridegrad::prelude::*;
use stridegrad_tests::nets::LeNet;
use stridegrad_tests::reference::{Distances, of, read};

const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];

fn tolerance(dtype: DType) -> f64 {
    if dtype == DType::F64 { 1e-10 } else { 1e-5 }
}

/// The network with PyTorch's weights.
fn net(dtype: DType, format: MemoryFormat) -> LeNet {
    // Other weights at first: loading must replace all of them.
    let mut net = LeNet::new(&mut Init::cpu().seed(1).dtype(dtype)).to(format);
    net.load(stridegrad_tests::fixture("lenet.safetensors")).unwrap().require_complete().unwrap();
    net
}

/// The batch: images and classes.
fn batch(expected: &StateDict, dtype: DType, format: MemoryFormat) -> (Tensor, Tensor) {
    let images = of(expected, "input").to_dtype(dtype).to_format(format);
    (images, of(expected, "target").clone())
}

#[test]
fn loss_and_gradients() {
    let expected = read("lenet_expected.safetensors");
    for (dtype, format) in [DType::F64, DType::F32].into_iter().flat_map(|d| FORMATS.map(|f| (d, f))) {
        let net = net(dtype, format);
        let (x, target) = batch(&expected, dtype, format);
        let logits = net.forward(&x);
        let loss = logits.cross_entropy(&target);
        loss.backward();
        let mut distances = Distances::new(tolerance(dtype));
        distances.compare(&expected, "logits", &logits);
        distances.compare(&expected, "loss", &loss);
        for (name, p) in net.named_parameters() {
            let g = p.grad().unwrap_or_else(|| panic!("{name} has no gradient"));
            assert_eq!((g.dtype(), g.strides()), (dtype, p.strides()), "{name}");
            distances.compare(&expected, &format!("grad.{name}"), &g);
        }
        distances.finish(&format!("{dtype} {format:?}"), 12);
    }
}

/// Three steps on the same batch, each compared.
fn steps<O: Optimizer>(label: &str, make: impl Fn(Vec<Tensor>) -> O) {
    let expected = read("lenet_expected.safetensors");
    for (dtype, format) in [DType::F64, DType::F32].into_iter().flat_map(|d| FORMATS.map(|f| (d, f))) {
        let net = net(dtype, format);
        let (x, target) = batch(&expected, dtype, format);
        let mut optimizer = make(net.parameters());
        let mut distances = Distances::new(tolerance(dtype));
        let mut losses = Vec::new();
        for step in 1..=3 {
            optimizer.zero_grad();
            let loss = net.forward(&x).cross_entropy(&target);
            loss.backward();
            optimizer.step();
            losses.push(loss.detach());
            for (name, p) in net.named_parameters() {
                distances.compare(&expected, &format!("{label}{step}.{name}"), &p);
            }
        }
        distances.compare(&expected, &format!("{label}.losses"), &Tensor::stack(&losses, 0));
        distances.finish(&format!("{label} {dtype} {format:?}"), 31);
    }
}

#[test]
fn three_steps_of_sgd_with_momentum() {
    steps("sgd", |p| Sgd::new(p, 0.05).momentum(0.9));
}

#[test]
fn three_steps_of_adamw() {
    steps("adamw", |p| AdamW::new(p, 1e-2));
}
