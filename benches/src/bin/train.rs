//! Training steps: forward, cross-entropy, backward and SGD with momentum, batch 64, in images per second.
//!
//! `cargo run --release -p stridegrad-benches --bin train`

#![forbid(unsafe_code)]

use stridegrad::nn::{Conv2d, Linear};
use stridegrad::prelude::*;

#[derive(Module, Debug)]
struct LeNet {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
    fc3: Linear,
}

impl Forward for LeNet {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.conv1.forward(x).relu().max_pool2d(2);
        let x = self.conv2.forward(&x).relu().max_pool2d(2).flatten(1, -1);
        self.fc3.forward(&self.fc2.forward(&self.fc1.forward(&x).relu()).relu())
    }
}

fn main() {
    let mut rows = Vec::new();
    for (name, format) in [("nchw", MemoryFormat::Contiguous), ("nhwc", MemoryFormat::ChannelsLast)] {
        let init = &mut Init::cpu().seed(0);
        let net = LeNet {
            conv1: Conv2d::builder(1, 6, 5).build(init),
            conv2: Conv2d::builder(6, 16, 5).build(init),
            fc1: Linear::builder(256, 120).build(init),
            fc2: Linear::builder(120, 84).build(init),
            fc3: Linear::builder(84, 10).build(init),
        }
        .to(format);
        let x = Tensor::randn([64, 1, 28, 28], &Generator::new(1)).to_format(format);
        let y = Tensor::from_slice(&(0..64i64).map(|i| i * 7 % 10).collect::<Vec<_>>(), [64]);
        let mut opt = Sgd::new(net.parameters(), 0.01).momentum(0.9);
        let step = || {
            opt.zero_grad();
            let loss = net.forward(&x).cross_entropy(&y);
            loss.backward();
            opt.step();
            loss.item::<f32>();
        };
        let seconds = stridegrad_benches::median(3.0, step);
        println!(
            "train lenet stridegrad-{name} {:9.1} img/s  median {:.3} ms",
            64.0 / seconds,
            seconds * 1e3
        );
        rows.push((format!("lenet_{name}"), 64.0 / seconds));
    }
    stridegrad_benches::print_json(&rows);
}
