//! Activations and other layers without parameters.

use stridegrad_autograd::Tensor;

use crate::{Forward, Module};

macro_rules! elementwise {
    ($($(#[$doc:meta])* $layer:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[module(crate = "crate")]
        pub struct $layer;

        impl Forward for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                x.$op()
            }
        }
    )*};
}

elementwise! {
    /// max(x, 0).
    Relu = relu;
    /// The logistic function, 1 / (1 + e^-x).
    Sigmoid = sigmoid;
    /// The hyperbolic tangent.
    Tanh = tanh;
    /// x times the logistic function of x, also called swish.
    Silu = silu;
    /// x times the normal distribution function of x.
    Gelu = gelu;
    /// ln(1 + e^x).
    Softplus = softplus;
}

macro_rules! with_setting {
    ($($(#[$doc:meta])* $layer:ident($setting:ident: $t:ty) = $op:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Debug, Clone, Copy, PartialEq)]
        #[module(crate = "crate")]
        pub struct $layer {
            $setting: $t,
        }

        impl $layer {
            #[doc = concat!("With this ", stringify!($setting), ".")]
            pub fn new($setting: $t) -> $layer {
                $layer { $setting }
            }
        }

        impl Forward for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                x.$op(self.$setting)
            }
        }
    )*};
}

with_setting! {
    /// x, or the slope times x below 0; PyTorch's default slope is 0.01.
    LeakyRelu(slope: f64) = leaky_relu;
    /// x, or alpha (e^x - 1) below 0; PyTorch's default alpha is 1.
    Elu(alpha: f64) = elu;
    /// Values along a dim as parts of their sum after e^x.
    Softmax(dim: i64) = softmax;
    /// The logarithm of the softmax along a dim.
    LogSoftmax(dim: i64) = log_softmax;
}

/// The input itself.
#[derive(Module, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[module(crate = "crate")]
pub struct Identity;

impl Forward for Identity {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.clone()
    }
}

/// Merges the dims from `start` to `end` into one: by default all but the first.
#[derive(Module, Debug, Clone, Copy, PartialEq, Eq)]
#[module(crate = "crate")]
pub struct Flatten {
    start: i64,
    end: i64,
}

impl Flatten {
    /// All dims but the first.
    pub fn new() -> Flatten {
        Flatten::dims(1, -1)
    }

    /// From `start` to `end`, both included; negative ones count from the last.
    pub fn dims(start: i64, end: i64) -> Flatten {
        Flatten { start, end }
    }
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten::new()
    }
}

impl Forward for Flatten {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.flatten(self.start, self.end)
    }
}

/// A function of a tensor as a layer.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_nn::{Forward, Lambda};
/// let square = Lambda(|x| x.mul(x));
/// assert_eq!(square.forward(&Tensor::full([1], 3.0)).item::<f32>(), 9.0);
/// ```
#[derive(Module, Debug, Clone, Copy)]
#[module(crate = "crate")]
pub struct Lambda(pub fn(&Tensor) -> Tensor);

impl Forward for Lambda {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        (self.0)(x)
    }
}
