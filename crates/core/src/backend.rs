//! The interface between arrays and devices, and the registry of backends.
//!
//! Kernel classes are few and closed; ops are open (they describe kernels, see [`crate::kernel`]). A class that
//! a backend lacks is an error that names it. Nothing here assumes that a device's memory can be read by the host,
//! or that a kernel has finished when its method returns: a backend may only have enqueued it, in stream order.

use std::sync::RwLock;

use crate::buffer::{Buffer, Init};
use crate::kernel::*;
use crate::{DType, Device, DeviceKind, Error, ErrorKind, Layout, Philox, Result, Scalar};

/// An operand that a kernel reads. Only [`crate::exec`] makes them, under the storage's guard.
#[derive(Clone, Copy, Debug)]
pub struct Src<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) layout: &'a Layout,
    pub(crate) dtype: DType,
}

/// An operand that a kernel writes, under the storage's write guard. It never overlaps itself, and it overlaps an
/// input only where both are the very same elements at the same positions.
#[derive(Clone, Copy, Debug)]
pub struct Dst<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) layout: &'a Layout,
    pub(crate) dtype: DType,
}

macro_rules! operand {
    ($($t:ident),*) => {$(
        impl<'a> $t<'a> {
            /// The memory.
            pub fn buffer(&self) -> &'a Buffer { self.buffer }
            /// Sizes, strides and offset, in elements; every reachable index lies inside the buffer.
            pub fn layout(&self) -> &'a Layout { self.layout }
            /// The element type.
            pub fn dtype(&self) -> DType { self.dtype }
            /// Whether both operands lie in the same buffer.
            pub fn same_buffer(&self, other: &Buffer) -> bool { std::ptr::eq(self.buffer, other) }
        }
    )*};
}
operand!(Src, Dst);

/// Bytes handed out by a device's allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in live buffers.
    pub current: u64,
    /// The largest `current` since the last reset.
    pub peak: u64,
    /// Bytes kept for reuse.
    pub cached: u64,
    /// Allocations served.
    pub allocations: u64,
    /// Bytes that were zero-filled on request.
    pub zeroed: u64,
}

/// What a device can do. Object-safe; backends are `'static`.
///
/// Contract of every kernel method: all of `dst` is written; operands follow the documented sizes (the callers in
/// [`crate::exec`] check them); every refusal precedes the first write.
pub trait Backend: Send + Sync {
    /// The name, for messages.
    fn name(&self) -> &'static str;

    /// How many devices there are.
    fn device_count(&self) -> usize {
        1
    }

    /// Memory on device `index`.
    fn allocate(&self, index: usize, bytes: usize, init: Init) -> Result<Buffer>;

    /// Copies bytes to the host; returns when they are there.
    fn read(&self, src: &Buffer, offset: usize, dst: &mut [u8]) -> Result<()>;

    /// Copies bytes from the host; `src` may be reused when it returns.
    fn write(&self, dst: &Buffer, offset: usize, src: &[u8]) -> Result<()>;

    /// Waits until everything enqueued has run, and reports what went wrong on the device meanwhile.
    fn synchronize(&self, index: usize) -> Result<()> {
        let _ = index;
        Ok(())
    }

    /// The allocator's statistics.
    fn memory_stats(&self, index: usize) -> MemoryStats {
        let _ = index;
        MemoryStats::default()
    }

    /// Sets `peak` to `current` and the counters to zero.
    fn reset_memory_stats(&self, index: usize) {
        let _ = index;
    }

    /// Gives cached memory back to the system.
    fn empty_cache(&self, index: usize) {
        let _ = index;
    }

    /// Writes `value` everywhere.
    fn fill(&self, dst: Dst<'_>, value: Scalar) -> Result<()> {
        let _ = (dst, value);
        lacks(self.name(), "fill")
    }

    /// Copies, broadcasting `src` to `dst`'s sizes and converting the dtype: floats to integers saturate, NaN
    /// becomes 0; integers wrap; anything but 0 is true.
    fn copy(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        let _ = (dst, src);
        lacks(self.name(), "copy")
    }

    /// An elementwise op; operands broadcast to `dst`'s sizes. It computes in `compute` (`f32`, `f64` or `i64`),
    /// operands and result are converted as [`Backend::copy`] does.
    fn map(
        &self,
        kernel: &MapKernel,
        compute: DType,
        params: &[Scalar],
        dst: Dst<'_>,
        srcs: &[Src<'_>],
    ) -> Result<()> {
        let _ = (compute, params, dst, srcs);
        lacks(self.name(), kernel.name)
    }

    /// A reduction over the dims where `dims` holds; `dst` has size 1 there. It computes in `compute`.
    fn reduce(
        &self,
        kernel: &ReduceKernel,
        compute: DType,
        dims: &[bool],
        dst: Dst<'_>,
        src: Src<'_>,
    ) -> Result<()> {
        let _ = (compute, dims, dst, src);
        lacks(self.name(), kernel.name)
    }

    /// The position (`i64`) of an extreme along `dim`, and its value if asked; the results have size 1 there.
    fn arg_reduce(
        &self,
        which: Extreme,
        dim: usize,
        index: Dst<'_>,
        value: Option<Dst<'_>>,
        src: Src<'_>,
    ) -> Result<()> {
        let _ = (which, dim, index, value, src);
        lacks(self.name(), "arg_reduce")
    }

    /// A running reduction along `dim`.
    fn scan(&self, scan: Scan, dim: usize, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        let _ = (scan, dim, dst, src);
        lacks(self.name(), "scan")
    }

    /// `dst = a b`, all of rank 3 (batch, rows, columns) with equal batch sizes, any strides, one dtype.
    fn gemm(&self, dst: Dst<'_>, a: Src<'_>, b: Src<'_>) -> Result<()> {
        let _ = (dst, a, b);
        lacks(self.name(), "gemm")
    }

    /// One pass of a two-dimensional convolution; operands as [`ConvPass`] says, any strides, one dtype.
    fn conv2d(&self, pass: ConvPass, params: &Conv2dParams, dst: Dst<'_>, srcs: &[Src<'_>]) -> Result<()> {
        let _ = (pass, params, dst, srcs);
        lacks(self.name(), "conv2d")
    }

    /// One pass of two-dimensional pooling; operands as [`PoolPass`] says.
    fn pool2d(
        &self,
        pass: PoolPass,
        params: &Pool2dParams,
        dsts: &[Dst<'_>],
        srcs: &[Src<'_>],
    ) -> Result<()> {
        let _ = (pass, params, dsts, srcs);
        lacks(self.name(), "pool2d")
    }

    /// One indexing pass along `dim`; operands as [`IndexPass`] says, `x` and `dst` of one dtype. An index outside
    /// its dimension is refused before the first write.
    fn index(&self, pass: IndexPass, dim: usize, dst: Dst<'_>, x: Src<'_>, index: Src<'_>) -> Result<()> {
        let _ = (pass, dim, dst, x, index);
        lacks(self.name(), "index")
    }

    /// `dst += src`, of equal sizes and dtype. Here `dst` may overlap itself: then every contribution counts, and
    /// they are added in row-major order.
    fn accumulate(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        let _ = (dst, src);
        lacks(self.name(), "accumulate")
    }

    /// Random numbers: element `i` in row-major order depends on the stream and `i` alone, as the slice functions
    /// of [`Philox`] give them (`f16` and `bf16` draw as `f32` does, integers as 64-bit ones).
    fn random(&self, dist: Distribution, stream: &Philox, dst: Dst<'_>) -> Result<()> {
        let _ = (dist, stream, dst);
        lacks(self.name(), "random")
    }
}

#[cold]
fn lacks(backend: &str, class: &'static str) -> Result<()> {
    Err(Error::new(ErrorKind::Unsupported, class, format!("the {backend} backend has no {class} kernel"))
        .hint("move the operands to another device with to()"))
}

static REGISTRY: RwLock<Vec<(DeviceKind, &'static dyn Backend)>> = RwLock::new(Vec::new());
static CPU: std::sync::OnceLock<&'static dyn Backend> = std::sync::OnceLock::new();

/// Registers the backend of a device kind. The first registration wins; a second of the same kind is refused.
pub fn register(kind: DeviceKind, backend: &'static dyn Backend) -> Result<()> {
    let taken = || {
        Err(Error::new(ErrorKind::Device, "register_backend", format!("{kind:?} already has a backend"))
            .hint("choose another DeviceKind::Private number"))
    };
    if kind == DeviceKind::Cpu {
        return if CPU.set(backend).is_ok() { Ok(()) } else { taken() };
    }
    let mut all = REGISTRY.write().unwrap_or_else(|e| e.into_inner());
    if all.iter().any(|(k, _)| *k == kind) {
        return taken();
    }
    all.push((kind, backend));
    Ok(())
}

/// The backend of a device, or an error that says none is registered.
pub fn of(device: Device) -> Result<&'static dyn Backend> {
    if device.kind() == DeviceKind::Cpu
        && let Some(b) = CPU.get()
    {
        return Ok(*b);
    }
    let all = REGISTRY.read().unwrap_or_else(|e| e.into_inner());
    match all.iter().find(|(k, _)| *k == device.kind()) {
        Some((_, b)) if device.index() < b.device_count() => Ok(*b),
        Some((_, b)) => Err(Error::new(
            ErrorKind::Device,
            "device",
            format!("{device} is not there: the {} backend has {} device(s)", b.name(), b.device_count()),
        )),
        None => Err(Error::new(
            ErrorKind::Device,
            "device",
            format!("no backend is registered for {device}"),
        )
        .hint(
            "the stridegrad crate registers the CPU; other backends are registered with register_backend()",
        )),
    }
}
