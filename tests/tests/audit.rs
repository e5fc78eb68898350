//! Hidden copies: a training step in channels-last makes none, and the report names those of a planted one.
#![forbid(unsafe_code)]

use stridegrad::audit::{Audit, deny_copies};
use stridegrad::prelude::*;
use stridegrad_tests::nets::SmallNet;

#[test]
fn a_training_step_in_channels_last_copies_nothing() {
    let format = MemoryFormat::ChannelsLast;
    let g = Generator::new(5);
    let weights = |sizes: &[usize]| (Tensor::randn(sizes, &g) * 0.1).to_format(format).requires_grad_(true);
    let (w1, w2) = (weights(&[8, 3, 3, 3]), weights(&[8, 8, 3, 3]));
    let ones = || Tensor::ones([8]).requires_grad_(true);
    let (scale, shift) = (ones(), ones());
    let (mean, var) = (Tensor::zeros([8]), Tensor::ones([8]));
    let w = (Tensor::randn([10, 8], &g) * 0.1).requires_grad_(true);
    let x = Tensor::randn([4, 3, 16, 16], &g).to_format(format);
    let target = Tensor::randint(0, 10, [4], &g);
    let params = [&w1, &w2, &scale, &shift, &w].map(Tensor::clone);
    let mut optimizer = Sgd::new(params.clone(), 0.02).momentum(0.9).weight_decay(1e-4);

    let _nothing_hidden = deny_copies();
    let mut losses = Vec::new();
    for _ in 0..3 {
        optimizer.zero_grad();
        let h = x.conv2d(&w1, None, stridegrad::Conv2dOptions::default().padding(1));
        let options = stridegrad::BatchNormOptions::training();
        let h = h.batch_norm(Some(&mean), Some(&var), Some(&scale), Some(&shift), options).relu();
        let h = h.max_pool2d(2).conv2d(&w2, None, stridegrad::Conv2dOptions::default().padding(1)).relu();
        let h = h.avg_pool2d(8);
        assert_eq!(h.suggested_format(), format);
        // Pooled to 1 x 1, the channels lie one after the other: flattening is a view.
        let loss = h.flatten(1, -1).linear(&w, None).cross_entropy(&target);
        loss.backward();
        optimizer.step();
        losses.push(loss.item::<f32>());
    }
    assert!(losses[2] < losses[0], "{losses:?}");
    for p in &params {
        assert_eq!(p.grad().unwrap().strides(), p.strides());
    }
}

#[test]
fn a_network_of_modules_in_channels_last_copies_nothing() {
    let format = MemoryFormat::ChannelsLast;
    let mut net = SmallNet::new(&mut Init::cpu().seed(1)).to(format);
    net.load(stridegrad_tests::fixture("smallnet.safetensors")).unwrap().require_complete().unwrap();
    let expected = stridegrad_tests::reference::read("smallnet_expected.safetensors");
    let images = stridegrad_tests::reference::of(&expected, "input").to_dtype(DType::F32);
    let x = images.select(0, 0).to_format(format);
    let target = stridegrad_tests::reference::of(&expected, "target").select(0, 0);
    let mut optimizer = Sgd::new(net.parameters(), 0.05).momentum(0.9);
    net.train();
    let audit = Audit::start();
    for _ in 0..2 {
        optimizer.zero_grad();
        net.forward(&x).cross_entropy(&target).backward();
        optimizer.step();
    }
    assert!(audit.report().is_empty(), "{}", audit.report());
}

#[test]
fn the_report_names_a_planted_copy() {
    let x = Tensor::arange(24.0).view([2, 3, 4]);
    let audit = Audit::start();
    assert_eq!(audit.report().to_string(), "no hidden copies\n");
    let line = line!() + 2;
    for _ in 0..2 {
        x.permute([0, 2, 1]).reshape([24]);
    }
    x.permute([2, 0, 1]).reshape([24]);
    let report = audit.report();
    assert_eq!((report.rows()[0].count, report.rows()[0].record.bytes, report.bytes()), (2, 192, 288));
    let text = report.to_string();
    assert!(text.lines().nth(1).unwrap().ends_with(&format!("audit.rs:{line}")), "{text}");
    assert!(text.ends_with("3 hidden copies, 288 bytes\n"), "{text}");
}
