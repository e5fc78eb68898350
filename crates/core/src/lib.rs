//! The strided core of stridegrad: dtypes, layouts, storage, arrays and the backend interface.
//!
//! Users depend on the `stridegrad` crate, which re-exports what they need.

mod array;
pub mod audit;
pub mod backend;
mod buffer;
mod caller;
mod device;
mod dims;
mod dtype;
mod error;
pub mod exec;
mod expr;
mod generator;
mod guard;
pub mod kernel;
mod layout;
mod mapped;
pub mod math;
mod overlap;
mod philox;
mod plan;
mod promotion;
mod scalar;
mod storage;
mod sync;

pub use array::Array;
pub use backend::{Backend, Dst, MemoryStats, Src};
pub use buffer::{Buffer, Init};
pub use caller::CallerScope;
pub use device::{Device, DeviceKind};
pub use dims::{Dims, IntoDims, MAX_RANK};
pub use dtype::{Category, DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use expr::{Binary, Compare, Expr, Formula, Int, Math, Step, Sym, Unary};
pub use generator::{Generator, GeneratorState};
pub use layout::{
    Layout, MAX_OPERANDS, MemoryFormat, Offsets, broadcast_sizes, checked_numel, infer_sizes, wrap_dim,
    wrap_dims,
};
pub use mapped::MappedFile;
pub use overlap::{Overlap, overlap, self_overlaps};
pub use philox::{Philox, box_muller, unit_f32, unit_f64};
pub use plan::LoopPlan;
pub use promotion::{TypeArg, result_type};
pub use scalar::Scalar;
pub use storage::Storage;
