//! The CPU backend of stridegrad: kernels and the threads that run them.

pub mod isa;
pub(crate) mod scratch;
pub mod team;
