//! Project tasks: `cargo xtask ci` runs what CI runs; every step is a command of its own.
#![forbid(unsafe_code)]

use std::{process::ExitCode, time::Instant};

mod command;
mod deps;
mod files;
mod loom;
mod python;

/// What a step that did not fail has to say.
pub enum Outcome {
    /// It ran and found nothing wrong; the text sums it up and may be empty.
    Passed(String),
    /// It could not run here; the text says what is missing.
    Skipped(String),
}

/// The result of a step; the error is what to print.
pub type Result = std::result::Result<Outcome, String>;

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result,
}

/// What is a command but no step of `ci`.
const OTHERS: &[Step] = &[Step {
    name: "mutate",
    about: "faults put into every op are caught by the harness (minutes)",
    run: command::mutate,
}];

/// The steps of `ci`, quick ones first.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "rustfmt changes nothing", run: command::fmt },
    Step { name: "lengths", about: "Rust files are of readable length", run: files::lengths },
    Step { name: "unsafe", about: "`unsafe` stays in the crates that may use it", run: files::unsafe_code },
    Step { name: "paths", about: "no path of a build machine is in the tree", run: files::paths },
    Step { name: "arrows", about: "dependencies between the crates point one way", run: deps::arrows },
    Step { name: "tree", about: "the facade's dependency tree stays small", run: deps::tree },
    Step {
        name: "licences",
        about: "every dependency's licence is allowed by deny.toml",
        run: deps::licences,
    },
    Step { name: "deny", about: "cargo-deny, where it is installed", run: deps::deny },
    Step { name: "clippy", about: "clippy with warnings denied", run: command::clippy },
    Step { name: "doc", about: "rustdoc with warnings denied", run: command::doc },
    Step { name: "test", about: "all tests, doc tests included", run: command::test },
    Step { name: "loom", about: "the storage guards under loom", run: loom::run },
    Step { name: "safetensors", about: "a saved file opens in the Python package", run: python::safetensors },
];

fn help() {
    println!("usage: cargo xtask <command>\n\n  {:<12} every step below, in order", "ci");
    for step in STEPS {
        println!("  {:<12} {}", step.name, step.about);
    }
    println!("\nnot in ci:");
    for step in OTHERS {
        println!("  {:<12} {}", step.name, step.about);
    }
    println!(
        "\nWith CI set in the environment, what is missing on the machine is a failure (but for cargo-deny)."
    );
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let chosen: Vec<&Step> = match names.as_slice() {
        [name] if name == "ci" => STEPS.iter().collect(),
        [_, ..] => {
            match names.iter().map(|n| STEPS.iter().chain(OTHERS).find(|s| s.name == n).ok_or(n)).collect() {
                Ok(steps) => steps,
                Err(unknown) => {
                    eprintln!("unknown command {unknown:?}\n");
                    help();
                    return ExitCode::from(2);
                }
            }
        }
        [] => {
            help();
            return ExitCode::from(2);
        }
    };
    run(&chosen)
}

/// Runs every step even if one fails, then prints a table; fails if any failed.
fn run(steps: &[&Step]) -> ExitCode {
    let mut table = Vec::new();
    let mut failed = false;
    for step in steps {
        println!("\n=== {}: {}", step.name, step.about);
        let start = Instant::now();
        let (verdict, text) = match (step.run)() {
            Ok(Outcome::Passed(text)) => ("passed", text),
            Ok(Outcome::Skipped(text)) => ("skipped", text),
            Err(text) => {
                failed = true;
                ("FAILED", text)
            }
        };
        println!("{verdict}{}{text}", if text.is_empty() { "" } else { ": " });
        let first = text.lines().next().unwrap_or_default().to_owned();
        table.push(format!(
            "{:<12} {verdict:<8} {:>6.1} s  {first}",
            step.name,
            start.elapsed().as_secs_f64()
        ));
    }
    println!("\n{}", table.join("\n"));
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quick steps are tests too, so that plain `cargo test` holds them.
    #[test]
    fn quick_steps_pass() {
        for name in ["lengths", "unsafe", "paths", "arrows"] {
            let step = STEPS.iter().find(|s| s.name == name).expect("a step");
            if let Err(text) = (step.run)() {
                panic!("cargo xtask {name}: {text}");
            }
        }
    }
}
