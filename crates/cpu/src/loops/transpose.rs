//! Transposing rectangles.

/// `dst[r * dst_stride + c] = src[c * src_stride + r]` for `rows` times `cols` elements, in blocks.
///
/// # Safety
/// All of these elements lie in memory that may be written and read, and the two sides do not overlap.
pub(crate) unsafe fn transpose<T: Copy + 'static>(
    dst: *mut T,
    dst_stride: isize,
    src: *const T,
    src_stride: isize,
    rows: usize,
    cols: usize,
) {
    const BLOCK: usize = 16;
    for r0 in (0..rows).step_by(BLOCK) {
        for c0 in (0..cols).step_by(BLOCK) {
            for r in r0..rows.min(r0 + BLOCK) {
                for c in c0..cols.min(c0 + BLOCK) {
                    // SAFETY: by the caller's promise.
                    unsafe {
                        *dst.offset(r as isize * dst_stride + c as isize) =
                            *src.offset(c as isize * src_stride + r as isize);
                    }
                }
            }
        }
    }
}
