//! The fully connected layer.

use stridegrad_autograd::Tensor;
use stridegrad_core::Result;

use crate::{Forward, Init, Module};

/// `y = x W^T + b` over the last dim: (*, in_features) to (*, out_features).
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_nn::{Forward, Init, Linear};
/// let layer = Linear::builder(3, 2).build(&mut Init::cpu().seed(1));
/// assert_eq!(layer.forward(&Tensor::ones([4, 3])).sizes(), [4, 2]);
/// ```
#[derive(Module, Debug, Clone)]
#[module(crate = "crate")]
pub struct Linear {
    /// (out_features, in_features).
    pub weight: Tensor,
    /// (out_features), unless it has none.
    pub bias: Option<Tensor>,
}

impl Linear {
    /// From `inputs` features to `outputs`.
    pub fn builder(inputs: usize, outputs: usize) -> LinearBuilder {
        LinearBuilder { inputs, outputs, bias: true }
    }

    /// The size of the input's last dim.
    pub fn in_features(&self) -> usize {
        self.weight.sizes()[1]
    }

    /// The size of the output's last dim.
    pub fn out_features(&self) -> usize {
        self.weight.sizes()[0]
    }
}

impl Forward for Linear {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, self.bias.as_ref())
    }
}

/// Makes a [`Linear`].
#[derive(Clone, Debug)]
#[must_use]
pub struct LinearBuilder {
    inputs: usize,
    outputs: usize,
    bias: bool,
}

impl LinearBuilder {
    /// Whether it has a bias; it does by default.
    pub fn bias(self, bias: bool) -> Self {
        LinearBuilder { bias, ..self }
    }

    /// The layer, with PyTorch's default initialisation: weight and bias within `1 / sqrt(in_features)` of 0.
    ///
    /// # Panics
    /// If memory cannot be had; [`try_build`](LinearBuilder::try_build) gives an error.
    #[track_caller]
    pub fn build(self, init: &mut Init) -> Linear {
        let caller = std::panic::Location::caller();
        self.try_build(init).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`build`](LinearBuilder::build).
    ///
    /// # Errors
    /// `OutOfMemory`, `Overflow`, or the device's.
    pub fn try_build(self, init: &mut Init) -> Result<Linear> {
        let LinearBuilder { inputs, outputs, bias } = self;
        let weight = init.within_fan_in(&[outputs, inputs], inputs)?;
        let bias = bias.then(|| init.within_fan_in(&[outputs], inputs)).transpose()?;
        Ok(Linear { weight, bias })
    }
}
