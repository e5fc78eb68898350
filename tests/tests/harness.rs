//! Every registered op through the harness. Arguments that are no flags filter by the name of the check, as in
//! `cargo test --test harness -- conv2d::grad`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use stridegrad_testkit::harness;

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if std::env::args().any(|a| a == "--list") {
        println!("harness: test");
        return ExitCode::SUCCESS;
    }
    let missing = unregistered();
    for op in &missing {
        println!("FAILED {op}: crates/autograd/src/ops/{op}.rs has no entry in the registry");
    }
    let start = Instant::now();
    let filter = filters.first().map(String::as_str).unwrap_or_default();
    // Panics are caught and reported as failures: their own messages would drown the table.
    std::panic::set_hook(Box::new(|_| {}));
    let report = harness::run(filter);
    println!("{report}harness: {:.1} s", start.elapsed().as_secs_f64());
    if report.failures.is_empty() && missing.is_empty() && (report.total() > 0 || !filter.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The files and folders of ops that no entry of the registry has the name of.
fn unregistered() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/autograd/src/ops");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let known: Vec<&str> = stridegrad_autograd::ops::registry().iter().map(|op| op.name).collect();
    let mut missing: Vec<String> = entries
        .filter_map(|e| Some(e.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| !["mod", "elementwise"].contains(&name.as_str()) && !known.contains(&name.as_str()))
        .collect();
    missing.sort();
    missing
}
