//! The strided n-d array without gradients: storage + layout + dtype.

use crate::buffer::Init;
use crate::storage::Storage;
use crate::{DType, Device, Element, Error, ErrorKind, Layout, Result, backend, bail, exec};

/// A strided n-d array: a window, given by a [`Layout`], on a shared [`Storage`].
///
/// Every index that the layout reaches lies inside the storage: checked whenever an array is made.
#[derive(Clone, Debug)]
pub struct Array {
    storage: Storage,
    layout: Layout,
    dtype: DType,
}

impl Array {
    /// Elements of `dtype` that fit the storage behind this array.
    fn capacity(&self) -> usize {
        self.storage.bytes() / self.dtype.size()
    }

    /// Memory that will be written in full by the caller, before anyone else can see it.
    pub(crate) fn uninit(layout: Layout, dtype: DType, device: Device) -> Result<Array> {
        Array::allocate(layout, dtype, device, Init::Uninit)
    }

    /// Zeros of the given (fresh, dense) layout.
    pub fn zeros(layout: Layout, dtype: DType, device: Device) -> Result<Array> {
        Array::allocate(layout, dtype, device, Init::Zeroed)
    }

    fn allocate(layout: Layout, dtype: DType, device: Device, init: Init) -> Result<Array> {
        let elements = layout.span().map_or(0, |(_, hi)| hi + 1);
        let bytes = elements.checked_mul(dtype.size()).filter(|&b| b <= isize::MAX as usize);
        let Some(bytes) = bytes else {
            bail!(Overflow, "allocate", "sizes {:?} of {dtype} overflow the address space", layout.sizes());
        };
        Ok(Array { storage: Storage::allocate(device, bytes, init)?, layout, dtype })
    }

    /// The values of a slice, row-major.
    pub fn from_slice<T: Element>(data: &[T], sizes: &[usize], device: Device) -> Result<Array> {
        let layout = Layout::contiguous(sizes)?;
        if layout.numel() != data.len() {
            bail!(
                Shape,
                "from_slice",
                "{} values do not fill sizes {sizes:?} ({} elements)",
                data.len(),
                layout.numel()
            );
        }
        let array = Array::uninit(layout, T::DTYPE, device)?;
        backend::of(device)?.write(&array.storage.inner().buffer, 0, bytes_of(data))?;
        Ok(array)
    }

    /// Little-endian bytes of row-major values.
    pub fn from_le_bytes(bytes: &[u8], dtype: DType, sizes: &[usize], device: Device) -> Result<Array> {
        let layout = Layout::contiguous(sizes)?;
        let want = layout.numel().checked_mul(dtype.size());
        if want != Some(bytes.len()) {
            bail!(Shape, "from_le_bytes", "{} bytes do not fill sizes {sizes:?} of {dtype}", bytes.len());
        }
        let array = Array::uninit(layout, dtype, device)?;
        let buffer = &array.storage.inner().buffer;
        let backend = backend::of(device)?;
        if dtype == DType::Bool {
            let normal: Vec<u8> = bytes.iter().map(|&b| (b != 0) as u8).collect();
            backend.write(buffer, 0, &normal)?;
        } else if cfg!(target_endian = "little") {
            backend.write(buffer, 0, bytes)?;
        } else {
            let swapped: Vec<u8> = bytes.chunks(dtype.size()).flat_map(|c| c.iter().rev().copied()).collect();
            backend.write(buffer, 0, &swapped)?;
        }
        Ok(array)
    }

    /// Sizes, strides and offset.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The size of each dim.
    pub fn sizes(&self) -> &[usize] {
        self.layout.sizes()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// The shared memory.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The storage's version.
    pub fn version(&self) -> u64 {
        self.storage.version()
    }

    /// Another window on the same storage. Refused if the layout reaches outside it.
    pub fn with_layout(&self, layout: Layout) -> Result<Array> {
        if !layout.fits(self.capacity()) {
            let (_, hi) = layout.span().unwrap_or((0, 0));
            return Err(Error::new(
                ErrorKind::Index,
                "as_strided",
                format!(
                    "sizes {:?}, strides {:?}, offset {} of {} ({} bytes each) need {} bytes, but the storage has {}",
                    layout.sizes(),
                    layout.strides(),
                    layout.offset(),
                    self.dtype,
                    self.dtype.size(),
                    (hi as u128 + 1) * self.dtype.size() as u128,
                    self.storage.bytes()
                ),
            ));
        }
        Ok(Array { storage: self.storage.clone(), layout, dtype: self.dtype })
    }

    /// The same bytes read as another dtype, by PyTorch's rules for `view(dtype)`.
    pub fn bitcast(&self, dtype: DType) -> Result<Array> {
        let layout = self.layout.bitcast(self.dtype.size(), dtype.size())?;
        let cast = Array { storage: self.storage.clone(), layout: self.layout, dtype };
        cast.with_layout(layout)
    }

    /// The values, in row-major order.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::new(
                ErrorKind::DType,
                "to_vec",
                format!("a tensor of {} cannot be read as {}", self.dtype, T::DTYPE),
            )
            .hint("convert it first with to_dtype()"));
        }
        let bytes = self.to_ne_bytes()?;
        let mut out = vec![T::default(); self.layout.numel()];
        for (v, b) in out.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
            *v = read_ne(b);
        }
        Ok(out)
    }

    /// The values as little-endian bytes, in row-major order; a `bool` is 0 or 1.
    pub fn to_le_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = self.to_ne_bytes()?;
        if self.dtype == DType::Bool {
            bytes.iter_mut().for_each(|b| *b = (*b != 0) as u8);
        } else if cfg!(target_endian = "big") {
            bytes.chunks_mut(self.dtype.size()).for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    fn to_ne_bytes(&self) -> Result<Vec<u8>> {
        if self.layout.numel() == 0 {
            return Ok(Vec::new());
        }
        // Reading back is what the user asked for: the staging copy is not a hidden one.
        let dense = if self.layout.is_contiguous() {
            self.clone()
        } else {
            exec::copy_to(self, Layout::contiguous(self.sizes())?, self.dtype)?
        };
        let mut bytes = vec![0u8; self.layout.numel() * self.dtype.size()];
        exec::read_bytes(&dense, dense.layout.offset() * self.dtype.size(), &mut bytes)?;
        Ok(bytes)
    }
}

fn read_ne<T: Element>(b: &[u8]) -> T {
    if cfg!(target_endian = "little") {
        T::read_le(b)
    } else {
        let mut r = [0u8; 8];
        for (d, s) in r.iter_mut().zip(b.iter().rev()) {
            *d = *s;
        }
        T::read_le(&r[..b.len()])
    }
}

fn bytes_of<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: `Element` is sealed: its types are plain numbers and `bool`, without padding, so each of their
    // bytes is initialised; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}
