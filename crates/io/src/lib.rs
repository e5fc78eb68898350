//! Files: safetensors, state dicts and checkpoints.
#![forbid(unsafe_code)]

mod atomic;
mod checkpoint;
pub mod safetensors;
mod state;

pub use atomic::write_atomically;
pub use checkpoint::Checkpoint;
pub use state::{SaveLoad, StateFile, load_state, load_state_file, save_state, save_state_with};
