//! The synchronisation primitives of the guards: the standard ones, or loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::{sync::atomic::AtomicUsize, thread::yield_now};
#[cfg(not(loom))]
pub(crate) use std::{sync::atomic::AtomicUsize, thread::yield_now};

pub(crate) use std::sync::atomic::Ordering;
