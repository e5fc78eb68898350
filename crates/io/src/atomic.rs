//! Replacing a file in one step: whoever looks sees the old content or the new, at whatever point writing stops.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use stridegrad_core::{Error, ErrorKind, Result};

const OP: &str = "save";

/// Writes the file at `path` by way of `content`, atomically and durably.
///
/// The content goes to a temporary file beside it (`.name.<process>-<number>.tmp`), is synced to the disk, and takes
/// the name by a rename, which is synced too. Where anything fails, the temporary file is removed and an old file
/// stays as it was. A process killed while writing leaves the temporary file behind, which may be deleted.
/// An old file's permissions are kept, and one that is read-only is refused; a symbolic link is followed.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("stridegrad-atomic-{}", std::process::id()));
/// stridegrad_io::write_atomically(&path, |out| Ok(out.write_all(b"new")?))?;
/// assert_eq!(std::fs::read(&path)?, b"new");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
///
/// # Errors
/// `Io` naming `path`, or what `content` returns.
pub fn write_atomically(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let io = |e| Error::new(ErrorKind::Io, OP, format!("{}: cannot be written", path.display())).because(e);
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok().map(|m| m.permissions());
    if old.as_ref().is_some_and(|p| p.readonly()) {
        let text = format!("{}: cannot be replaced, it is read-only", path.display());
        return Err(Error::new(ErrorKind::Io, OP, text));
    }
    let (temporary, file) = Temporary::beside(&target).map_err(io)?;
    if let Some(permissions) = old {
        file.set_permissions(permissions).map_err(io)?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    content(&mut out)?;
    let file = out.into_inner().map_err(|e| io(e.into_error()))?;
    file.sync_all().map_err(io)?;
    drop(file);
    temporary.rename(&target).map_err(io)?;
    sync_directory(&target).map_err(io)
}

/// A file that is removed when dropped, unless it has been renamed.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn rename(mut self, target: &Path) -> std::io::Result<()> {
        if let Some(path) = &self.0 {
            fs::rename(path, target)?;
        }
        self.0 = None;
        Ok(())
    }

    fn beside(target: &Path) -> std::io::Result<(Temporary, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!(".{name}.{}-{n}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((Temporary(Some(path)), file)),
                // Left by a killed process that had our number: the next name is free.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing can be done about a failure here, and the error that led here matters more.
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes a rename in the file's directory durable.
fn sync_directory(file: &Path) -> std::io::Result<()> {
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent).and_then(|d| d.sync_all()) {
        // Systems that do not open directories as files have no such call.
        Err(e) if cfg!(not(unix)) && e.kind() != std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
