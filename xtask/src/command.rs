//! Running programs, and the steps that are one cargo command each.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Outcome, Result};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).parent().expect("xtask lies in the workspace").to_owned()
}

/// The target directory of this build.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Whether this is a CI machine, where a missing tool is a failure.
pub fn strict() -> bool {
    env::var_os("CI").is_some_and(|v| !v.is_empty())
}

/// What to report where something is missing on this machine.
pub fn missing(what: &str) -> Result {
    if strict() { Err(what.to_owned()) } else { Ok(Outcome::Skipped(what.to_owned())) }
}

/// A cargo command in the root of the repository.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// Runs a command with its output on the terminal.
pub fn show(command: &mut Command) -> Result {
    let text = display(command);
    println!("$ {text}");
    match command.status() {
        Ok(status) if status.success() => Ok(Outcome::Passed(String::new())),
        Ok(status) => Err(format!("{status}: {text}")),
        Err(error) => Err(format!("{error}: {text}")),
    }
}

/// Runs a command and returns what it printed.
pub fn read(command: &mut Command) -> std::result::Result<String, String> {
    let text = display(command);
    let output = command.output().map_err(|error| format!("{error}: {text}"))?;
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(format!("{}: {text}\n{out}{err}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("output is not UTF-8: {text}"))
}

/// The command as one would type it: the program's name and its arguments.
fn display(command: &Command) -> String {
    let name =
        Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    command.get_args().fold(name, |text, arg| text + " " + &arg.to_string_lossy())
}

pub fn fmt() -> Result {
    show(&mut cargo(&["fmt", "--all", "--", "--check"]))
}

pub fn clippy() -> Result {
    show(&mut cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    // As users build it: without the harness's feature.
    show(&mut cargo(&["clippy", "-p", "stridegrad", "--", "-D", "warnings"]))
}

pub fn doc() -> Result {
    show(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

pub fn test() -> Result {
    show(&mut cargo(&["test", "--workspace", "--no-fail-fast"]))
}

pub fn mutate() -> Result {
    show(&mut cargo(&["run", "--package", "stridegrad-tests", "--bin", "mutate"]))
}
