//! Makes mutants of every registered op and runs the harness over them: `cargo xtask mutate [op]`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use stridegrad_testkit::mutants;

fn main() -> ExitCode {
    // Panics of mutants are caught and judged; their messages would drown the table.
    std::panic::set_hook(Box::new(|_| {}));
    let filter = std::env::args().nth(1).unwrap_or_default();
    let surveys = mutants::run(&filter);
    print!("{}", mutants::table(&surveys));
    if surveys.is_empty() || surveys.iter().any(|s| !s.survivors.is_empty()) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
