//! A differentiable deep-learning framework: strided tensors, automatic differentiation, small CNNs end to end.
//!
//! ```
//! use stridegrad::prelude::*;
//!
//! let x = Tensor::arange(6.0).view([2, 3]).requires_grad_(true);
//! let y = x.t().mul(2.0); // a view, and an op on it
//! y.sum().backward();
//! assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0; 6]);
//! ```
//!
//! - [`Tensor`] has PyTorch's methods: each panics with a readable error, and has a `try_` form that returns it.
//! - [`nn`]: modules and layers, with `#[derive(Module)]`; [`optim`]: optimizers and schedules; [`data`]: datasets and
//!   loaders; [`io`]: safetensors files and checkpoints.
//! - [`prelude`] brings in what most programs use.
#![forbid(unsafe_code)]

pub use stridegrad_autograd::{
    BackwardOptions, GradMode, HookHandle, Operand, Tensor, default_generator, enable_grad, grad, is_grad_enabled,
    manual_seed, no_grad,
};
pub use stridegrad_core::{
    DType, Device, DeviceKind, Element, Error, ErrorKind, Generator, GeneratorState, IntoDims, Layout, MemoryFormat,
    Result, Scalar, audit,
};

/// Modules, layers, initial values and losses.
pub mod nn {
    pub use stridegrad_nn::*;
}

/// Optimizers and learning-rate schedules.
pub mod optim {
    pub use stridegrad_optim::*;
}

/// Datasets, readers and the loader.
pub mod data {
    pub use stridegrad_data::*;
}

/// Files: safetensors, state dicts, checkpoints.
pub mod io {
    pub use stridegrad_io::*;
}

/// What most programs use.
pub mod prelude {
    pub use crate::data::{DataLoader, Dataset, Mnist};
    pub use crate::io::{Checkpoint, SaveLoad};
    pub use crate::nn::{Flatten, Forward, Identity, Init, Lambda, Module, Relu, Sequential};
    pub use crate::optim::{Adam, AdamW, LrScheduler, Optimizer, Sgd};
    pub use crate::{DType, Device, Element, Generator, IntoDims, MemoryFormat, Tensor, no_grad};
}
