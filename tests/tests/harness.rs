//! Every registered op through the harness. Arguments that are no flags filter by the name of the check, as in
//! `cargo test --test harness -- conv2d::grad`.

use std::path::{Path, PathBuf};
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
        println!("FAILED {op}");
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

/// Ops that the harness does not know: files without an entry in the registry, and methods that no spec calls.
fn unregistered() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/autograd/src/ops");
    let known: Vec<&str> = stridegrad_autograd::ops::registry().iter().map(|op| op.name).collect();
    let mut missing = Vec::new();
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let text: Vec<(String, String)> = files.into_iter().map(|(name, path)| (name, read(&path))).collect();
    let specs: String = text.iter().map(|(_, t)| spec_part(t)).collect();
    for (op, source) in &text {
        let mut faces: Vec<&str> = Vec::new();
        for line in
            source.lines().map(str::trim_start).filter(|l| l.starts_with("pub fn ") && l.contains(" | try_"))
        {
            let face = line.split(" | ").nth(1).and_then(|rest| rest.split(['(', '<']).next());
            faces.extend(face);
        }
        if !faces.is_empty() && !known.contains(&op.as_str()) {
            missing.push(format!("{op} has no entry in the registry"));
        }
        for face in faces {
            // A call, or the function itself as a value.
            if !["(", ",", ")"].iter().any(|end| specs.contains(&format!("{face}{end}"))) {
                missing.push(format!("{face} of {op} stands in no spec"));
            }
        }
    }
    missing.sort();
    missing
}

/// The files below a folder, each with the name of the op it belongs to: its own, or that of its folder.
fn sources(folder: &Path, all: &mut Vec<(String, PathBuf)>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|e| e.expect("an entry").path()) {
        let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            let mut inside = Vec::new();
            sources(&path, &mut inside);
            all.extend(inside.into_iter().map(|(_, p)| (name.clone(), p)));
        } else {
            all.push((name, path));
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What follows the `testkit` feature's gate; all of a file that is nothing but a spec.
fn spec_part(source: &str) -> &str {
    match source.find("fn spec()").or(source.find("use crate::spec::*")) {
        Some(at) if source.contains("faces!") => &source[at..],
        Some(_) => source,
        None => "",
    }
}
