//! The CPU backend of stridegrad: kernels and the threads that run them.

pub mod alloc;
mod backend;
pub mod conv2d;
mod dense;
pub mod gemm;
pub mod isa;
#[doc(hidden)]
pub mod kernel_macros;
pub(crate) mod loops;
pub(crate) mod pack;
pub mod pool2d;
pub(crate) mod scratch;
pub mod team;
pub(crate) mod ukr;

pub use backend::{CpuBackend, register};
