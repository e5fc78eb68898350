//! Runs of PyTorch as a reference: safetensors files of expected values, and distances from them.

use stridegrad::io::load_state;
use stridegrad::nn::StateDict;
use stridegrad::{DType, Tensor};

/// The tensors of a fixture, which PyTorch's users wrote.
pub fn read(name: &str) -> StateDict {
    load_state(crate::fixture(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// The tensor called `name`.
#[track_caller]
pub fn of<'a>(state: &'a StateDict, name: &str) -> &'a Tensor {
    state.get(name).unwrap_or_else(|| panic!("no tensor {name}"))
}

/// Collects how far tensors are from what PyTorch gives, and panics at the end if one is too far.
pub struct Distances {
    tolerance: f64,
    compared: usize,
    farthest: (f64, String),
    wrong: Vec<String>,
}

impl Distances {
    /// Tolerating this part of each tensor's largest magnitude.
    pub fn new(tolerance: f64) -> Distances {
        Distances { tolerance, compared: 0, farthest: (0.0, String::new()), wrong: Vec::new() }
    }

    /// Compares `got` with the tensor `name` of `expected`: sizes, and values in `f64`.
    pub fn compare(&mut self, expected: &StateDict, name: &str, got: &Tensor) {
        let want = of(expected, name);
        self.compared += 1;
        if got.sizes() != want.sizes() {
            self.wrong.push(format!("{name}: sizes {:?}, expected {:?}", got.sizes(), want.sizes()));
            return;
        }
        let values = |t: &Tensor| t.to_dtype(DType::F64).to_vec::<f64>();
        let (got, want) = (values(got), values(want));
        let largest = want.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        // NaN is far from everything.
        let off = got
            .iter()
            .zip(&want)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, |m: f64, d| if d > m || d.is_nan() { d } else { m });
        let distance = if off == 0.0 { 0.0 } else { off / largest };
        if distance > self.tolerance || distance.is_nan() {
            self.wrong.push(format!("{name}: {distance:.2e} of its largest magnitude away"));
        }
        if distance > self.farthest.0 {
            self.farthest = (distance, name.to_owned());
        }
    }

    /// Panics if something was too far or nothing was compared; prints the farthest.
    #[track_caller]
    pub fn finish(self, what: &str, at_least: usize) {
        let Distances { tolerance, compared, farthest: (distance, name), wrong } = self;
        assert!(wrong.is_empty(), "{what}: beyond {tolerance:e}:\n{}", wrong.join("\n"));
        assert!(compared >= at_least, "{what}: {compared} tensors compared, expected {at_least}");
        println!("{what}: {compared} tensors within {distance:.2e} ({name}), {tolerance:.0e} allowed");
    }
}
