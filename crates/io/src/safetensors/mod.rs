//! The safetensors format: a JSON header and a data area.
//!
//! Reading is strict: [`parse`] refuses every file that the format's text disallows, and values are copied out,
//! so that unaligned data read correctly and no invalid `bool` can come to be.

mod dtype;
mod file;
mod header;
mod write;

pub use dtype::FileDType;
pub use file::SafeTensors;
pub use header::{Entry, Header, MAX_HEADER, parse};
pub use write::{Spec, write};

const OP: &str = "safetensors";
/// The header's key that is no tensor.
const METADATA_KEY: &str = "__metadata__";
