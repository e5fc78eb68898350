//! End-to-end tests, and what they share.
#![forbid(unsafe_code)]

pub mod conformance;
mod documents;
pub mod nets;
pub mod reference;

pub mod toy;

use std::path::PathBuf;

/// The path of a file in `tests/fixtures`, whose README says what it holds.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fixtures_are_there() {
        for name in ["lenet.safetensors", "smallnet.safetensors", "semantics.json"] {
            assert!(super::fixture(name).is_file(), "{name}");
        }
    }
}
