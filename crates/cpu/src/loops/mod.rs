//! Elementwise loops, copies, reductions and the like over any strides.

pub(crate) mod copy;
pub(crate) mod elem;
pub(crate) mod map;
pub(crate) mod nest;
pub(crate) mod reduce;
pub(crate) mod transpose;

use stridegrad_core::{DType, Dst, Error, ErrorKind, Layout, Result, Src};

use crate::team::Ptr;

/// Elements that a chunk of work has about. Chunks depend on shape and dtype alone.
pub(crate) const CHUNK: usize = 16 << 10;

/// The memory of an operand and how it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    ptr: Ptr<u8>,
    pub(crate) dtype: DType,
}

impl Raw {
    /// The address of the buffer, which the layout's indices count from.
    #[inline(always)]
    pub(crate) fn ptr(self) -> *mut u8 {
        self.ptr.get()
    }

    /// The address of element `index`.
    ///
    /// # Safety
    /// The element lies in the buffer.
    #[inline(always)]
    pub(crate) unsafe fn at<T>(self, index: isize) -> *mut T {
        // SAFETY: by the caller's promise.
        unsafe { self.ptr().cast::<T>().offset(index) }
    }
}

/// An operand in host memory.
pub(crate) trait Operand {
    fn raw(&self) -> Result<Raw>;
    fn sizes(&self) -> &[usize];
    fn shape(&self) -> &Layout;
}

macro_rules! operand {
    ($t:ty) => {
        impl Operand for $t {
            #[inline(always)]
            fn raw(&self) -> Result<Raw> {
                match self.buffer().host_ptr() {
                    Some(p) => Ok(Raw { ptr: Ptr::new(p), dtype: self.dtype() }),
                    None => Err(foreign()),
                }
            }
            #[inline(always)]
            fn sizes(&self) -> &[usize] {
                self.layout().sizes()
            }
            #[inline(always)]
            fn shape(&self) -> &Layout {
                self.layout()
            }
        }
    };
}
operand!(Src<'_>);
operand!(Dst<'_>);

#[cold]
fn foreign() -> Error {
    Error::new(ErrorKind::Device, "cpu", "an operand's buffer is not in host memory")
        .hint("move it with to(Device::cpu())")
}
