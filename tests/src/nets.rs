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

/// Batch norm, a strided, a grouped and a 1x1 convolution: `fixtures/gen_smallnet.py`.
#[derive(Module, Debug, Clone)]
#[allow(missing_docs)]
pub struct SmallNet {
    pub conv1: Conv2d,
    pub bn1: BatchNorm2d,
    pub conv2: Conv2d,
    pub bn2: BatchNorm2d,
    pub conv3: Conv2d,
    pub bn3: BatchNorm2d,
    pub fc: Linear,
}

impl SmallNet {
    /// A network of any weights.
    pub fn new(init: &mut Init) -> SmallNet {
        SmallNet {
            conv1: Conv2d::builder(3, 8, 3).stride(2).padding(1).bias(false).build(init),
            bn1: BatchNorm2d::builder(8).build(init),
            conv2: Conv2d::builder(8, 8, 3).padding(1).groups(4).bias(false).build(init),
            bn2: BatchNorm2d::builder(8).build(init),
            conv3: Conv2d::builder(8, 16, 1).bias(false).build(init),
            bn3: BatchNorm2d::builder(16).build(init),
            fc: Linear::builder(16, 5).build(init),
        }
    }
}

impl Forward for SmallNet {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.bn1.forward(&self.conv1.forward(x)).relu();
        let x = self.bn2.forward(&self.conv2.forward(&x)).relu();
        let x = self.bn3.forward(&self.conv3.forward(&x)).relu();
        self.fc.forward(&x.mean_dims([2, 3], false))
    }
}
