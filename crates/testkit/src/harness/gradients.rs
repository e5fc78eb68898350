//! The checks of gradients.

use stridegrad_autograd::spec::{Domain, Input, Sample};
use stridegrad_autograd::{BackwardOptions, GradcheckOptions, Tensor, grad, gradcheck, gradgradcheck};
use stridegrad_core::{DType, Device};

use super::inputs::{Assignment, Inputs, Points, assignments};
use super::{Outcome, Runner, elements, wrong};
use crate::compare::{Tolerance, index_of};
use crate::values::{Numbers, differentiable};
use crate::variants::{Variant, variants};

/// The error of central differences, on top of a dtype's own.
const DIFFERENCES: Tolerance = Tolerance { relative: 1e-5, absolute: 1e-6 };

/// The inputs that gradients are checked for.
pub(super) fn checked(sample: &Sample) -> Vec<usize> {
    let has = |i: &Input| differentiable(i.domain);
    (0..sample.inputs.len()).filter(|&k| has(&sample.inputs[k])).collect()
}

impl Runner<'_> {
    pub(super) fn gradients(&mut self, sample: &Sample) {
        if !sample.grad || checked(sample).is_empty() {
            return;
        }
        let (name, device) = (sample.name.as_str(), self.options.device);
        let mut points = Points::new(self.op, sample);
        let heavy = elements(sample) * points.results() > 200_000;
        for at in assignments(sample) {
            if heavy && !["contiguous", "permuted", "channels_last", "stepped"].contains(&at.name.as_str()) {
                continue;
            }
            let leaf = !checked(sample).iter().any(|&k| at.variants[k].overlapping);
            if leaf {
                self.check("grad", &at.name, DType::F64, name, || {
                    leaves(sample, &mut points, &at, DType::F64, device, "contiguous")
                });
            }
            self.check("grad_base", &at.name, DType::F64, name, || bases(sample, &mut points, &at, device));
            if ["contiguous", "permuted", "channels_last"].contains(&at.name.as_str()) {
                for seed in ["permuted", "cyclic", "stepped", "reversed", "channels_last", "broadcast"] {
                    self.check("grad_seed", seed, DType::F64, name, || {
                        leaves(sample, &mut points, &at, DType::F64, device, seed)
                    });
                }
                for dtype in [DType::F32, DType::F16, DType::BF16] {
                    self.check("grad", &at.name, dtype, name, || {
                        leaves(sample, &mut points, &at, dtype, device, "contiguous")
                    });
                }
            }
        }
        let n = elements(sample);
        // Equal elements are what distinct ones are there to avoid.
        let ties = sample.inputs.iter().all(|i| i.domain != Domain::Distinct);
        let options = GradcheckOptions::default().expanded(ties);
        if n <= 64 {
            self.check("gradcheck", "sweep", DType::F64, name, || {
                let (leaves, f) = plain(sample, &points, device)?;
                let options = options.tolerances(1e-5, 1e-4).fast(n > 16);
                Ok(gradcheck(f, &leaves, options)?)
            });
        }
        if n <= 600 {
            self.check("second", "sweep", DType::F64, name, || {
                let (leaves, f) = plain(sample, &points, device)?;
                let options = options.fast(n > 12).layouts(n <= 30);
                Ok(gradgradcheck(f, &leaves, options)?)
            });
        }
    }
}

type Function<'a> = Box<dyn Fn(&[Tensor]) -> stridegrad_core::Result<Vec<Tensor>> + 'a>;

/// The inputs of a sample as contiguous leaves, and its call.
fn plain<'a>(
    sample: &'a Sample,
    points: &Points<'_>,
    device: Device,
) -> Outcome<(Vec<Tensor>, Function<'a>)> {
    let inputs = points.inputs(&assignments(sample)[0], DType::F64, device)?;
    let mut tensors = inputs.tensors();
    for k in checked(sample) {
        tensors[k] = tensors[k].try_requires_grad_(true)?;
    }
    Ok((tensors, Box::new(|t| (sample.run)(t))))
}

/// Gradients of results, row-major, and as tensors of a given layout.
pub(super) struct Seeds {
    pub(super) values: Vec<Option<Vec<f64>>>,
    pub(super) tensors: Vec<Option<Tensor>>,
}

/// Gradients of the floating results, in a layout where their sizes have it (else contiguous).
fn seeds(results: &[Tensor], layout: &str, device: Device) -> Outcome<Seeds> {
    let mut numbers = Numbers::from_name("seeds");
    let mut all = Seeds { values: Vec::new(), tensors: Vec::new() };
    for r in results {
        if !r.dtype().is_floating() {
            all.values.push(None);
            all.tensors.push(None);
            continue;
        }
        let choices = variants(r.sizes());
        let v: &Variant = choices.iter().find(|v| v.name == layout).unwrap_or(&choices[0]);
        let drawn = v.admit(&numbers.weights(r.numel()));
        let placed = v.place(&drawn, r.dtype(), device)?;
        all.values.push(Some(placed.tensor.try_to_vec_f64()?));
        all.tensors.push(Some(placed.tensor));
    }
    Ok(all)
}

/// The gradients of `inputs` through the results that have one.
pub(super) fn backward(
    results: &[Tensor],
    seeds: &Seeds,
    inputs: &[&Tensor],
) -> Outcome<Vec<Option<Tensor>>> {
    let with: Vec<usize> = (0..results.len()).filter(|&k| results[k].requires_grad()).collect();
    let outs: Vec<&Tensor> = with.iter().map(|&k| &results[k]).collect();
    let given: Vec<&Tensor> = with.iter().filter_map(|&k| seeds.tensors[k].as_ref()).collect();
    if outs.len() != given.len() {
        wrong!("a result that is not floating requires grad");
    }
    if outs.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    Ok(grad(&outs, inputs, Some(&given), BackwardOptions::default())?)
}

/// Compares one gradient; an absent one is zeros.
pub(super) fn compare(
    what: &str,
    found: Option<&Tensor>,
    input: &Tensor,
    want: &[f64],
    magnitude: &[f64],
    factor: f64,
) -> Outcome {
    let own = Tolerance::of(input.dtype()).times(factor);
    let tolerance = Tolerance {
        relative: own.relative.max(DIFFERENCES.relative),
        absolute: own.absolute.max(DIFFERENCES.absolute),
    };
    let got = match found {
        Some(g) if g.sizes() != input.sizes() || g.dtype() != input.dtype() => {
            wrong!("the gradient of {what} is {} {:?}", g.dtype(), g.sizes())
        }
        Some(g) => g.try_to_vec_f64()?,
        None => vec![0.0; want.len()],
    };
    for (j, (&g, &w)) in got.iter().zip(want).enumerate() {
        if !tolerance.close_at(g, w, magnitude[j]) {
            let at = index_of(input.sizes(), j);
            match found {
                Some(_) => wrong!("the gradient of {what} at {at:?} is {g}, numerically {w}"),
                None => wrong!("{what} gets no gradient, numerically it is {w} at {at:?}"),
            }
        }
    }
    Ok(())
}

/// Differentiable inputs as leaves of their layouts.
fn leaves(
    sample: &Sample,
    points: &mut Points<'_>,
    at: &Assignment,
    dtype: DType,
    device: Device,
    seed_layout: &str,
) -> Outcome {
    let inputs = points.inputs(at, dtype, device)?;
    let mut tensors = inputs.tensors();
    for k in checked(sample) {
        tensors[k] = tensors[k].try_requires_grad_(true)?;
    }
    let results = (sample.run)(&tensors)?;
    let seeds = seeds(&results, seed_layout, device)?;
    let wanted: Vec<&Tensor> = checked(sample).iter().map(|&k| &tensors[k]).collect();
    let found = backward(&results, &seeds, &wanted)?;
    for (g, k) in found.iter().zip(checked(sample)) {
        let (want, magnitude) = numeric(sample, points, &inputs, k, &seeds);
        compare(&format!("input {k}"), g.as_ref(), &tensors[k], &want, &magnitude, sample.tolerance)?;
    }
    inputs.unmodified(0)
}

fn numeric(
    sample: &Sample,
    points: &mut Points<'_>,
    inputs: &Inputs,
    k: usize,
    seeds: &Seeds,
) -> (Vec<f64>, Vec<f64>) {
    let point = points.at(&inputs.refs);
    point.differentiate(sample, &inputs.refs, k);
    point.gradient(k, &seeds.values)
}

/// Differentiable inputs as views of flat leaves: the gradients arrive there, added up where elements share a place.
fn bases(sample: &Sample, points: &mut Points<'_>, at: &Assignment, device: Device) -> Outcome {
    let inputs = points.inputs(at, DType::F64, device)?;
    let mut tensors = inputs.tensors();
    let mut lines = Vec::new();
    for k in checked(sample) {
        let line = inputs.placed[k].line.try_requires_grad_(true)?;
        tensors[k] = inputs.placed[k].view(&line)?;
        lines.push(line);
    }
    let results = (sample.run)(&tensors)?;
    let seeds = seeds(&results, "contiguous", device)?;
    let found = backward(&results, &seeds, &lines.iter().collect::<Vec<_>>())?;
    for ((g, line), k) in found.iter().zip(&lines).zip(checked(sample)) {
        let (want, magnitude) = numeric(sample, points, &inputs, k, &seeds);
        let v = &at.variants[k];
        let what = format!("the base of input {k}");
        compare(&what, g.as_ref(), line, &v.scatter(&want), &v.scatter(&magnitude), sample.tolerance)?;
    }
    inputs.unmodified(0)
}
