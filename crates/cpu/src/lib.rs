//! The CPU backend of stridegrad: kernels and the threads that run them.

pub mod alloc;
pub mod conv2d;
pub mod gemm;
pub mod isa;
#[doc(hidden)]
pub mod kernel_macros;
pub(crate) mod pack;
pub(crate) mod scratch;
pub mod team;
pub(crate) mod ukr;
/// Registers the CPU backend; later calls do nothing.
pub fn register() {}
