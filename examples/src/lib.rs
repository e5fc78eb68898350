//! What the examples share.
#![forbid(unsafe_code)]
