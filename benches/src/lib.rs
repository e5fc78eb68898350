//! What the benchmarks share.
#![forbid(unsafe_code)]
