//! Tensors with gradients: the graph, the backward engine, views, in-place writes and the ops.
//!
//! Users depend on the `stridegrad` crate, which re-exports what they need.

#![forbid(unsafe_code)]

mod backward;
mod checkpoint;
mod create;
mod custom;
mod display;
mod engine;
mod explain;
mod faces;
mod gradcheck;
mod graph;
mod index;
mod inplace;
#[doc(hidden)]
pub mod literal;
mod mode;
mod operand;
pub mod ops;
mod print;
mod random;
mod tensor;
mod transfer;
mod view;

pub use backward::grad;
pub use checkpoint::{checkpoint, checkpoint_with};
pub use custom::{BackwardContext, CustomFunction, ForwardContext};
pub use engine::{BackwardOptions, GradOptions};
pub use gradcheck::{GradcheckOptions, Outputs, gradcheck, gradgradcheck};
pub use graph::Hook;
pub use index::{Ellipsis, IndexItem, NewAxis};
pub use literal::Nested;
pub use mode::{
    AnomalyMode, GradMode, detect_anomaly, enable_grad, is_anomaly_enabled, is_grad_enabled, no_grad,
};
pub use operand::Operand;
pub use ops::options::*;
pub use print::Graph;
pub use stridegrad_cpu::map_kernel;
pub use tensor::{HookHandle, Tensor};
#[cfg(feature = "testkit")]
pub mod spec;
#[cfg(feature = "testkit")]
pub mod tamper;
pub use random::{default_generator, manual_seed};

/// Without the feature `testkit` there is no [`tamper`]: none of its hooks is compiled.
///
/// ```compile_fail
/// use stridegrad_autograd::tamper::tampered;
/// ```
#[cfg(all(doctest, not(feature = "testkit")))]
pub struct NoTamper;
