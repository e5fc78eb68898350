//! Faults to order, for the proof that the harness would notice them. Only with the feature `testkit`.

use std::sync::Mutex;

use stridegrad_core::{Array, Result};

use crate::Tensor;
use crate::graph::{Recorder, lock};

/// The same values on the same storage, by a node of its own that changes the gradient as `fault` says (`None` leaves it
/// out).
pub fn tampered(
    x: &Tensor,
    fault: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) -> Result<Tensor> {
    let rec = Recorder::new("tampered", &[x]);
    rec.finish(x.array().clone(), move |_, g| Ok(vec![fault(g)?]))
}

/// A tensor read through another layout of its storage, where that fits; else the tensor itself.
pub fn misread(x: &Tensor, layout: stridegrad_core::Layout) -> Tensor {
    x.array().with_layout(layout).map_or_else(|_| x.clone(), Tensor::from_array)
}

/// Storages and how many of their version bumps are hidden.
static HIDDEN: Mutex<Vec<(usize, u64)>> = Mutex::new(Vec::new());

/// Makes the writes to this tensor's storage so far look as if they had not bumped its version, while the guard lives.
pub fn hide_bumps(x: &Tensor) -> HiddenBumps {
    let id = x.array().storage().id();
    lock(&HIDDEN).push((id, x.array().version()));
    HiddenBumps { _keeps_the_id: x.clone(), id }
}

/// Ends [`hide_bumps`] when dropped.
pub struct HiddenBumps {
    _keeps_the_id: Tensor,
    id: usize,
}

impl Drop for HiddenBumps {
    fn drop(&mut self) {
        lock(&HIDDEN).retain(|(id, _)| *id != self.id);
    }
}

/// The version of an array's storage, less what is hidden.
pub(crate) fn version(a: &Array) -> u64 {
    let id = a.storage().id();
    let hidden: u64 = lock(&HIDDEN).iter().filter(|(h, _)| *h == id).map(|(_, n)| n).sum();
    a.version().saturating_sub(hidden)
}
