//! An open file: its header, and its tensors' bytes on demand.

use std::path::{Path, PathBuf};

use stridegrad_core::{Error, ErrorKind, MappedFile, Result, bail};

use super::header::{header_range, parse_json};
use super::{Entry, FileDType, Header, OP};

enum Source {
    Mapped(MappedFile),
    Memory(Vec<u8>),
}

/// A validated safetensors file, memory-mapped: a tensor's bytes are read when they are asked for.
///
/// # Hazard
/// Another process that truncates the file while it is open can end this one: see [`MappedFile`]. The header is
/// copied out before it is validated, so that no later change to the file undoes the validation.
pub struct SafeTensors {
    source: Source,
    header: Header,
    path: Option<PathBuf>,
}

impl SafeTensors {
    /// Maps and validates the file at `path`.
    ///
    /// # Errors
    /// `Io` where it cannot be read, `Format` where it is not a valid file; both name `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors> {
        let path = path.as_ref();
        let map = MappedFile::open(path)?;
        let header = read_header(&map).map_err(|e| {
            Error::new(e.kind(), OP, format!("{}: not a valid file", path.display())).because(e)
        })?;
        Ok(SafeTensors { source: Source::Mapped(map), header, path: Some(path.to_owned()) })
    }

    /// Validates a file that lies in memory.
    ///
    /// # Errors
    /// `Format` where it is not a valid file.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<SafeTensors> {
        let header = super::parse(&bytes)?;
        Ok(SafeTensors { source: Source::Memory(bytes), header, path: None })
    }

    /// Tensors and metadata.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// A copy of the values of the tensor called `name`: row-major, little-endian.
    ///
    /// # Errors
    /// `StateDict` where there is no such tensor; `Format` where it is a BOOL with a byte other than 0 and 1;
    /// `Io` where the file has changed; `OutOfMemory`.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        match self.header.get(name) {
            Some(entry) => self.entry_bytes(entry),
            None => bail!(StateDict, OP, "{}: there is no tensor {name:?}", self.origin()),
        }
    }

    /// [`bytes`](SafeTensors::bytes) of one of this file's entries.
    pub(crate) fn entry_bytes(&self, entry: &Entry) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(entry.range.len()).map_err(no_memory)?;
        match &self.source {
            Source::Memory(all) => bytes.extend_from_slice(&all[entry.range.clone()]),
            Source::Mapped(map) => {
                bytes.resize(entry.range.len(), 0);
                map.copy_to(entry.range.start, &mut bytes)?;
            }
        }
        if entry.dtype == FileDType::Bool
            && let Some(at) = bytes.iter().position(|&b| b > 1)
        {
            bail!(Format, OP, "{:?}: BOOL byte {} at {at}, neither 0 nor 1", entry.name, bytes[at]);
        }
        Ok(bytes)
    }

    fn origin(&self) -> String {
        self.path.as_ref().map_or("the file in memory".into(), |p| p.display().to_string())
    }
}

/// Copies the header out of the map and validates the copy.
fn read_header(map: &MappedFile) -> Result<Header> {
    let mut prefix = [0; 8];
    let have = map.len() >= prefix.len();
    if have {
        map.copy_to(0, &mut prefix)?;
    }
    let range = header_range(have.then_some(prefix), map.len())?;
    let mut json = Vec::new();
    json.try_reserve_exact(range.len()).map_err(no_memory)?;
    json.resize(range.len(), 0);
    map.copy_to(range.start, &mut json)?;
    parse_json(&json, range.end, map.len())
}

fn no_memory(e: std::collections::TryReserveError) -> Error {
    Error::new(ErrorKind::OutOfMemory, OP, "no memory for the file's content").because(e)
}

impl std::fmt::Debug for SafeTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SafeTensors({}, {} tensors)", self.origin(), self.header.entries.len())
    }
}
