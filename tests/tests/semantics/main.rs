//! `fixtures/semantics.json`, every record of it: what PyTorch gives for small inputs is what we give.
//!
//! One test a section; a failing record is named. Where the project differs on purpose, `deviations.rs` says so.
#![forbid(unsafe_code)]

mod compare;
mod deviations;
mod language;
mod ops;
mod promotion;
mod training;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use language::{Record, records};
use serde_json::Value;

/// Runs one record against what is expected. Everything that is wrong, in words.
fn run(record: &Record, expected: &Value) -> Result<(), String> {
    let inputs = &record.inputs;
    let form = |name: &str| inputs.get(name).is_some();
    let run = || match () {
        () if form("steps") => compare::run(record, expected),
        () if form("promotion") => promotion::run(record, expected),
        () if form("optimizer") => training::optimizer(record, expected),
        () if form("schedule") => training::schedule(record, expected),
        () => Err("no form of inputs that this runner knows".into()),
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!(
            "PANIC: {}",
            text.or(panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
        ))
    })
}

/// Runs a record against what PyTorch gives, or against what we give instead. There the record must fail as it
/// stands: an entry that is no longer needed is stale.
fn check(record: &Record) -> Result<(), String> {
    let Some(deviation) = deviations::of(&record.id) else { return run(record, &record.expected) };
    if run(record, &record.expected).is_ok() {
        return Err(format!("listed as a deviation, but agrees ({})", deviation.why));
    }
    let mut expected = record.expected.clone();
    (deviation.ours)(&mut expected);
    run(record, &expected)
}

fn section(name: &str) {
    let records: Vec<&Record> = records().iter().filter(|r| r.section() == name).collect();
    assert!(!records.is_empty(), "no records in section {name}");
    let failures: Vec<String> = records
        .iter()
        .filter_map(|r| check(r).err().map(|wrong| format!("{}: {}\n    {wrong}", r.id, r.what)))
        .collect();
    let (failed, all) = (failures.len(), records.len());
    assert!(failures.is_empty(), "{failed} of {all} records fail:\n{}", failures.join("\n"));
}

macro_rules! sections {
    ($($test:ident = $name:literal;)*) => {
        $(#[test] fn $test() { section($name) })*
        const SECTIONS: &[&str] = &[$($name),*];
    };
}

sections! {
    facts = "facts";
    a1_geometry = "A1";
    a2_view_and_reshape = "A2";
    a3_memory_formats = "A3";
    a4_layout_of_results = "A4";
    a5_preserved_formats = "A5";
    a6_views_and_copies = "A6";
    a7_slicing = "A7";
    a8_expand_and_broadcast = "A8";
    a9_unfold_diagonal_as_strided = "A9";
    a10_overlapping_writes = "A10";
    a11_in_place_and_autograd = "A11";
    a12_gradients = "A12";
    a13_promotion = "A13";
    a15_reductions_and_nan = "A15";
    a16_stability = "A16";
    a17_cross_entropy = "A17";
    a18_conv2d_arguments = "A18";
    a19_conv2d_layouts = "A19";
    a20_conv2d_gradients = "A20";
    a22_pooling = "A22";
    a23_batch_norm_and_dropout = "A23";
    a25_optimizers = "A25";
    a26_schedules = "A26";
    t_small_inputs = "T";
}

#[test]
fn every_section_has_a_test() {
    let tested: BTreeSet<&str> = SECTIONS.iter().copied().collect();
    let there: BTreeSet<&str> = records().iter().map(|r| r.section()).collect();
    assert_eq!(tested, there);
    assert_eq!(records().len(), 596);
}
