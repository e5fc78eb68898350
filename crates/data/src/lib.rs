//! Datasets, readers and the loader that turns them into batches.
#![forbid(unsafe_code)]

mod idx;

pub use idx::Idx;
