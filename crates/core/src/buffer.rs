//! A backend's block of memory.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

/// How new memory is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// Any bytes: the caller writes all of it before anyone can read it.
    Uninit,
    /// Zeros.
    Zeroed,
}

/// A block of memory owned by a backend: host memory by address, or whatever handle the backend keeps.
///
/// Only the backend that made a buffer looks inside. Dropping it gives the memory back.
pub struct Buffer {
    repr: Repr,
    bytes: usize,
}

enum Repr {
    Host { ptr: NonNull<u8>, free: unsafe fn(NonNull<u8>, usize) },
    Foreign(Box<dyn Any + Send + Sync>),
}

// SAFETY: the host pointer is owned by this buffer alone; who may read or write the memory behind it is
// decided by the storage's guards, not by `&Buffer`.
unsafe impl Send for Buffer {}
// SAFETY: as above: `&Buffer` gives out a raw pointer only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes over host memory.
    ///
    /// # Safety
    /// `ptr` is valid for reads and writes of `bytes` bytes until `free(ptr, bytes)` is called, which happens
    /// once, when the buffer is dropped, on any thread.
    pub unsafe fn from_host(ptr: NonNull<u8>, bytes: usize, free: unsafe fn(NonNull<u8>, usize)) -> Buffer {
        Buffer { repr: Repr::Host { ptr, free }, bytes }
    }

    /// Wraps a backend's own handle to `bytes` bytes.
    pub fn foreign(handle: Box<dyn Any + Send + Sync>, bytes: usize) -> Buffer {
        Buffer { repr: Repr::Foreign(handle), bytes }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address, for host memory.
    pub fn host_ptr(&self) -> Option<*mut u8> {
        match &self.repr {
            Repr::Host { ptr, .. } => Some(ptr.as_ptr()),
            Repr::Foreign(_) => None,
        }
    }

    /// The backend's handle, if it is a `T`.
    pub fn handle<T: 'static>(&self) -> Option<&T> {
        match &self.repr {
            Repr::Host { .. } => None,
            Repr::Foreign(h) => h.downcast_ref(),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Repr::Host { ptr, free } = self.repr {
            // SAFETY: `from_host`'s caller promised that `free` takes this pair; it is called only here.
            unsafe { free(ptr, self.bytes) }
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes)
    }
}
