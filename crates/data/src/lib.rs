//! Datasets, readers and the loader that turns them into batches.
#![forbid(unsafe_code)]

mod dataset;
mod idx;
mod loader;
mod mnist;
mod prefetch;
mod sampler;
mod tensors;

pub use dataset::{Dataset, ToDevice};
pub use idx::Idx;
pub use loader::{DataLoader, Epoch};
pub use mnist::Mnist;
pub use sampler::Sampler;
pub use tensors::TensorDataset;
