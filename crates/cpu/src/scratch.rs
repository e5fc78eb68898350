//! Working memory of the kernels: per-thread, 64-byte aligned, kept between calls.
//!
//! A buffer is zeroed when it is first allocated (so all of it is initialised) and holds leftovers of earlier calls
//! afterwards. Kernels bound what they ask for (a few MiB); each thread keeps a few buffers.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;

use stridegrad_core::{Error, ErrorKind, Result};

const ALIGN: usize = 64;
/// Readable bytes after the end, so that a full vector may be loaded at the last element.
const SLACK: usize = 256;
/// Buffers that a thread keeps, and the largest one kept.
const KEEP: usize = 6;
const KEEP_BYTES: usize = 32 << 20;

struct Buffer {
    ptr: NonNull<u8>,
    layout: Layout,
}

impl Buffer {
    fn new(bytes: usize) -> Result<Buffer> {
        let failed =
            || Error::new(ErrorKind::OutOfMemory, "scratch", format!("no {bytes} bytes of working memory"));
        // Powers of two, so that buffers of similar calls serve one another.
        let size = bytes.saturating_add(SLACK).checked_next_power_of_two().ok_or_else(failed)?.max(4096);
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| failed())?;
        // SAFETY: the layout has a non-zero size.
        let ptr = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        Ok(Buffer { ptr, layout })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) }
    }
}

thread_local! {
    static FREE: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with `len` elements of 64-byte aligned, initialised memory of arbitrary content; up to 256 bytes after
/// the end may be read. `T` must allow any bit pattern (the numeric types do). For a few MiB at most: aborts if the
/// system has not got them.
pub(crate) fn with_scratch<T: Copy, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> R {
    match try_with_scratch(len, f) {
        Ok(r) => r,
        Err(_) => handle_alloc_error(Layout::array::<T>(len).unwrap_or(Layout::new::<T>())),
    }
}

/// [`with_scratch`] for sizes that grow with an operand's. `OutOfMemory` if the system has not got them.
pub(crate) fn try_with_scratch<T: Copy, R>(len: usize, f: impl FnOnce(*mut T) -> R) -> Result<R> {
    let bytes = len.saturating_mul(size_of::<T>());
    let buffer = FREE
        .with_borrow_mut(|free| {
            let fits = |b: &Buffer| b.layout.size() >= bytes.saturating_add(SLACK);
            let best = (0..free.len()).filter(|&i| fits(&free[i])).min_by_key(|&i| free[i].layout.size());
            best.map(|i| free.swap_remove(i))
        })
        .map_or_else(|| Buffer::new(bytes), Ok)?;
    struct Return(Option<Buffer>);
    impl Drop for Return {
        fn drop(&mut self) {
            let Some(buffer) = self.0.take() else { return };
            if buffer.layout.size() > KEEP_BYTES {
                return;
            }
            // A thread that is ending has no list any more; the buffer is then freed.
            let _ = FREE.try_with(|free| {
                let mut free = free.borrow_mut();
                if free.len() >= KEEP {
                    let smallest = (0..free.len()).min_by_key(|&i| free[i].layout.size());
                    smallest.map(|i| free.swap_remove(i));
                }
                free.push(buffer);
            });
        }
    }
    let ptr = buffer.ptr.as_ptr().cast::<T>();
    let _return = Return(Some(buffer));
    Ok(f(ptr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_buffers_are_distinct_and_aligned() {
        with_scratch::<f32, _>(1000, |a| {
            with_scratch::<f32, _>(1000, |b| {
                assert_ne!(a, b);
                assert_eq!((a as usize % ALIGN, b as usize % ALIGN), (0, 0));
            });
        });
    }

    #[test]
    fn too_much_is_an_error() {
        for len in [1 << 44, usize::MAX / 8, usize::MAX] {
            let e = try_with_scratch::<f64, ()>(len, |_| ()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::OutOfMemory);
        }
    }

    #[test]
    fn survives_a_panic() {
        let caught = std::panic::catch_unwind(|| with_scratch::<f64, ()>(10, |_| panic!("on purpose")));
        assert!(caught.is_err());
        // SAFETY: ten elements were asked for and are initialised.
        let sum: f64 = with_scratch::<f64, _>(10, |p| (0..10).map(|i| unsafe { *p.add(i) }).sum());
        assert!(sum.is_finite());
    }
}
