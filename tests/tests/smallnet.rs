//! A small network with batch norm, strided, grouped and 1x1 convolutions, in channels-last, over 50 steps of SGD as
//! PyTorch takes them.
#![forbid(unsafe_code)]

use stridegrad::prelude::*;
use stridegrad_tests::nets::SmallNet;
use stridegrad_tests::reference::{Distances, of, read};

const STEPS: usize = 50;
const BATCHES: usize = 5;

fn trained(dtype: DType, tolerance: f64, format: MemoryFormat) {
    let expected = read("smallnet_expected.safetensors");
    let mut net = SmallNet::new(&mut Init::cpu().seed(1).dtype(dtype)).to(format);
    net.load(stridegrad_tests::fixture("smallnet.safetensors")).unwrap().require_complete().unwrap();
    let images = of(&expected, "input").to_dtype(dtype);
    let batch = |k: usize| {
        let x = images.select(0, k as i64).to_format(format);
        (x, of(&expected, "target").select(0, k as i64))
    };
    let mut optimizer = Sgd::new(net.parameters(), 0.05).momentum(0.9).weight_decay(1e-4);
    let mut distances = Distances::new(tolerance);
    let mut losses = Vec::new();
    net.train();
    for step in 0..STEPS {
        let (x, target) = batch(step % BATCHES);
        optimizer.zero_grad();
        let logits = net.forward(&x);
        let loss = logits.cross_entropy(&target);
        loss.backward();
        if step == 0 {
            assert_eq!(net.conv1.forward(&x).suggested_format(), format);
            distances.compare(&expected, "logits", &logits);
            for (name, p) in net.named_parameters() {
                distances.compare(&expected, &format!("grad.{name}"), &p.grad().unwrap());
            }
        }
        optimizer.step();
        losses.push(loss.detach());
    }
    distances.compare(&expected, "losses", &Tensor::stack(&losses, 0));
    let state = net.state_dict();
    for (name, t) in state.iter() {
        distances.compare(&expected, &format!("final.{name}"), t);
    }
    net.eval();
    let logits = net.forward(&batch(0).0);
    distances.compare(&expected, "eval_logits", &logits);
    // 11 parameters with gradients, 20 entries of the state dict, and three more.
    distances.finish(&format!("{dtype} {format:?}"), 34);
}

#[test]
fn fifty_steps_in_channels_last() {
    trained(DType::F64, 1e-8, MemoryFormat::ChannelsLast);
    trained(DType::F32, 1e-3, MemoryFormat::ChannelsLast);
}

#[test]
fn fifty_steps_in_rows() {
    trained(DType::F64, 1e-8, MemoryFormat::Contiguous);
    trained(DType::F32, 1e-3, MemoryFormat::Contiguous);
}
