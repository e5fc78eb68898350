//! State dicts as safetensors files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{Error, ErrorKind, MemoryFormat, Result, bail};
use stridegrad_nn::{LoadReport, Module, StateDict};

use crate::atomic::write_atomically;
use crate::checkpoint::weights;
use crate::safetensors::{Entry, FileDType, SafeTensors, Spec, write};

const OP: &str = "load";
/// Metadata: the order of memory of tensors that are not row-major, as JSON. Values are row-major in the file.
const LAYOUTS: &str = "stridegrad.layouts";
const CHANNELS_LAST: &str = "channels_last";

/// A file's tensors and its metadata.
#[derive(Clone, Debug, Default)]
pub struct StateFile {
    /// The tensors, in the order of the file.
    pub state: StateDict,
    /// The metadata, less what describes layouts.
    pub metadata: BTreeMap<String, String>,
}

/// Writes tensors to a safetensors file, atomically; any reader of the format opens it.
///
/// The order of memory of tensors that are dense but not row-major, channels-last ones among them, is noted in the
/// metadata, and [`load_state`] restores it.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_io::{load_state, save_state};
/// # let path = std::env::temp_dir().join(format!("stridegrad-state-{}", std::process::id()));
/// let t = Tensor::arange(6.0).view([2, 3]).t();
/// save_state(&path, &[("t", t.clone())].into_iter().collect())?;
/// let read = load_state(&path)?;
/// let u = read.get("t").unwrap();
/// assert_eq!((u.strides(), u.to_vec::<f32>()), (t.strides(), t.to_vec::<f32>()));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
///
/// # Errors
/// `Io` where the file cannot be written; `StateDict` for a name twice. An old file stays as it was then.
pub fn save_state(path: impl AsRef<Path>, state: &StateDict) -> Result<()> {
    save_state_with(path, state, BTreeMap::from([("format".to_owned(), "pt".to_owned())]))
}

/// [`save_state`] with metadata of the caller's.
///
/// # Errors
/// As [`save_state`].
pub fn save_state_with(
    path: impl AsRef<Path>,
    state: &StateDict,
    mut metadata: BTreeMap<String, String>,
) -> Result<()> {
    let spec = |(name, t): (&str, &Tensor)| {
        let (name, dtype, shape) = (name.to_owned(), FileDType::try_from(t.dtype())?, t.sizes().to_vec());
        Ok(Spec { name, dtype, shape })
    };
    let specs = state.iter().map(spec).collect::<Result<Vec<_>>>()?;
    let layouts: serde_json::Map<_, _> =
        state.iter().filter_map(|(name, t)| Some((name.to_owned(), memory_order(t)?))).collect();
    if !layouts.is_empty() {
        metadata.insert(LAYOUTS.to_owned(), Value::Object(layouts).to_string());
    }
    let tensors: Vec<&Tensor> = state.iter().map(|(_, t)| t).collect();
    write_atomically(path, |out| {
        write(out, &specs, &metadata, &mut |i, bytes| {
            bytes.append(&mut tensors[i].try_to_le_bytes()?);
            Ok(())
        })
    })
}

/// Reads all tensors of a safetensors file, from us or from elsewhere, to the CPU.
///
/// # Errors
/// `Io` where it cannot be read; `Format` where it is not a valid file; `Unsupported` for dtypes that tensors do not
/// have.
pub fn load_state(path: impl AsRef<Path>) -> Result<StateDict> {
    Ok(load_state_file(path)?.state)
}

/// [`load_state`] with the metadata.
///
/// # Errors
/// As [`load_state`].
pub fn load_state_file(path: impl AsRef<Path>) -> Result<StateFile> {
    StateFile::read(&SafeTensors::open(path)?)
}

impl StateFile {
    /// The tensors and metadata of an open file.
    ///
    /// # Errors
    /// As [`load_state`].
    pub fn read(file: &SafeTensors) -> Result<StateFile> {
        let mut metadata = file.header().metadata.clone();
        let layouts = match metadata.remove(LAYOUTS) {
            None => serde_json::Map::new(),
            Some(text) => serde_json::from_str(&text).map_err(|e| {
                Error::new(ErrorKind::Format, OP, format!("malformed metadata {LAYOUTS:?}")).because(e)
            })?,
        };
        let mut state = StateDict::new();
        for entry in &file.header().entries {
            let t = tensor(entry, file.entry_bytes(entry)?)?;
            let t = match layouts.get(&entry.name) {
                None => t,
                Some(order) => no_grad(|| in_memory_order(&t, order, &entry.name))?,
            };
            state.push(&entry.name, t);
        }
        Ok(StateFile { state, metadata })
    }
}

fn tensor(entry: &Entry, bytes: Vec<u8>) -> Result<Tensor> {
    let Some(dtype) = entry.dtype.dtype() else {
        let text = format!("{:?} is of dtype {}, which tensors do not have", entry.name, entry.dtype);
        return Err(Error::new(ErrorKind::Unsupported, OP, text)
            .hint("SafeTensors::bytes gives the values as they lie in the file"));
    };
    Tensor::try_from_le_bytes(&bytes, dtype, entry.shape.as_slice())
}

/// What restores the strides of a tensor: `None` for row-major ones, and for those with gaps or overlaps.
fn memory_order(t: &Tensor) -> Option<Value> {
    if t.suggested_format() == MemoryFormat::ChannelsLast {
        return t.is_contiguous_in(MemoryFormat::ChannelsLast).then(|| json!(CHANNELS_LAST));
    }
    if t.is_contiguous() || !t.layout().is_non_overlapping_and_dense() {
        return None;
    }
    // Outermost first; dims of size 1 go by their strides too, which changes nothing.
    let mut order: Vec<usize> = (0..t.dim()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(t.strides()[d]));
    Some(json!(order))
}

/// A row-major tensor's values in the order of memory that `order` describes.
fn in_memory_order(t: &Tensor, order: &Value, name: &str) -> Result<Tensor> {
    if order == CHANNELS_LAST && t.dim() == 4 {
        return t.try_to_format(MemoryFormat::ChannelsLast);
    }
    let dims: Option<Vec<usize>> =
        order.as_array().and_then(|list| list.iter().map(|d| usize::try_from(d.as_u64()?).ok()).collect());
    let inverse = dims.as_ref().and_then(|dims| {
        let inverse: Option<Vec<usize>> = (0..t.dim()).map(|d| dims.iter().position(|&k| k == d)).collect();
        inverse.filter(|_| dims.len() == t.dim())
    });
    let (Some(dims), Some(inverse)) = (dims, inverse) else {
        bail!(Format, OP, "metadata {LAYOUTS:?} of {name:?}: {order} is no order of {} dims", t.dim())
    };
    t.try_permute(dims)?.try_contiguous()?.try_permute(inverse)
}

/// Saving modules to files and loading them.
pub trait SaveLoad: Module {
    /// Writes parameters and buffers to a safetensors file, atomically, under PyTorch's names.
    ///
    /// # Errors
    /// `Io` where the file cannot be written. An old file stays as it was then.
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save_state(path, &self.state_dict())
    }

    /// Loads parameters and buffers from a safetensors file: a state dict, ours or PyTorch's, or a checkpoint. They keep
    /// their strides, dtype and device. The report tells which names were missing, left over or did not fit.
    ///
    /// # Errors
    /// `Io` where the file cannot be read; `Format` where it is not valid.
    fn load(&mut self, path: impl AsRef<Path>) -> Result<LoadReport> {
        self.load_state_dict(&weights(&load_state(path)?))
    }
}

impl<M: Module + ?Sized> SaveLoad for M {}
