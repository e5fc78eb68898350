//! The storage guards under loom, which tries every interleaving.

use crate::{
    Outcome, Result,
    command::{cargo, read, root, target},
};

/// Tests whose name or module has "loom" in it, built with `--cfg loom` in a target folder of their own.
pub fn run() -> Result {
    if !uses_loom() {
        return Ok(Outcome::Skipped("crates/core has no loom tests".to_owned()));
    }
    let folder = target().join("loom");
    let mut command = cargo(&["test", "-p", "stridegrad-core", "--lib", "--tests"]);
    command.arg("--target-dir").arg(folder).args(["--", "loom"]);
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default() + " --cfg loom";
    let text = read(command.env("RUSTFLAGS", flags))?;
    print!("{text}");
    let passed: usize = text.lines().filter_map(passed).sum();
    if passed == 0 {
        Err("no loom test ran".to_owned())
    } else {
        Ok(Outcome::Passed(format!("{passed} tests")))
    }
}

/// The number of passed tests in a summary line of the test harness.
fn passed(line: &str) -> Option<usize> {
    line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
}

fn uses_loom() -> bool {
    let manifest = std::fs::read_to_string(root().join("crates/core/Cargo.toml")).unwrap_or_default();
    manifest.lines().any(|line| line.starts_with("loom"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn summary_lines() {
        assert_eq!(super::passed("test result: ok. 7 passed; 0 failed; 0 ignored"), Some(7));
        assert_eq!(super::passed("running 7 tests"), None);
    }
}
