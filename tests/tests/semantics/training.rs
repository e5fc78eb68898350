//! Optimizers and schedules.

use serde_json::Value;
use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, Device};
use stridegrad_optim::{
    AdagradRule, AdamRule, ConstantLr, CosineAnnealingLr, CosineAnnealingWarmRestarts, ExponentialLr,
    LinearLr, MultiStepLr, OneCycleLr, Optim, Optimizer, PolynomialLr, RmsPropRule, Rule, Schedule, SgdRule,
    StepLr,
};

use crate::language::{Args, Record, number};

/// A run of values against those expected.
fn compare(got: &[f64], expected: &Value) -> Result<(), String> {
    let want: Vec<f64> = expected["values"].as_array().unwrap().iter().map(number).collect();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-13 * b.abs().max(1.0);
    if got.len() == want.len() && got.iter().zip(&want).all(|(&a, &b)| close(a, b)) {
        return Ok(());
    }
    Err(format!("values {got:?}, expected {want:?}"))
}

pub fn schedule(record: &Record, expected: &Value) -> Result<(), String> {
    let inputs = &record.inputs["schedule"];
    let (kind, a) = (inputs["kind"].as_str().unwrap(), Args::new(&inputs["args"]));
    let count = |name: &str| a.int(name, 0) as u64;
    let float = |name: &str| a.opt_float(name).unwrap_or_else(|| panic!("no argument {name}"));
    let schedule: Box<dyn Schedule> = match kind {
        "step" => Box::new(StepLr::new(count("step_size")).gamma(float("gamma"))),
        "multi_step" => {
            let milestones: Vec<u64> = a.ints("milestones").iter().map(|&m| m as u64).collect();
            Box::new(MultiStepLr::new(milestones).gamma(float("gamma")))
        }
        "exponential" => Box::new(ExponentialLr::new(float("gamma"))),
        "cosine" => Box::new(CosineAnnealingLr::new(count("t_max")).eta_min(float("eta_min"))),
        "warm_restarts" => Box::new(
            CosineAnnealingWarmRestarts::new(count("t_0"))
                .multiplier(count("t_mult"))
                .eta_min(float("eta_min")),
        ),
        "linear" => Box::new(LinearLr::new(float("start_factor"), count("total")).to(float("end_factor"))),
        "constant" => Box::new(ConstantLr::new(float("factor"), count("total"))),
        "polynomial" => Box::new(PolynomialLr::new(count("total"), float("power"))),
        "one_cycle" => Box::new(OneCycleLr::new(float("max_lr"), count("total"))),
        other => return Err(format!("UNKNOWN SCHEDULE {other}")),
    };
    assert_eq!(a.overlooked(), [""; 0], "{}", record.id);
    let base = number(&inputs["lr"]);
    let got: Vec<f64> = (0..inputs["steps"].as_u64().unwrap()).map(|k| schedule.lr(base, k)).collect();
    compare(&got, expected)
}

pub fn optimizer(record: &Record, expected: &Value) -> Result<(), String> {
    let inputs = &record.inputs["optimizer"];
    let (kind, a) = (inputs["kind"].as_str().unwrap(), Args::new(&inputs["args"]));
    let p = Tensor::full_on((), 1.0, DType::F64, Device::CPU).requires_grad_(true);
    let made = make(kind, &a, &p).ok_or_else(|| format!("UNKNOWN OPTIMIZER {kind}"))?;
    assert_eq!(a.overlooked(), [""; 0], "{}", record.id);
    let mut optimizer = match made {
        Err(_) if expected.get("error").is_some() => return Ok(()),
        Err(e) => return Err(e.to_string()),
        Ok(_) if expected.get("error").is_some() => return Err("accepted".into()),
        Ok(optimizer) => optimizer,
    };
    let mut got = Vec::new();
    for _ in 0..inputs["steps"].as_u64().unwrap() {
        optimizer.zero_grad();
        p.mul(&p).backward();
        optimizer.step();
        got.push(p.item::<f64>());
    }
    compare(&got, expected)
}

/// An optimizer of one parameter: PyTorch's names for its settings.
fn make(kind: &str, a: &Args, p: &Tensor) -> Option<stridegrad_core::Result<Box<dyn Optimizer>>> {
    fn boxed<R: Rule>(p: &Tensor, rule: R) -> Option<stridegrad_core::Result<Box<dyn Optimizer>>> {
        Some(Optim::try_with([p.clone()], rule).map(|o| Box::new(o) as Box<dyn Optimizer>))
    }
    let lr = a.float("lr", f64::NAN);
    match kind {
        "sgd" => {
            let mut rule = SgdRule::new(lr);
            rule.momentum = a.float("momentum", rule.momentum);
            rule.dampening = a.float("dampening", rule.dampening);
            rule.nesterov = a.flag("nesterov", rule.nesterov);
            rule.weight_decay = a.float("weight_decay", rule.weight_decay);
            boxed(p, rule)
        }
        "rmsprop" => {
            let mut rule = RmsPropRule::new(lr);
            rule.centered = a.flag("centered", rule.centered);
            rule.momentum = a.float("momentum", rule.momentum);
            boxed(p, rule)
        }
        "adagrad" => boxed(p, AdagradRule::new(lr)),
        "adam" => boxed(p, adam(AdamRule::<false>::new(lr), a)),
        "adamw" => boxed(p, adam(AdamRule::<true>::new(lr), a)),
        _ => None,
    }
}

fn adam<const DECOUPLED: bool>(mut rule: AdamRule<DECOUPLED>, a: &Args) -> AdamRule<DECOUPLED> {
    rule.amsgrad = a.flag("amsgrad", rule.amsgrad);
    rule.weight_decay = a.float("weight_decay", rule.weight_decay);
    if let Some(betas) = a.get("betas") {
        (rule.beta1, rule.beta2) = (number(&betas[0]), number(&betas[1]));
    }
    rule
}
