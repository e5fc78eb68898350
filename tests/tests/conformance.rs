//! The committed sample of conformance cases.

use std::collections::BTreeSet;

use stridegrad::io::safetensors::SafeTensors;
use stridegrad_tests::conformance::{Problem, Record, check, parse, run};
use stridegrad_tests::fixture;

/// Ops of the sample that are still missing: one that lands leaves this list.
const MISSING: [&str; 0] = [];

fn sample() -> (Vec<Record>, SafeTensors) {
    let text = std::fs::read_to_string(fixture("conformance/sample.json")).expect("the records");
    let tensors = SafeTensors::open(fixture("conformance/sample.safetensors")).expect("the tensors");
    (parse(&text).expect("well-formed records"), tensors)
}

#[test]
fn the_sample_passes_but_for_the_missing_ops() {
    let (records, tensors) = sample();
    let report = run(&records, &tensors, None, |_, _| {});
    let unknown: BTreeSet<&str> = report
        .failures
        .iter()
        .filter(|f| matches!(f.problem, Problem::Unknown))
        .map(|f| f.op.as_str())
        .collect();
    assert_eq!(unknown, BTreeSet::from(MISSING));
    let wrong: Vec<String> = report
        .failures
        .iter()
        .filter(|f| !matches!(f.problem, Problem::Unknown))
        .map(|f| f.to_string())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(report.passed + report.failures.len(), 145);
}

#[test]
fn a_wrong_expectation_fails() {
    let text = std::fs::read_to_string(fixture("conformance/sample.json")).expect("the records");
    let (_, tensors) = sample();
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    // The first record is `neg` of sizes [2, 4, 1].
    let spoilt = |path: &str, to: serde_json::Value| {
        let mut value = value.clone();
        match value[0].pointer_mut(path) {
            Some(place) => *place = to,
            None => value[0][&path[1..]] = to,
        }
        let records = parse(&value.to_string()).expect("well-formed records");
        match check(&records[0], &tensors) {
            Ok(()) => panic!("{path} passed"),
            Err(problem) => problem.to_string(),
        }
    };
    assert!(spoilt("/op", "abs".into()).starts_with("out0["));
    assert!(spoilt("/op", "contiguous".into()).starts_with("out0["));
    assert!(spoilt("/outputs/0/strides/2", 2.into()).starts_with("out0: strides"));
    assert!(spoilt("/outputs/0/dtype", "f64".into()).starts_with("out0: dtype"));
    assert!(spoilt("/outputs/0/sizes/2", 2.into()).starts_with("out0: sizes"));
    assert_eq!(spoilt("/op", "no_such_op".into()), "unknown op");
    assert_eq!(spoilt("/error", "no".into()), "PyTorch refuses this, but a result came");
}
