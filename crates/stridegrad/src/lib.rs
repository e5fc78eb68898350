//! A differentiable deep-learning framework: strided tensors, autograd, and CNNs, on the CPU.
//!
//! ```
//! use stridegrad::prelude::*;
//!
//! let x = Tensor::arange(6.0).view([2, 3]).requires_grad_(true);
//! let loss = (&x.t() * 2.0).sum();
//! loss.backward();
//! assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0; 6]);
//! ```
//!
//! [`prelude`] brings in what a training program needs. The modules: [`nn`] (modules, initialisation), [`optim`]
//! (optimizers and schedules), [`data`] (datasets and loaders), [`io`] (state dicts and checkpoints).

#![forbid(unsafe_code)]

pub use stridegrad_autograd::*;
pub use stridegrad_core::{
    DType, Device, DeviceKind, Element, Error, ErrorKind, Generator, GeneratorState, IntoDims, Layout,
    MemoryFormat, MemoryStats, Result, Scalar, audit,
};

/// Modules, initialisation and losses.
#[doc(inline)]
pub use stridegrad_nn as nn;

/// Optimizers and learning-rate schedules.
#[doc(inline)]
pub use stridegrad_optim as optim;

/// Datasets and loaders.
#[doc(inline)]
pub use stridegrad_data as data;

/// State dicts, safetensors files and checkpoints.
#[doc(inline)]
pub use stridegrad_io as io;

/// Threads that the CPU kernels run on.
pub mod threads {
    pub use stridegrad_cpu::team::{num_threads, set_num_threads};
}

/// The statistics of a device's allocator. Zeros for a device without a backend.
pub fn memory_stats(device: Device) -> MemoryStats {
    stridegrad_core::backend::of(device).map(|b| b.memory_stats(device.index())).unwrap_or_default()
}

/// Sets the peak to the current use and the counters to zero.
pub fn reset_memory_stats(device: Device) {
    if let Ok(b) = stridegrad_core::backend::of(device) {
        b.reset_memory_stats(device.index());
    }
}

/// Gives the allocator's cached memory back to the system.
pub fn empty_cache(device: Device) {
    if let Ok(b) = stridegrad_core::backend::of(device) {
        b.empty_cache(device.index());
    }
}

/// What a training program needs.
pub mod prelude {
    pub use crate::optim::*;
    pub use stridegrad_autograd::{BackwardOptions, Ellipsis, NewAxis, Tensor, grad, no_grad, s, tensor};
    pub use stridegrad_core::{DType, Device, Generator, MemoryFormat};
    pub use stridegrad_data::{DataLoader, Dataset, Mnist};
    pub use stridegrad_io::{Checkpoint, SaveLoad};
    pub use stridegrad_nn::*;
}
