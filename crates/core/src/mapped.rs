//! Read-only memory-mapped files, from which bytes are copied out.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use crate::{Error, ErrorKind, Result};

const OP: &str = "open";

/// A file mapped for reading: pages are read when they are first copied from, and the system may drop them.
///
/// Bytes are only ever copied out, never lent as a slice: whoever changes the file while it is mapped can make
/// values wrong, but no reference to memory that changes under it exists.
///
/// # Hazard
/// A file that another process truncates while it is mapped has no bytes behind its last pages, and touching
/// those ends this process (`SIGBUS`). Each copy asks for the file's present length first, which leaves a
/// window of microseconds. Files written by stridegrad are replaced by renaming and never truncated.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("stridegrad-mapped-{}", std::process::id()));
/// # std::fs::write(&dir, b"abcdef")?;
/// # let path = dir.clone();
/// let file = stridegrad_core::MappedFile::open(&path)?;
/// let mut two = [0; 2];
/// file.copy_to(3, &mut two)?;
/// assert_eq!((file.len(), &two), (6, b"de"));
/// # std::fs::remove_file(&dir)?;
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
pub struct MappedFile {
    map: MmapRaw,
    file: File,
}

impl MappedFile {
    /// Maps the regular file at `path`.
    ///
    /// # Errors
    /// `Io` where it cannot be opened or mapped, or is no regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<MappedFile> {
        let path = path.as_ref();
        let failed =
            |e| Error::new(ErrorKind::Io, OP, format!("{}: cannot be read", path.display())).because(e);
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::new(ErrorKind::Io, OP, format!("{}: not a regular file", path.display())));
        }
        let map = MmapOptions::new().map_raw_read_only(&file).map_err(failed)?;
        Ok(MappedFile { map, file })
    }

    /// The length when it was mapped, in bytes.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether the file was empty when it was mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes from `offset` on into the whole of `to`.
    ///
    /// # Errors
    /// `Index` where they reach beyond the mapped length; `Io` where the file has been truncated since.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(to.len()).filter(|&end| end <= self.len()).ok_or_else(|| {
            let text = format!("bytes {offset}..+{} of a file of {}", to.len(), self.len());
            Error::new(ErrorKind::Index, OP, text)
        })?;
        if self.file.metadata()?.len() < end as u64 {
            return Err(Error::new(ErrorKind::Io, OP, "the file was truncated while it was being read"));
        }
        // SAFETY: `offset..end` lies inside the mapping (checked above), which lives as long as `self`; `to` is
        // exclusively borrowed, and cannot overlap the mapping, of which no slice is ever handed out.
        unsafe {
            let from = self.map.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        }
        Ok(())
    }
}

impl std::fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MappedFile({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("stridegrad-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn copies_any_range_and_refuses_beyond() {
        let path = temporary("range", b"0123456789");
        let f = MappedFile::open(&path).unwrap();
        let mut all = [0; 10];
        f.copy_to(0, &mut all).unwrap();
        assert_eq!(&all, b"0123456789");
        f.copy_to(10, &mut []).unwrap();
        for (offset, len) in [(10, 1), (0, 11), (11, 0), (usize::MAX, 2)] {
            let e = f.copy_to(offset, &mut vec![0; len]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Index, "{offset}+{len}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn truncation_is_an_error() {
        let path = temporary("cut", &[7; 10_000]);
        let f = MappedFile::open(&path).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(f.copy_to(9_000, &mut [0; 8]).unwrap_err().kind(), ErrorKind::Io);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn empty_missing_and_directories() {
        let path = temporary("empty", b"");
        assert!(MappedFile::open(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(MappedFile::open(&path).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(MappedFile::open(std::env::temp_dir()).unwrap_err().kind(), ErrorKind::Io);
    }
}
