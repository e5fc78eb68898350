//! The CPU as a [`Backend`].

use std::sync::OnceLock;

use stridegrad_core::kernel::*;
use stridegrad_core::{
    Backend, Buffer, DType, DeviceKind, Dst, Error, ErrorKind, Init, MemoryStats, Philox, Result, Scalar,
    Src, backend, bail,
};

use crate::loops::View;
use crate::{alloc, dense, loops};

/// The CPU backend.
#[derive(Clone, Copy, Debug)]
pub struct CpuBackend;

/// Registers the CPU backend; further calls do nothing.
pub fn register() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Another CPU backend that was registered first stays.
        let _ = backend::register(DeviceKind::Cpu, &CpuBackend);
    });
}

/// The address of `len` bytes from `offset` on.
fn bytes_at(op: &'static str, buffer: &Buffer, offset: usize, len: usize) -> Result<*mut u8> {
    let Some(ptr) = buffer.host_ptr() else {
        return Err(Error::new(ErrorKind::Device, op, "the buffer is not in host memory"));
    };
    match offset.checked_add(len) {
        Some(end) if end <= buffer.bytes() => Ok(ptr.wrapping_add(offset)),
        _ => {
            bail!(Argument, op, "{len} bytes at {offset} do not lie in a buffer of {} bytes", buffer.bytes())
        }
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "CPU"
    }

    fn allocate(&self, _index: usize, bytes: usize, init: Init) -> Result<Buffer> {
        alloc::allocate(bytes, init)
    }

    fn read(&self, src: &Buffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        let p = bytes_at("read", src, offset, dst.len())?;
        // SAFETY: the bytes lie in the buffer (checked), are initialised, and the storage's guard keeps writers out;
        // `dst` is a slice of the caller's own.
        unsafe { p.copy_to_nonoverlapping(dst.as_mut_ptr(), dst.len()) }
        Ok(())
    }

    fn write(&self, dst: &Buffer, offset: usize, src: &[u8]) -> Result<()> {
        let p = bytes_at("write", dst, offset, src.len())?;
        // SAFETY: as in `read`, under the write guard.
        unsafe { p.copy_from_nonoverlapping(src.as_ptr(), src.len()) }
        Ok(())
    }

    fn memory_stats(&self, _index: usize) -> MemoryStats {
        alloc::stats()
    }

    fn reset_memory_stats(&self, _index: usize) {
        alloc::reset_stats();
    }

    fn empty_cache(&self, _index: usize) {
        alloc::empty_cache();
    }

    fn fill(&self, dst: Dst<'_>, value: Scalar) -> Result<()> {
        loops::copy::fill(dst.try_into()?, value)
    }

    fn copy(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        loops::copy::copy(dst.try_into()?, src.try_into()?)
    }

    fn map(
        &self,
        kernel: &MapKernel,
        compute: DType,
        params: &[Scalar],
        dst: Dst<'_>,
        srcs: &[Src<'_>],
    ) -> Result<()> {
        loops::map::map(kernel, compute, params, dst, srcs)
    }

    fn reduce(
        &self,
        kernel: &ReduceKernel,
        compute: DType,
        dims: &[bool],
        dst: Dst<'_>,
        src: Src<'_>,
    ) -> Result<()> {
        loops::reduce::reduce(kernel, compute, dims, dst.try_into()?, src.try_into()?)
    }

    fn accumulate(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        loops::accumulate::accumulate(dst.try_into()?, src.try_into()?)
    }

    fn gemm(&self, dst: Dst<'_>, a: Src<'_>, b: Src<'_>) -> Result<()> {
        dense::gemm(dst.try_into()?, a.try_into()?, b.try_into()?)
    }

    fn conv2d(&self, pass: ConvPass, params: &Conv2dParams, dst: Dst<'_>, srcs: &[Src<'_>]) -> Result<()> {
        let views = srcs.iter().map(|s| View::try_from(*s)).collect::<Result<Vec<_>>>()?;
        dense::conv2d(pass, params, dst.try_into()?, &views)
    }

    fn arg_reduce(
        &self,
        which: Extreme,
        dim: usize,
        index: Dst<'_>,
        value: Option<Dst<'_>>,
        src: Src<'_>,
    ) -> Result<()> {
        let value = value.map(View::try_from).transpose()?;
        loops::arg::arg_reduce(which, dim, index.try_into()?, value, src.try_into()?)
    }

    fn scan(&self, scan: Scan, dim: usize, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        loops::scan::scan(scan, dim, dst.try_into()?, src.try_into()?)
    }

    fn index(&self, pass: IndexPass, dim: usize, dst: Dst<'_>, x: Src<'_>, index: Src<'_>) -> Result<()> {
        loops::index::index(pass, dim, dst.try_into()?, x.try_into()?, index.try_into()?)
    }

    fn random(&self, dist: Distribution, stream: &Philox, dst: Dst<'_>) -> Result<()> {
        loops::random::random(dist, stream, dst.try_into()?)
    }

    fn pool2d(
        &self,
        pass: PoolPass,
        params: &Pool2dParams,
        dsts: &[Dst<'_>],
        srcs: &[Src<'_>],
    ) -> Result<()> {
        let dsts = dsts.iter().map(|d| View::try_from(*d)).collect::<Result<Vec<_>>>()?;
        let srcs = srcs.iter().map(|s| View::try_from(*s)).collect::<Result<Vec<_>>>()?;
        dense::pool2d(pass, params, &dsts, &srcs)
    }
}
