//! The IDX format of the MNIST family: a magic number, big-endian sizes, big-endian values.
//!
//! ```text
//! 0x00 0x00 <type> <rank>   then rank x u32 sizes, then the values, row-major
//! ```
//!
//! Files may be plain or gzipped; the content decides, not the name. Nothing is allocated on a header's word
//! alone: the claimed size is held against the bytes that are there, and a compressed stream stops at it.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use stridegrad_core::{DType, Element, Error, ErrorKind, MAX_RANK, Result, bail};

const OP: &str = "idx";
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// What a byte of DEFLATE can expand to at most (258 bytes of output for a two-bit match, and then some).
const DEFLATE_MAX_RATIO: u64 = 1032;
/// Room made before the first value has been read, where the size of the input is not known.
const FIRST_RESERVE: usize = 1 << 20;

/// The content of an IDX file: dtype, sizes and row-major values.
#[derive(Clone, PartialEq, Eq)]
pub struct Idx {
    dtype: DType,
    sizes: Vec<usize>,
    // Little-endian, whatever the machine: `Element::read_le` reads it.
    bytes: Vec<u8>,
}

struct Header {
    dtype: DType,
    sizes: Vec<usize>,
    payload: usize,
}

impl Idx {
    /// Reads the file at `path`, plain or gzipped.
    ///
    /// # Errors
    /// `Io` where it cannot be read; `Format` for anything that is not exactly one IDX array.
    pub fn open(path: impl AsRef<Path>) -> Result<Idx> {
        let path = path.as_ref();
        let named =
            |e: Error| Error::new(e.kind(), OP, format!("{}: not an IDX file", path.display())).because(e);
        let io = |e: std::io::Error| {
            Error::new(ErrorKind::Io, OP, format!("{}: cannot be read", path.display())).because(e)
        };
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        let length = meta.is_file().then_some(meta.len());
        Idx::from_buffered(BufReader::with_capacity(1 << 16, file), length).map_err(named)
    }

    /// Reads an array from bytes in memory, plain or gzipped.
    ///
    /// ```
    /// use stridegrad_data::Idx;
    /// let idx = Idx::parse(&[0, 0, 0x08, 1, 0, 0, 0, 3, 7, 8, 9])?;
    /// assert_eq!(idx.sizes(), [3]);
    /// assert_eq!(idx.to_vec::<u8>()?, [7, 8, 9]);
    /// # Ok::<(), stridegrad_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Format` for anything that is not exactly one IDX array.
    pub fn parse(bytes: &[u8]) -> Result<Idx> {
        Idx::from_buffered(Cursor::new(bytes), Some(bytes.len() as u64))
    }

    /// Reads an array from a stream up to its end, plain or gzipped.
    ///
    /// # Errors
    /// `Io` where it cannot be read; `Format` for anything that is not exactly one IDX array.
    pub fn read(stream: impl Read) -> Result<Idx> {
        Idx::from_buffered(BufReader::new(stream), None)
    }

    fn from_buffered(mut input: impl BufRead, length: Option<u64>) -> Result<Idx> {
        // Two bytes tell gzip from IDX, which starts with two zeros. `fill_buf` may hold a single byte of a
        // slow stream: the first byte decides just as well.
        let head = input.fill_buf().map_err(read_failed)?;
        if head.first() == Some(&GZIP_MAGIC[0]) {
            let most = length.map(|n| n.saturating_mul(DEFLATE_MAX_RATIO));
            decode(MultiGzDecoder::new(input), Bound::AtMost(most))
        } else {
            decode(input, length.map_or(Bound::AtMost(None), Bound::Exactly))
        }
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The number of values.
    pub fn numel(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// The values, row-major.
    ///
    /// # Errors
    /// `DType` unless `T` is the file's dtype.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            bail!(DType, OP, "the file holds {}, not {}", self.dtype, T::DTYPE);
        }
        Ok(self.bytes.chunks_exact(self.dtype.size()).map(T::read_le).collect())
    }

    /// The values of a u8 file, row-major, as they lie.
    ///
    /// # Errors
    /// `DType` unless the file holds u8.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        if self.dtype != DType::U8 {
            bail!(DType, OP, "the file holds {}, not u8", self.dtype);
        }
        Ok(self.bytes)
    }
}

impl std::fmt::Debug for Idx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Idx({}, {:?})", self.dtype, self.sizes)
    }
}

/// What is known of the size of the decoded stream.
enum Bound {
    Exactly(u64),
    AtMost(Option<u64>),
}

fn decode(mut input: impl Read, bound: Bound) -> Result<Idx> {
    let (header, header_len) = read_header(&mut input)?;
    let claimed = header.payload as u64;
    let claim = || format!("sizes {:?} of {} take {claimed} bytes", header.sizes, header.dtype);
    match bound {
        Bound::Exactly(n) if n.saturating_sub(header_len) < claimed => {
            bail!(Format, OP, "truncated: {}, {} are there", claim(), n.saturating_sub(header_len))
        }
        Bound::Exactly(n) if n.saturating_sub(header_len) > claimed => {
            bail!(Format, OP, "{} bytes follow the values", n - header_len - claimed)
        }
        Bound::AtMost(Some(n)) if n < claimed => {
            bail!(Format, OP, "truncated: {}, more than the compressed stream can hold", claim())
        }
        _ => {}
    }
    let mut bytes = Vec::new();
    let known = matches!(bound, Bound::Exactly(_));
    let reserve = if known { header.payload } else { header.payload.min(FIRST_RESERVE) };
    bytes
        .try_reserve_exact(reserve)
        .map_err(|e| Error::new(ErrorKind::OutOfMemory, OP, format!("no memory: {}", claim())).because(e))?;
    // One byte more than claimed is asked for: it tells the end from a tail, and lets gzip check its sum.
    input.take(claimed + 1).read_to_end(&mut bytes).map_err(read_failed)?;
    if bytes.len() < header.payload {
        bail!(Format, OP, "truncated: {}, {} are there", claim(), bytes.len());
    }
    if bytes.len() > header.payload {
        bail!(Format, OP, "bytes follow the values");
    }
    if header.dtype.size() > 1 {
        bytes.chunks_exact_mut(header.dtype.size()).for_each(<[u8]>::reverse);
    }
    Ok(Idx { dtype: header.dtype, sizes: header.sizes, bytes })
}

fn read_header(input: &mut impl Read) -> Result<(Header, u64)> {
    let magic: [u8; 4] = read_array(input, "the magic number")?;
    let [0, 0, code, rank] = magic else {
        bail!(Format, OP, "wrong magic {:02x?}: an IDX file starts with two zero bytes", magic)
    };
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        _ => bail!(Format, OP, "unknown type code 0x{code:02x}"),
    };
    let rank = usize::from(rank);
    if rank == 0 || rank > MAX_RANK {
        bail!(Format, OP, "rank {rank} is outside 1..={MAX_RANK}");
    }
    let mut sizes = Vec::with_capacity(rank);
    for _ in 0..rank {
        sizes.push(u32::from_be_bytes(read_array(input, "the sizes")?) as usize);
    }
    // Every product is checked, so that a zero among the sizes hides no overflow elsewhere.
    let numel = sizes.iter().filter(|&&n| n != 0).try_fold(1usize, |a, &n| a.checked_mul(n));
    let payload = numel.and_then(|n| n.checked_mul(dtype.size())).filter(|&n| n <= isize::MAX as usize);
    let Some(payload) = payload else {
        bail!(Format, OP, "sizes {sizes:?} of {dtype} overflow");
    };
    let payload = if sizes.contains(&0) { 0 } else { payload };
    Ok((Header { dtype, sizes, payload }, 4 + 4 * rank as u64))
}

fn read_array<const N: usize>(input: &mut impl Read, what: &str) -> Result<[u8; N]> {
    let mut b = [0; N];
    input.read_exact(&mut b).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::new(ErrorKind::Format, OP, format!("truncated within {what}"))
        }
        _ => read_failed(e),
    })?;
    Ok(b)
}

/// A stream that breaks off or contradicts its checksum is malformed; the rest is the system's.
fn read_failed(e: std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    match e.kind() {
        K::UnexpectedEof | K::InvalidData | K::InvalidInput => {
            Error::new(ErrorKind::Format, OP, "the compressed stream is broken").because(e)
        }
        _ => Error::new(ErrorKind::Io, OP, "reading failed").because(e),
    }
}
