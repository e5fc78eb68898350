//! Central differences.

use stridegrad_core::{Array, Device, Layout, Result, bail, exec};

use super::layouts::place;
use super::{Function, GradcheckOptions, index_of};
use crate::{Tensor, no_grad};

/// The derivatives of a function at a point, and its values there.
pub(super) struct Jacobian {
    /// The floating outputs.
    pub(super) outputs: Vec<Tensor>,
    values: Vec<Vec<f64>>,
    /// For each checked input.
    inputs: Vec<Derivatives>,
}

struct Derivatives {
    sizes: Vec<usize>,
    /// The directions: one an element, or a single random one.
    along: Vec<Direction>,
    fast: bool,
}

/// The change of every output along one direction.
struct Direction {
    step: Vec<f64>,
    change: Vec<Vec<f64>>,
}

/// Reproducible values in ±[0.25, 1].
pub(super) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
            let size = 0.25 + 0.75 * unit;
            if state >> 39 & 1 == 0 { size } else { -size }
        })
        .collect()
}

impl Jacobian {
    pub(super) fn new(
        f: &Function<'_>,
        x: &[Tensor],
        checked: &[usize],
        options: &GradcheckOptions,
    ) -> Result<Jacobian> {
        let eval = |x: &[Tensor]| -> Result<Vec<Tensor>> {
            let outs = no_grad(|| f(x))?;
            Ok(outs.into_iter().filter(|o| o.dtype().is_floating()).map(|o| o.detach()).collect())
        };
        let plain: Vec<Tensor> = x.iter().map(Tensor::detach).collect();
        let outputs = eval(&plain)?;
        let values = outputs.iter().map(Tensor::try_to_vec_f64).collect::<Result<Vec<_>>>()?;
        let mut inputs = Vec::new();
        for &i in checked {
            let at = x[i].try_to_vec_f64()?;
            let shifted = |step: &[f64], by: f64| -> Result<Vec<Vec<f64>>> {
                let moved: Vec<f64> = at.iter().zip(step).map(|(v, s)| v + by * s).collect();
                let mut args = plain.clone();
                args[i] = tensor(&moved, x[i].layout(), x[i].device())?;
                eval(&args)?.iter().map(Tensor::try_to_vec_f64).collect()
            };
            let n = at.len();
            let steps: Vec<Vec<f64>> = match options.fast {
                true => vec![noise(n, 1000 + i as u64)],
                false => (0..n).map(|j| (0..n).map(|k| f64::from(u8::from(j == k))).collect()).collect(),
            };
            let mut along = Vec::with_capacity(steps.len());
            for step in steps {
                let (up, down) = (shifted(&step, options.eps)?, shifted(&step, -options.eps)?);
                if up.len() != values.len() || down.len() != values.len() {
                    bail!(Autograd, "gradcheck", "the number of outputs depends on the values of input {i}");
                }
                let change = up
                    .iter()
                    .zip(&down)
                    .map(|(u, d)| u.iter().zip(d).map(|(u, d)| (u - d) / (2.0 * options.eps)).collect());
                along.push(Direction { step, change: change.collect() });
            }
            inputs.push(Derivatives { sizes: x[i].sizes().to_vec(), along, fast: options.fast });
        }
        Ok(Jacobian { outputs, values, inputs })
    }

    /// What is wrong with the outputs in another layout, if anything.
    pub(super) fn values_differ(&self, outputs: &[&Tensor]) -> Result<Option<String>> {
        if outputs.len() != self.values.len() {
            return Ok(Some(format!("{} outputs instead of {}", outputs.len(), self.values.len())));
        }
        for (k, (out, expected)) in outputs.iter().zip(&self.values).enumerate() {
            if out.sizes() != self.outputs[k].sizes() {
                let message = format!(
                    "output {k} has sizes {:?} instead of {:?}",
                    out.sizes(),
                    self.outputs[k].sizes()
                );
                return Ok(Some(message));
            }
            for (j, (&got, &want)) in out.try_to_vec_f64()?.iter().zip(expected).enumerate() {
                // Sums may be taken in another order: far closer than the differences are, but not equal.
                let close = got == want
                    || (got - want).abs() <= 1e-9 * (1.0 + want.abs())
                    || (got.is_nan() && want.is_nan());
                if !close {
                    let at = index_of(out.sizes(), j);
                    return Ok(Some(format!("output {k} at {at:?} is {got} instead of {want}")));
                }
            }
        }
        Ok(None)
    }

    /// What is wrong with the gradient of the `n`-th checked input, if anything.
    pub(super) fn gradients_differ(
        &self,
        n: usize,
        seeds: &[Option<Tensor>],
        analytic: Option<&[f64]>,
        options: &GradcheckOptions,
    ) -> Result<Option<String>> {
        let seeds: Vec<Option<Vec<f64>>> = seeds
            .iter()
            .map(|s| s.as_ref().map(Tensor::try_to_vec_f64).transpose())
            .collect::<Result<_>>()?;
        let d = &self.inputs[n];
        for (j, direction) in d.along.iter().enumerate() {
            let weighted =
                seeds.iter().zip(&direction.change).filter_map(|(s, c)| s.as_ref().map(|s| (s, c)));
            let numeric: f64 = weighted.map(|(s, c)| dot(s, c)).sum();
            let found = analytic.map_or(0.0, |g| if d.fast { dot(g, &direction.step) } else { g[j] });
            // Not `>`: a NaN on either side is a difference.
            let close = (found - numeric).abs() <= options.atol + options.rtol * numeric.abs();
            if close || (found == numeric) {
                continue;
            }
            let at = match d.fast {
                true => " along a random direction".to_string(),
                false => format!(" at {:?}", index_of(&d.sizes, j)),
            };
            return Ok(Some(match analytic {
                Some(_) => format!("{at}: numeric {numeric}, analytic {found}"),
                None => format!("{at}: numeric {numeric}, but it gets no gradient"),
            }));
        }
        Ok(None)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Row-major values in a given layout.
fn tensor(values: &[f64], layout: &Layout, device: Device) -> Result<Tensor> {
    let dense = Array::from_slice(values, layout.sizes(), Device::CPU)?;
    let dense = if device == Device::CPU { dense } else { exec::to_device(&dense, device)? };
    place(&Tensor::from_array(dense), *layout)
}
