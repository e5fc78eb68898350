//! Writing: tensors ordered and the header padded as the format's reference writer does.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use serde_json::json;
use stridegrad_core::{Error, ErrorKind, Result, bail};

use super::{FileDType, MAX_HEADER, METADATA_KEY, OP};

/// Name, dtype and shape of a tensor to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its key in the header.
    pub name: String,
    /// Its dtype.
    pub dtype: FileDType,
    /// Its sizes.
    pub shape: Vec<usize>,
}

/// Writes a file to `out`. `data(i, bytes)` appends the row-major little-endian values of `specs[i]` to the empty
/// `bytes`: one tensor's bytes are in memory at a time.
///
/// Tensors go by element size, largest first, then by name; the header is padded with spaces to a multiple of 8.
/// So every tensor is aligned to its element size.
///
/// # Errors
/// `StateDict` for a name twice or reserved; `Format` where `data` gives a wrong number of bytes or the header
/// exceeds the format's limit; `Io` from `out`; whatever `data` returns.
pub fn write(
    out: &mut dyn Write,
    specs: &[Spec],
    metadata: &BTreeMap<String, String>,
    data: &mut dyn FnMut(usize, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let order = order(specs)?;
    let (header, sizes) = header(specs, &order, metadata)?;
    let io = |e: std::io::Error| Error::new(ErrorKind::Io, OP, "writing failed").because(e);
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(header.as_bytes()).map_err(io)?;
    let mut bytes = Vec::new();
    for (&i, &size) in order.iter().zip(&sizes) {
        bytes.clear();
        data(i, &mut bytes)?;
        if bytes.len() != size {
            bail!(Format, OP, "{:?}: {} bytes given, its shape takes {size}", specs[i].name, bytes.len());
        }
        out.write_all(&bytes).map_err(io)?;
    }
    Ok(())
}

/// The order in the file, as indices into `specs`.
fn order(specs: &[Spec]) -> Result<Vec<usize>> {
    let mut names = HashSet::new();
    for spec in specs {
        if spec.name == METADATA_KEY {
            bail!(StateDict, OP, "a tensor cannot be called {METADATA_KEY}: the format reserves that key");
        }
        if !names.insert(&spec.name) {
            bail!(StateDict, OP, "two tensors are called {:?}", spec.name);
        }
    }
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&specs[a], &specs[b]);
        b.dtype.bits().cmp(&a.dtype.bits()).then_with(|| a.name.cmp(&b.name))
    });
    Ok(order)
}

/// The padded header, and the bytes each tensor takes, in file order.
fn header(
    specs: &[Spec],
    order: &[usize],
    metadata: &BTreeMap<String, String>,
) -> Result<(String, Vec<usize>)> {
    // By hand, since a JSON map sorts its keys: names go in the order of the data, fields in the usual one.
    let mut fields = Vec::with_capacity(specs.len() + 1);
    if !metadata.is_empty() {
        fields.push(format!("\"{METADATA_KEY}\":{}", json!(metadata)));
    }
    let (mut at, mut sizes) = (0usize, Vec::with_capacity(specs.len()));
    for &i in order {
        let Spec { name, dtype, shape } = &specs[i];
        let size = dtype.bytes(shape);
        let Some((size, end)) = size.and_then(|size| Some((size, at.checked_add(size)?))) else {
            bail!(
                Overflow,
                OP,
                "{name:?}: shape {shape:?} of {dtype} has no whole number of bytes, or overflows"
            )
        };
        fields.push(format!(
            r#"{}:{{"dtype":"{dtype}","shape":{},"data_offsets":[{at},{end}]}}"#,
            json!(name),
            json!(shape)
        ));
        sizes.push(size);
        at = end;
    }
    let mut text = format!("{{{}", fields.join(","));
    text.push('}');
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    if text.len() > MAX_HEADER {
        bail!(Format, OP, "header too large: {} bytes, where the format allows {MAX_HEADER}", text.len());
    }
    Ok((text, sizes))
}
