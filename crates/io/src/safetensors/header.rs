//! The header, held against every rule of the format before a byte of data is looked at.
//!
//! Source of the rules: the "Format" section of the safetensors README. Where the reference reader is laxer than
//! that text (duplicate keys, white space around the JSON), the text wins.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde_core::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use stridegrad_core::{Error, ErrorKind, Result, bail};

use super::{FileDType, METADATA_KEY, OP};

/// The largest header that is read: a limit of the format, so that a length field cannot ask for the moon.
pub const MAX_HEADER: usize = 100_000_000;

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key in the header.
    pub name: String,
    /// Its dtype.
    pub dtype: FileDType,
    /// Its sizes; empty for a scalar.
    pub shape: Vec<usize>,
    /// Where its row-major little-endian values lie, in bytes from the start of the file.
    pub range: Range<usize>,
}

/// A validated header: tensors in the order of their data, and the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tensors; together they cover the data area exactly.
    pub entries: Vec<Entry>,
    /// `__metadata__`, empty where the file has none.
    pub metadata: BTreeMap<String, String>,
}

impl Header {
    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }
}

/// Validates a whole file and returns its header.
///
/// ```
/// let mut file = 8u64.to_le_bytes().to_vec();
/// file.extend(b"{}      ");
/// assert!(stridegrad_io::safetensors::parse(&file)?.entries.is_empty());
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
///
/// # Errors
/// `Format`, naming the rule that is broken and the tensor that breaks it.
pub fn parse(bytes: &[u8]) -> Result<Header> {
    let prefix = bytes.first_chunk::<8>().copied();
    let json = header_range(prefix, bytes.len())?;
    let start = json.end;
    parse_json(&bytes[json], start, bytes.len())
}

/// Where the JSON lies, from the first eight bytes (`None` where there are fewer) and the file's length.
pub(super) fn header_range(prefix: Option<[u8; 8]>, file_len: usize) -> Result<Range<usize>> {
    let Some(prefix) = prefix else {
        bail!(Format, OP, "header too small: {file_len} bytes, where 8 hold the header's length")
    };
    let n = u64::from_le_bytes(prefix);
    if n > MAX_HEADER as u64 {
        bail!(Format, OP, "header too large: {n} bytes, where the format allows {MAX_HEADER}");
    }
    let n = n as usize; // at most MAX_HEADER
    if n > file_len - 8 {
        bail!(Format, OP, "invalid header length: {n} bytes, where {} follow", file_len - 8);
    }
    Ok(8..8 + n)
}

/// Validates the header's JSON against the data area, which reaches from `start` to `file_len`.
pub(super) fn parse_json(json: &[u8], start: usize, file_len: usize) -> Result<Header> {
    let text = std::str::from_utf8(json)
        .map_err(|e| Error::new(ErrorKind::Format, OP, "the header is not UTF-8").because(e))?;
    if !text.starts_with('{') {
        bail!(Format, OP, "the header does not begin with '{{'");
    }
    let text = text.trim_end_matches(' ');
    if !text.ends_with('}') {
        bail!(Format, OP, "the header does not end with '}}' and spaces");
    }
    let raw: RawHeader = serde_json::from_str(text)
        .map_err(|e| Error::new(ErrorKind::Format, OP, "the header is malformed").because(e))?;
    tile(raw, start, file_len)
}

/// Sorted by their offsets the tensors must cover the data area: no hole, no overlap, nothing before or after.
fn tile(mut raw: RawHeader, start: usize, file_len: usize) -> Result<Header> {
    let data_len = file_len - start;
    raw.tensors.sort_by_key(|(_, t)| t.data_offsets);
    let mut at = 0usize;
    let mut entries = Vec::with_capacity(raw.tensors.len());
    for (name, t) in raw.tensors {
        let (begin, end) = t.data_offsets;
        let Some(size) = t.dtype.bytes(&t.shape) else {
            bail!(
                Format,
                OP,
                "{name:?}: shape {:?} of {} is no whole number of bytes, or overflows",
                t.shape,
                t.dtype
            )
        };
        if begin != at as u64 {
            let what = if begin > at as u64 { "a hole before" } else { "an overlap at" };
            bail!(Format, OP, "{name:?}: invalid offset {begin}, {what} it: the data so far end at {at}");
        }
        if end.checked_sub(begin) != Some(size as u64) {
            bail!(
                Format,
                OP,
                "{name:?}: offsets {begin}..{end}, where shape {:?} of {} takes {size}",
                t.shape,
                t.dtype
            );
        }
        let Some(next) = at.checked_add(size).filter(|&next| next <= data_len) else {
            bail!(
                Format,
                OP,
                "{name:?}: offsets {begin}..{end} reach beyond the file: data short, {data_len} bytes"
            )
        };
        entries.push(Entry { name, dtype: t.dtype, shape: t.shape, range: start + at..start + next });
        at = next;
    }
    if at != data_len {
        bail!(Format, OP, "file not fully covered: {} trailing bytes after the last tensor", data_len - at);
    }
    Ok(Header { entries, metadata: raw.metadata })
}

struct RawHeader {
    tensors: Vec<(String, RawEntry)>,
    metadata: BTreeMap<String, String>,
}

struct RawEntry {
    dtype: FileDType,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

struct Object<T>(std::marker::PhantomData<T>);

/// What is read from a JSON object key by key; duplicates are refused, which the format asks for.
trait FromMap: Sized {
    const EXPECTED: &'static str;
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de, T: FromMap> Visitor<'de> for Object<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }
}

macro_rules! deserialize_from_map {
    ($($t:ty),*) => {$(
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_map(Object(std::marker::PhantomData))
            }
        }
    )*};
}
deserialize_from_map!(RawHeader, RawEntry, Metadata);

impl FromMap for RawHeader {
    const EXPECTED: &'static str = "an object of tensors";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        let mut header = RawHeader { tensors: Vec::new(), metadata: BTreeMap::new() };
        while let Some(name) = map.next_key::<String>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format!("duplicate key {name:?}")));
            }
            if name == METADATA_KEY {
                // `null` stands for no metadata, as the reference reader has it.
                header.metadata = map.next_value::<Option<Metadata>>()?.map_or_else(BTreeMap::new, |m| m.0);
            } else {
                let entry = map.next_value().map_err(|e| A::Error::custom(format!("{name:?}: {e}")))?;
                header.tensors.push((name, entry));
            }
        }
        Ok(header)
    }
}

struct Metadata(BTreeMap<String, String>);

impl FromMap for Metadata {
    const EXPECTED: &'static str = "metadata, an object of strings";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut metadata = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            if metadata.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate metadata key {key:?}")));
            }
            metadata.insert(key, value);
        }
        Ok(Metadata(metadata))
    }
}

impl FromMap for RawEntry {
    const EXPECTED: &'static str = "an object with dtype, shape and data_offsets";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut dtype, mut shape, mut data_offsets) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let again = match key.as_str() {
                "dtype" => dtype.replace(map.next_value::<FileDType>()?).is_some(),
                "shape" => shape.replace(map.next_value()?).is_some(),
                "data_offsets" => data_offsets.replace(map.next_value()?).is_some(),
                _ => {
                    map.next_value::<IgnoredAny>()?; // fields of later versions
                    false
                }
            };
            if again {
                return Err(A::Error::custom(format!("duplicate field {key:?}")));
            }
        }
        let missing = |field| move || A::Error::missing_field(field);
        Ok(RawEntry {
            dtype: dtype.ok_or_else(missing("dtype"))?,
            shape: shape.ok_or_else(missing("shape"))?,
            data_offsets: data_offsets.ok_or_else(missing("data_offsets"))?,
        })
    }
}

impl<'de> Deserialize<'de> for FileDType {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        FileDType::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown dtype {name:?}")))
    }
}
