//! Files: safetensors, state dicts and checkpoints.
#![forbid(unsafe_code)]

mod atomic;
pub mod safetensors;

pub use atomic::write_atomically;
