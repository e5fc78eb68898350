//! Running a case and comparing what comes out.

use stridegrad::io::safetensors::SafeTensors;
use stridegrad::{BackwardOptions, DType, Tensor, grad};

use super::{Problem, Record, call, chain};

/// A tensor of the file; in `dtype` where one is given.
fn load(tensors: &SafeTensors, name: &str, dtype: Option<DType>) -> Result<Tensor, Problem> {
    let entry =
        tensors.header().get(name).ok_or_else(|| Problem::Wrong(format!("the file has no tensor {name}")))?;
    let stored = entry
        .dtype
        .dtype()
        .ok_or_else(|| Problem::Wrong(format!("{name} is of the unsupported dtype {}", entry.dtype)))?;
    let t = Tensor::try_from_le_bytes(&tensors.bytes(name)?, stored, &entry.shape)?;
    Ok(match dtype {
        Some(d) if d != stored => t.try_to_dtype(d)?,
        _ => t,
    })
}

/// The default tolerance of a dtype.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-5,
        DType::F64 => 1e-12,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 0.0,
    }
}

/// `|got - want| <= tol (1 + |want|)`; NaN equals NaN, an infinity only itself; integers exactly.
fn compare(what: &str, got: &Tensor, want: &Tensor, tol: f64) -> Result<(), Problem> {
    if got.sizes() != want.sizes() {
        return Err(Problem::Wrong(format!("{what}: sizes {:?}, expected {:?}", got.sizes(), want.sizes())));
    }
    if !want.dtype().is_floating() {
        let (g, w) = (integers(got)?, integers(want)?);
        return match (0..g.len()).find(|&i| g[i] != w[i]) {
            Some(i) => Err(Problem::Wrong(format!("{what}[{i}]: {}, expected {}", g[i], w[i]))),
            None => Ok(()),
        };
    }
    let (g, w) = (got.detach().try_to_vec_f64()?, want.try_to_vec_f64()?);
    let fits =
        |g: f64, w: f64| g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tol * (1.0 + w.abs());
    let fits = |g: f64, w: f64| if w.is_infinite() { g == w } else { fits(g, w) };
    match (0..g.len()).find(|&i| !fits(g[i], w[i])) {
        Some(i) => {
            let wrong = (0..g.len()).filter(|&i| !fits(g[i], w[i])).count();
            Err(Problem::Wrong(format!(
                "{what}[{i}]: {}, expected {} ({wrong} of {} values differ)",
                g[i],
                w[i],
                g.len()
            )))
        }
        None => Ok(()),
    }
}

fn integers(t: &Tensor) -> Result<Vec<i64>, Problem> {
    Ok(t.detach().try_to_dtype(DType::I64)?.try_to_vec::<i64>()?)
}

/// The leaves of a record.
fn leaves_of(record: &Record, tensors: &SafeTensors) -> Result<Vec<Tensor>, Problem> {
    let mut leaves = Vec::new();
    for (k, input) in record.inputs.iter().enumerate() {
        let leaf = load(tensors, &format!("{}.in{k}", record.id), Some(input.dtype))?;
        leaves.push(if input.grad { leaf.try_requires_grad_(true)? } else { leaf });
    }
    Ok(leaves)
}

/// The chains and the op: what a refusal may come from.
fn compute(record: &Record, leaves: &[Tensor]) -> Result<Vec<Tensor>, Problem> {
    let mut xs = leaves.to_vec();
    for (x, input) in xs.iter_mut().zip(&record.inputs) {
        for (name, args) in &input.chain {
            *x = chain::step(x, name, args)?;
        }
    }
    call::call(&record.op, &record.args, &xs)
}

/// Runs one case.
pub(super) fn check(record: &Record, tensors: &SafeTensors) -> Result<(), Problem> {
    let leaves = leaves_of(record, tensors)?;
    let Some(expected) = &record.outputs else {
        return match compute(record, &leaves) {
            Err(Problem::Refused(_)) => Ok(()),
            Err(other) => Err(other),
            Ok(_) => Err(Problem::Wrong("PyTorch refuses this, but a result came".into())),
        };
    };
    let outputs = compute(record, &leaves)?;
    if outputs.len() < expected.len() {
        return Err(Problem::Wrong(format!("{} outputs, expected {}", outputs.len(), expected.len())));
    }
    for (k, (out, want)) in outputs.iter().zip(expected).enumerate() {
        if out.dtype() != want.dtype {
            return Err(Problem::Wrong(format!("out{k}: dtype {}, expected {}", out.dtype(), want.dtype)));
        }
        if out.sizes() != want.sizes {
            return Err(Problem::Wrong(format!(
                "out{k}: sizes {:?}, expected {:?}",
                out.sizes(),
                want.sizes
            )));
        }
        let values = load(tensors, &format!("{}.out{k}", record.id), None)?.try_view(&want.sizes)?;
        let tol = record.tolerance.unwrap_or_else(|| tolerance(want.dtype));
        compare(&format!("out{k}"), out, &values, tol)?;
        if let Some(strides) = &want.strides
            && out.strides() != &strides[..]
        {
            return Err(Problem::Wrong(format!("out{k}: strides {:?}, expected {strides:?}", out.strides())));
        }
    }
    gradients(record, tensors, &leaves, &outputs)
}

/// The gradients of the leaves, where they are checked.
fn gradients(
    record: &Record,
    tensors: &SafeTensors,
    leaves: &[Tensor],
    outputs: &[Tensor],
) -> Result<(), Problem> {
    let (mut seeds, mut seeded) = (Vec::new(), Vec::new());
    for (k, out) in outputs.iter().enumerate() {
        let name = format!("{}.cot{k}", record.id);
        if tensors.header().get(&name).is_some() && out.requires_grad() {
            seeds.push(load(tensors, &name, Some(out.dtype()))?.try_view(out.sizes())?);
            seeded.push(out);
        }
    }
    let wanted: Vec<usize> = (0..leaves.len())
        .filter(|&k| {
            record.inputs[k].grad && tensors.header().get(&format!("{}.grad{k}", record.id)).is_some()
        })
        .collect();
    let inputs: Vec<&Tensor> = wanted.iter().map(|&k| &leaves[k]).collect();
    let grads = match seeded.is_empty() || inputs.is_empty() {
        true => vec![None; inputs.len()],
        false => grad(&seeded, &inputs, Some(&seeds.iter().collect::<Vec<_>>()), BackwardOptions::default())?,
    };
    for (&k, got) in wanted.iter().zip(grads) {
        let want = load(tensors, &format!("{}.grad{k}", record.id), None)?;
        let got = match got {
            Some(g) => g,
            None => leaves[k].try_zeros_like()?,
        };
        if got.dtype() != leaves[k].dtype() {
            return Err(Problem::Wrong(format!("grad{k}: dtype {}", got.dtype())));
        }
        let tol = record.tolerance.unwrap_or_else(|| tolerance(leaves[k].dtype()));
        compare(&format!("grad{k}"), &got, &want.try_view(leaves[k].sizes())?, tol)?;
    }
    Ok(())
}
