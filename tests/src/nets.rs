//! The networks that the fixtures were made with.

use stridegrad::prelude::*;

/// LeNet for 28x28 images of one channel: `fixtures/gen_lenet.py`.
#[derive(Module, Debug, Clone)]
#[allow(missing_docs)]
pub struct LeNet {
    pub conv1: Conv2d,
    pub conv2: Conv2d,
    pub fc1: Linear,
    pub fc2: Linear,
    pub fc3: Linear,
}

impl LeNet {
    /// A network of any weights.
    pub fn new(init: &mut Init) -> LeNet {
        LeNet {
            conv1: Conv2d::builder(1, 6, 5).build(init),
            conv2: Conv2d::builder(6, 16, 5).build(init),
            fc1: Linear::builder(256, 120).build(init),
            fc2: Linear::builder(120, 84).build(init),
            fc3: Linear::builder(84, 10).build(init),
        }
    }
}

impl Forward for LeNet {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.conv1.forward(x).relu().max_pool2d(2);
        let x = self.conv2.forward(&x).relu().max_pool2d(2).flatten(1, -1);
        self.fc3.forward(&self.fc2.forward(&self.fc1.forward(&x).relu()).relu())
    }
}
