//! Runs a file of conformance cases: `conformance CASES.json CASES.safetensors [--only OP] [--verbose]`.
//!
//! Each failure is a line with the op, the case's id and the reason; the last line counts. Exits with 1 if any case
//! failed, 2 if the files cannot be read.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use stridegrad::io::safetensors::SafeTensors;
use stridegrad_tests::conformance::{Record, parse, run};

const USAGE: &str = "usage: conformance CASES.json CASES.safetensors [--only OP] [--verbose]";

fn main() -> ExitCode {
    match conformance(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn conformance(mut args: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let (mut files, mut only, mut verbose) = (Vec::new(), None, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => only = Some(args.next().ok_or(USAGE)?),
            "--verbose" => verbose = true,
            flag if flag.starts_with("--") => return Err(USAGE.into()),
            _ => files.push(arg),
        }
    }
    let [cases, tensors] = &files[..] else { return Err(USAGE.into()) };
    let records = read(cases)?;
    let tensors = SafeTensors::open(tensors).map_err(|e| format!("{tensors}: {e}"))?;
    // A panic is reported as the failure it is, on one line.
    std::panic::set_hook(Box::new(|_| {}));
    let report = run(&records, &tensors, only.as_deref(), |record, result| match result {
        Ok(()) if verbose => println!("ok {} {}", record.op, record.id),
        Ok(()) => {}
        Err(problem) => println!("FAILED {} {}: {problem}", record.op, record.id),
    });
    println!("{} passed, {} failed", report.passed, report.failures.len());
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &str) -> Result<Vec<Record>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    parse(&text).map_err(|e| format!("{path}: {e}"))
}
