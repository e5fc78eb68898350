//! Elementwise loops, copies, reductions and the like over any strides.

pub(crate) mod accumulate;
pub(crate) mod arg;
pub(crate) mod copy;
pub(crate) mod elem;
pub(crate) mod index;
pub(crate) mod map;
pub(crate) mod nest;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod transpose;

use stridegrad_core::{DType, Dims, Dst, Error, ErrorKind, Layout, Result, Src};

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
    /// Memory that is not a buffer's, such as scratch; elements count from `ptr`.
    pub(crate) fn new<T>(ptr: *mut T, dtype: DType) -> Raw {
        Raw { ptr: Ptr::new(ptr.cast()), dtype }
    }

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

/// An operand in host memory: every element that the layout reaches may be read, and written if it is a destination,
/// while the kernel call lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) raw: Raw,
    pub(crate) layout: &'a Layout,
}

impl View<'_> {
    #[inline(always)]
    pub(crate) fn sizes(&self) -> &[usize] {
        self.layout.sizes()
    }

    #[inline(always)]
    pub(crate) fn dtype(&self) -> DType {
        self.raw.dtype
    }

    /// Whether both lie in the same buffer.
    #[inline(always)]
    pub(crate) fn same_buffer(&self, other: &View<'_>) -> bool {
        self.raw.ptr() == other.raw.ptr()
    }
}

macro_rules! view_of {
    ($t:ty) => {
        impl<'a> TryFrom<$t> for View<'a> {
            type Error = Error;
            #[inline(always)]
            fn try_from(operand: $t) -> Result<View<'a>> {
                match operand.buffer().host_ptr() {
                    Some(p) => Ok(View { raw: Raw::new(p, operand.dtype()), layout: operand.layout() }),
                    None => Err(foreign()),
                }
            }
        }
    };
}
view_of!(Src<'a>);
view_of!(Dst<'a>);

#[cold]
fn foreign() -> Error {
    Error::new(ErrorKind::Device, "cpu", "an operand's buffer is not in host memory")
        .hint("move it with to(Device::cpu())")
}

/// A layout without one of its dims, at index 0 of it.
pub(crate) fn without_dim(layout: &Layout, dim: usize) -> Result<Layout> {
    let (mut sizes, mut strides) = (Dims::<usize>::new(), Dims::<isize>::new());
    for d in (0..layout.rank()).filter(|&d| d != dim) {
        sizes.push(layout.sizes()[d]);
        strides.push(layout.strides()[d]);
    }
    Layout::new(&sizes, &strides, layout.offset())
}
