//! Running a record's steps and comparing what comes out.

use std::collections::BTreeMap;

use serde_json::Value;
use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, MemoryFormat};

use crate::language::{Record, Step, ints, leaves, number, steps};
use crate::ops;

type Tensors = BTreeMap<String, Tensor>;

pub fn run(record: &Record, expected: &Value) -> Result<(), String> {
    let leaves = leaves(record).map_err(|e| format!("the leaves cannot be made: {e}"))?;
    let mut tensors = leaves.clone();
    let may_refuse = expected["may_refuse"].as_bool().unwrap_or(false);
    for (k, step) in steps(record).iter().enumerate() {
        let refused_here = expected["error"]["step"].as_u64() == Some(k as u64);
        let before = if refused_here { values_of(&leaves)? } else { BTreeMap::new() };
        match take(step, &mut tensors)? {
            Ok(()) if refused_here => {
                return Err(format!(
                    "step {k}, {}: not refused; PyTorch: {}",
                    step.op, expected["error"]["text"]
                ));
            }
            Ok(()) => {}
            Err(_) if may_refuse => return Ok(()),
            Err(e) if !refused_here => return Err(format!("step {k}, {}: refused: {e}", step.op)),
            Err(_) => {
                // A refusal comes before the first write.
                if values_of(&leaves)? != before {
                    return Err(format!("step {k}, {}: refused, but something was written", step.op));
                }
                return Ok(());
            }
        }
    }
    if expected.get("error").is_some() {
        return Err("the steps end before the one that is refused".into());
    }
    let mut wrong = Vec::new();
    for (name, want) in expected["tensors"].as_object().into_iter().flatten() {
        let Some(got) = tensors.get(name) else { return Err(format!("there is no {name}")) };
        wrong.extend(compare(name, got, want, &leaves));
    }
    for (name, want) in expected["grads"].as_object().into_iter().flatten() {
        wrong.extend(compare_grad(name, leaves[name].grad().as_ref(), want));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Runs one step and binds its results. The outer error is the runner's, the inner one the op's refusal.
fn take(step: &Step, tensors: &mut Tensors) -> Result<stridegrad_core::Result<()>, String> {
    let on: Vec<Tensor> = step.on.iter().map(|n| tensors[n].clone()).collect();
    let Some(result) = ops::run(&step.op, &on, &step.args) else {
        return Err(format!("UNKNOWN OP {}", step.op));
    };
    let overlooked = step.args.overlooked();
    let results = match result {
        Ok(results) => results,
        Err(e) => return Ok(Err(e)),
    };
    if !overlooked.is_empty() {
        return Err(format!("{}: arguments {overlooked:?} are not looked at", step.op));
    }
    if results.len() != step.names.len() {
        return Err(format!("{}: {} results for {:?}", step.op, results.len(), step.names));
    }
    tensors.extend(step.names.iter().cloned().zip(results));
    Ok(Ok(()))
}

/// The bits of the leaves' values, so that NaN equals itself.
fn values_of(leaves: &Tensors) -> Result<BTreeMap<&String, Vec<u64>>, String> {
    let bits = |t: &Tensor| -> stridegrad_core::Result<Vec<u64>> {
        Ok(t.try_to_vec_f64()?.into_iter().map(f64::to_bits).collect())
    };
    leaves.iter().map(|(n, t)| Ok((n, bits(t).map_err(|e| e.to_string())?))).collect()
}

fn compare(name: &str, got: &Tensor, want: &Value, leaves: &Tensors) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, got: String, want: String| {
        if got != want {
            wrong.push(format!("{name}: {what} {got}, expected {want}"));
        }
    };
    let sizes: Vec<i64> = got.sizes().iter().map(|&s| s as i64).collect();
    let strides: Vec<i64> = got.strides().iter().map(|&s| s as i64).collect();
    check("dtype", got.dtype().to_string(), want["dtype"].as_str().unwrap().into());
    check("sizes", format!("{sizes:?}"), format!("{:?}", ints(&want["sizes"])));
    check("strides", format!("{strides:?}"), format!("{:?}", ints(&want["strides"])));
    check("offset", got.storage_offset().to_string(), want["offset"].to_string());
    if let Some(shares) = want.get("shares") {
        for (leaf, t) in leaves {
            let wanted = shares.as_str() == Some(leaf);
            check(
                &format!("shares storage with {leaf}:"),
                got.shares_storage(t).to_string(),
                wanted.to_string(),
            );
        }
    }
    let mut flag = |field: &str, got: bool| {
        if let Some(want) = want.get(field) {
            check(field, got.to_string(), want.to_string());
        }
    };
    flag("contiguous", got.is_contiguous());
    flag("channels_last", got.is_contiguous_in(MemoryFormat::ChannelsLast));
    flag("dense", got.layout().is_non_overlapping_and_dense());
    if let Some(suggested) = want.get("suggested") {
        let format = match got.suggested_format() {
            MemoryFormat::ChannelsLast => "channels_last",
            _ => "contiguous",
        };
        check("suggested format", format.into(), suggested.as_str().unwrap().into());
    }
    if let Some(data) = want.get("data") {
        wrong.extend(compare_data(name, got, data));
    }
    wrong
}

fn compare_grad(name: &str, got: Option<&Tensor>, want: &Value) -> Vec<String> {
    let name = &format!("grad of {name}");
    match (got, want.is_null()) {
        (None, true) => Vec::new(),
        (None, false) => vec![format!("{name}: none")],
        (Some(_), true) => vec![format!("{name}: there is one, expected none")],
        (Some(got), false) => {
            let mut wrong = compare_data(name, got, &want["data"]);
            let strides: Vec<i64> = got.strides().iter().map(|&s| s as i64).collect();
            if strides != ints(&want["strides"]) {
                wrong.push(format!("{name}: strides {strides:?}, expected {}", want["strides"]));
            }
            wrong
        }
    }
}

/// What rounding may make of a value of this dtype, after a few operations.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-13,
        DType::F32 => 1e-6,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => 0.0,
    }
}

fn compare_data(name: &str, got: &Tensor, want: &Value) -> Vec<String> {
    let got_values = match got.try_to_vec_f64() {
        Ok(v) => v,
        Err(e) => return vec![format!("{name}: cannot be read: {e}")],
    };
    let want: Vec<f64> = want.as_array().unwrap().iter().map(number).collect();
    let tolerance = tolerance(got.dtype());
    // Infinities equal themselves; their difference is NaN.
    let close = |a: f64, b: f64| {
        a == b || (a - b).abs() <= tolerance * b.abs().max(1.0) && b.is_finite() || a.is_nan() && b.is_nan()
    };
    if got_values.len() == want.len() && got_values.iter().zip(&want).all(|(&a, &b)| close(a, b)) {
        return Vec::new();
    }
    vec![format!("{name}: values {got_values:?}, expected {want:?}")]
}
