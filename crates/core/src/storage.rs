//! Shared, versioned memory behind arrays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::{Buffer, Init};
use crate::guard::GuardWord;
use crate::{Device, Result, backend};

/// A reference-counted block of bytes on a device, shared by every view of it.
///
/// It counts the writes made to it (its *version*), which is how autograd notices that a saved value has been
/// changed. Safe code cannot reach its bytes but under its guard.
#[derive(Clone)]
pub struct Storage(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) buffer: Buffer,
    pub(crate) device: Device,
    pub(crate) version: AtomicU64,
    pub(crate) guard: GuardWord,
}

impl Storage {
    /// Allocates `bytes` on `device`. Crate-private with `Init::Uninit`: whoever asks writes all of it.
    pub(crate) fn allocate(device: Device, bytes: usize, init: Init) -> Result<Storage> {
        let buffer = backend::of(device)?.allocate(device.index(), bytes, init)?;
        Ok(Storage(Arc::new(Inner { buffer, device, version: AtomicU64::new(0), guard: GuardWord::new() })))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.buffer.bytes()
    }

    /// The device the bytes lie on.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// How many writes this storage has seen since it was made.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Called under the write guard, before the write.
    pub(crate) fn bump(&self) {
        self.0.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether both are the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that identifies this storage while it lives (PyTorch's `untyped_storage().data_ptr()`).
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Whether this handle is the only one.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Storage({} bytes on {}, version {})", self.bytes(), self.device(), self.version())
    }
}
