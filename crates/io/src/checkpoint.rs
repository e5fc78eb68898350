//! Checkpoints: all that interrupted training needs to go on as if it had not been.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use stridegrad_core::{Error, ErrorKind, GeneratorState, Result};
use stridegrad_nn::StateDict;
use stridegrad_optim::{OptimizerState, SchedulerState};

use crate::state::{StateFile, load_state_file, save_state_with};

const OP: &str = "checkpoint";
/// The metadata key that holds everything but tensors, as JSON.
const KEY: &str = "stridegrad.checkpoint";
const VERSION: u64 = 1;
/// Before the names of the optimizer's tensors: no field's name has a slash. The model's have no prefix, so that the
/// file serves as a state dict too.
const OPTIMIZER: &str = "optimizer/";

/// The state of a training run, in one safetensors file that is written atomically.
///
/// Numbers survive exactly: training that is resumed gives the bits that uninterrupted training gives.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_io::Checkpoint;
/// # let path = std::env::temp_dir().join(format!("stridegrad-checkpoint-{}", std::process::id()));
/// let mut c = Checkpoint::new();
/// c.model.push("weight", Tensor::ones([2]));
/// c.epoch = 3;
/// c.save(&path)?;
/// assert_eq!(Checkpoint::load(&path)?.epoch, 3);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Checkpoint {
    /// Parameters and buffers.
    pub model: StateDict,
    /// The optimizer's state.
    pub optimizer: Option<OptimizerState>,
    /// The schedule's state.
    pub scheduler: Option<SchedulerState>,
    /// Epochs finished.
    pub epoch: u64,
    /// Batches of the present epoch finished.
    pub batch: u64,
    /// Random generators by name.
    pub generators: BTreeMap<String, GeneratorState>,
    /// Whatever else the run keeps, such as its settings.
    pub extra: BTreeMap<String, String>,
}

impl Checkpoint {
    /// An empty one, to be filled in.
    pub fn new() -> Checkpoint {
        Checkpoint::default()
    }

    /// Writes the file at `path`, atomically.
    ///
    /// # Errors
    /// `Io` where it cannot be written. An old file stays as it was then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut tensors = self.model.clone();
        if let Some(o) = &self.optimizer {
            tensors.extend(o.tensors.with_prefix(OPTIMIZER));
        }
        let head = json!({
            "version": VERSION,
            "epoch": self.epoch,
            "batch": self.batch,
            "optimizer": self.optimizer.as_ref().map(|o| json!({
                "kind": o.kind,
                "steps": o.steps,
                "groups": o.groups.iter().map(|g| g.iter().map(|(n, &v)| (n.clone(), exact(v))).collect()).collect::<Vec<Map<_, _>>>(),
            })),
            "scheduler": self.scheduler.as_ref().map(|s| json!({
                "step": s.step,
                "base_lrs": s.base_lrs.iter().map(|&lr| exact(lr)).collect::<Vec<_>>(),
            })),
            "generators": self.generators.iter().map(|(n, g)| (n.clone(), json!({
                "seed": g.seed,
                "offset": g.offset,
            }))).collect::<Map<_, _>>(),
            "extra": self.extra,
        });
        save_state_with(
            path,
            &tensors,
            BTreeMap::from([("format".to_owned(), "pt".to_owned()), (KEY.to_owned(), head.to_string())]),
        )
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// `Io` where it cannot be read; `Format` where it is not a valid file, no checkpoint, or of a later version.
    pub fn load(path: impl AsRef<Path>) -> Result<Checkpoint> {
        let path = path.as_ref();
        let StateFile { state, metadata } = load_state_file(path)?;
        let head = metadata.get(KEY).ok_or_else(|| {
            let text = format!("{}: not a checkpoint, it has no metadata {KEY:?}", path.display());
            Error::new(ErrorKind::Format, OP, text).hint("SaveLoad::load reads weights from plain files too")
        })?;
        let broken = |what: &str| Error::new(ErrorKind::Format, OP, format!("{}: {what}", path.display()));
        let head: Value = serde_json::from_str(head).map_err(|e| broken("malformed metadata").because(e))?;
        match head["version"].as_u64() {
            Some(VERSION) => {}
            Some(later) => {
                return Err(broken(&format!("version {later}, this build reads version {VERSION}")));
            }
            None => return Err(broken("without a version")),
        }
        read(&head, &state).ok_or_else(|| broken("malformed metadata"))
    }
}

/// The model's tensors in a file, which may be a checkpoint.
pub(crate) fn weights(state: &StateDict) -> StateDict {
    state.iter().filter(|(name, _)| !name.starts_with(OPTIMIZER)).map(|(n, t)| (n, t.clone())).collect()
}

/// The checkpoint of its JSON and its tensors; `None` where the JSON has another form.
fn read(head: &Value, state: &StateDict) -> Option<Checkpoint> {
    let optimizer = match &head["optimizer"] {
        Value::Null => None,
        o => Some(OptimizerState {
            kind: o["kind"].as_str()?.to_owned(),
            steps: list(&o["steps"], Value::as_u64)?,
            groups: list(&o["groups"], |g| entries(g, number))?,
            tensors: state.strip_prefix(OPTIMIZER),
        }),
    };
    let scheduler = match &head["scheduler"] {
        Value::Null => None,
        s => Some(SchedulerState { step: s["step"].as_u64()?, base_lrs: list(&s["base_lrs"], number)? }),
    };
    let generator =
        |g: &Value| Some(GeneratorState { seed: g["seed"].as_u64()?, offset: g["offset"].as_u64()? });
    Some(Checkpoint {
        model: weights(state),
        optimizer,
        scheduler,
        epoch: head["epoch"].as_u64()?,
        batch: head["batch"].as_u64()?,
        generators: entries(&head["generators"], generator)?,
        extra: entries(&head["extra"], |v| Some(v.as_str()?.to_owned()))?,
    })
}

/// A number as text that gives the same number back, infinities and NaN included: JSON readers may round.
fn exact(v: f64) -> Value {
    Value::String(format!("{v:?}"))
}

fn number(v: &Value) -> Option<f64> {
    v.as_str()?.parse().ok()
}

fn list<T>(v: &Value, each: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    v.as_array()?.iter().map(each).collect()
}

fn entries<T>(v: &Value, each: impl Fn(&Value) -> Option<T>) -> Option<BTreeMap<String, T>> {
    v.as_object()?.iter().map(|(k, v)| Some((k.clone(), each(v)?))).collect()
}
