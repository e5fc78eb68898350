//! Laying out a sample's inputs.

use std::collections::HashMap;

use stridegrad_autograd::Tensor;
use stridegrad_autograd::spec::{Domain, Dtypes, Input, Ref, Sample};
use stridegrad_core::{DType, Device, Layout};

use super::{Outcome, elements};
use crate::jacobian::Point;
use crate::values::{self, Numbers, as_held, draw, input_dtype};
use crate::variants::{Placed, Variant, variants};

/// Which variant each input is in.
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) variants: Vec<Variant>,
}

/// Beyond this many elements a sample is there for tiles, chunks and threads: fewer layouts do.
const BIG: usize = 4096;

pub(super) fn is_big(sample: &Sample) -> bool {
    elements(sample) > BIG
}

/// All inputs in the same variant, for each variant that one of them has; then each input alone in each of its own.
pub(super) fn assignments(sample: &Sample) -> Vec<Assignment> {
    let big = is_big(sample);
    let few = ["contiguous", "permuted", "stepped", "reversed", "channels_last", "broadcast"];
    let choices: Vec<Vec<Variant>> = sample
        .inputs
        .iter()
        .map(|input| {
            let mut all = variants(&input.sizes);
            // Shared places would make ties.
            all.retain(|v| !(v.overlapping && input.domain == Domain::Distinct));
            all.retain(|v| !big || few.contains(&v.name));
            all
        })
        .collect();
    let mut names: Vec<&'static str> = Vec::new();
    for v in choices.iter().flatten() {
        if !names.contains(&v.name) {
            names.push(v.name);
        }
    }
    let pick = |k: usize, name: &str| -> Variant {
        let found = choices[k].iter().find(|v| v.name == name);
        found.unwrap_or(&choices[k][0]).clone()
    };
    let n = choices.len();
    let mut all: Vec<Assignment> = names
        .iter()
        .map(|name| Assignment {
            name: (*name).to_owned(),
            variants: (0..n).map(|k| pick(k, name)).collect(),
        })
        .collect();
    if n > 1 && !big {
        for k in 0..n {
            for v in &choices[k][1..] {
                let mut variants: Vec<Variant> = choices.iter().map(|c| c[0].clone()).collect();
                variants[k] = v.clone();
                all.push(Assignment { name: format!("{}@{k}", v.name), variants });
            }
        }
    }
    if n == 0 {
        all.push(Assignment { name: "none".to_owned(), variants: Vec::new() });
    }
    all
}

/// The dtypes a sample runs in, `f64` first.
pub(super) fn dtypes(sample: &Sample) -> Vec<DType> {
    let fixed = |i: &Input| matches!(i.domain, Domain::Index(..) | Domain::Mask);
    if !sample.inputs.is_empty() && sample.inputs.iter().all(fixed) {
        return vec![DType::F64]; // the inputs have dtypes of their own
    }
    let mut all = vec![DType::F64, DType::F32, DType::F16, DType::BF16];
    if sample.dtypes == Dtypes::Numbers {
        all.extend([DType::I64, DType::I32, DType::I16, DType::I8]);
    }
    all
}

/// The inputs of one run.
pub(super) struct Inputs {
    pub(super) placed: Vec<Placed>,
    pub(super) refs: Vec<Ref>,
    before: Vec<Vec<u64>>,
}

impl Inputs {
    pub(super) fn tensors(&self) -> Vec<Tensor> {
        self.placed.iter().map(|p| p.tensor.clone()).collect()
    }

    pub(super) fn layouts(&self) -> Vec<Layout> {
        self.placed.iter().map(|p| *p.tensor.layout()).collect()
    }

    /// Whether the inputs from `first` on hold what they held.
    pub(super) fn unmodified(&self, first: usize) -> Outcome {
        for (k, (p, before)) in self.placed.iter().zip(&self.before).enumerate().skip(first) {
            if p.bits()? != *before {
                super::wrong!("input {k} has been written to");
            }
            if p.tensor.version() != 0 {
                super::wrong!("input {k} is at version {}", p.tensor.version());
            }
        }
        Ok(())
    }
}

/// The values of a sample, and the reference's results at the points it has been asked for.
pub(super) struct Points<'a> {
    sample: &'a Sample,
    drawn: Vec<Vec<f64>>,
    known: HashMap<Vec<u64>, Point>,
}

impl<'a> Points<'a> {
    pub(super) fn new(op: &str, sample: &'a Sample) -> Points<'a> {
        let mut numbers = Numbers::from_name(&format!("{op} {}", sample.name));
        let drawn = sample.inputs.iter().map(|i| draw(i, &mut numbers)).collect();
        Points { sample, drawn, known: HashMap::new() }
    }

    /// The number of elements of all results.
    pub(super) fn results(&mut self) -> usize {
        let inputs = self.sample.inputs.iter().zip(&self.drawn);
        let refs: Vec<Ref> = inputs.map(|(i, drawn)| values::reference(i, drawn.clone())).collect();
        self.at(&refs).outputs.iter().map(|o| o.data.len()).sum()
    }

    /// The inputs in a dtype and layout.
    pub(super) fn inputs(&self, at: &Assignment, dtype: DType, device: Device) -> Outcome<Inputs> {
        let (mut placed, mut refs) = (Vec::new(), Vec::new());
        for ((input, drawn), v) in self.sample.inputs.iter().zip(&self.drawn).zip(&at.variants) {
            let values = v.admit(&as_held(drawn, input.domain, dtype)?);
            placed.push(v.place(&values, input_dtype(input.domain, dtype), device)?);
            refs.push(values::reference(input, values));
        }
        let before = placed.iter().map(Placed::bits).collect::<Result<_, _>>()?;
        Ok(Inputs { placed, refs, before })
    }

    /// The reference at some inputs.
    pub(super) fn at(&mut self, refs: &[Ref]) -> &mut Point {
        let key = refs.iter().flat_map(|r| r.data.iter().map(|v| v.to_bits())).collect();
        let sample = self.sample;
        self.known.entry(key).or_insert_with(|| Point::new(sample, refs))
    }
}
