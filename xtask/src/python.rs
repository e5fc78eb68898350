//! A file saved by the project, opened by the Python safetensors package.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    Outcome, Result,
    command::{cargo, missing, read, root, show, target},
};

/// The Python of an environment with numpy and safetensors, made on first use.
fn python() -> std::result::Result<PathBuf, String> {
    let venv = target().join("venv");
    let program = venv.join("bin").join("python");
    let ready = |p: &PathBuf| read(Command::new(p).args(["-c", "import numpy, safetensors"])).is_ok();
    if !ready(&program) {
        read(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        read(Command::new(&program).args(["-m", "pip", "install", "--quiet", "numpy", "safetensors"]))?;
    }
    if ready(&program) { Ok(program) } else { Err("numpy and safetensors cannot be imported".to_owned()) }
}

pub fn safetensors() -> Result {
    let python = match python() {
        Ok(python) => python,
        Err(error) => return missing(&format!("no Python with venv, numpy and safetensors: {error}")),
    };
    let fixtures = root().join("tests").join("fixtures");
    let reference = fixtures.join("lenet.safetensors");
    let saved = target().join("check").join("lenet_saved.safetensors");
    let folder = saved.parent().expect("a path of several parts");
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Reads PyTorch's file into a network of ours and writes that.
    show(
        cargo(&["run", "--quiet", "-p", "stridegrad-tests", "--bin", "save_lenet", "--"])
            .args([&reference, &saved]),
    )?;
    show(Command::new(python).arg(fixtures.join("check_saved.py")).args([&saved, &reference]))?;
    Ok(Outcome::Passed("names, shapes, dtypes and values".to_owned()))
}
