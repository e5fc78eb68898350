//! Devices: which backend holds a storage.

use std::fmt;

/// The kind of a device; each has at most one registered backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// Host memory and the CPU kernels.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// A backend from outside the project, by a number of its choice (PyTorch's PrivateUse).
    Private(u8),
}

/// Where a tensor's storage lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DeviceKind,
    index: u16,
}

impl Device {
    /// The host.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: 0 };

    /// The host.
    pub const fn cpu() -> Device {
        Device::CPU
    }

    /// Device `index` of `kind`, whether or not a backend for it is registered.
    pub const fn new(kind: DeviceKind, index: u16) -> Device {
        Device { kind, index }
    }

    /// The kind.
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// The number among devices of its kind.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DeviceKind::Cpu => f.write_str("cpu"),
            DeviceKind::Cuda => write!(f, "cuda:{}", self.index),
            DeviceKind::Private(n) => write!(f, "private{n}:{}", self.index),
        }
    }
}
