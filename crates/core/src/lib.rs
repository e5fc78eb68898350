//! The strided core of stridegrad: dtypes, layouts, storage, arrays and the backend interface.
//!
//! Users depend on the `stridegrad` crate, which re-exports what they need.

mod device;
mod dims;
mod dtype;
mod error;
mod mapped;
mod scalar;

pub use device::{Device, DeviceKind};
pub use dims::{Dims, IntoDims, MAX_RANK};
pub use dtype::{Category, DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use mapped::MappedFile;
pub use scalar::Scalar;
