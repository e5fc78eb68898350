//! Steps about dependencies: arrows between our crates, the size of the tree, licences.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use crate::{
    Outcome, Result,
    command::{cargo, read, root, show},
};

/// Own crates and others that a user of the facade builds, at most.
const MAX_TREE: usize = 60;

/// Which of our crates a crate may depend on (build and normal dependencies; tests may use any).
const ARROWS: &[(&str, &[&str])] = &[
    ("stridegrad-core", &[]),
    ("stridegrad-cpu", &["stridegrad-core"]),
    ("stridegrad-autograd", &["stridegrad-core", "stridegrad-cpu"]),
    ("stridegrad-derive", &[]),
    ("stridegrad-nn", &["stridegrad-core", "stridegrad-autograd", "stridegrad-derive"]),
    ("stridegrad-optim", &["stridegrad-core", "stridegrad-autograd", "stridegrad-nn"]),
    ("stridegrad-data", &["stridegrad-core", "stridegrad-autograd"]),
    ("stridegrad-io", &["stridegrad-core", "stridegrad-autograd", "stridegrad-nn", "stridegrad-optim"]),
    (
        "stridegrad",
        &[
            "stridegrad-core",
            "stridegrad-cpu",
            "stridegrad-autograd",
            "stridegrad-derive",
            "stridegrad-nn",
            "stridegrad-optim",
            "stridegrad-data",
            "stridegrad-io",
        ],
    ),
    ("stridegrad-testkit", &["stridegrad-core", "stridegrad-cpu", "stridegrad-autograd"]),
    // An example may use what a user may use.
    ("stridegrad-examples", &["stridegrad"]),
    ("xtask", &[]),
];

/// Members at the end of every arrow: they may depend on anything.
const FREE: &[&str] = &["stridegrad-tests", "stridegrad-benches"];

fn metadata(args: &[&str]) -> std::result::Result<Value, String> {
    let text = read(cargo(&["metadata", "--format-version", "1"]).args(args))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

pub fn arrows() -> Result {
    let metadata = metadata(&["--no-deps"])?;
    let names: BTreeSet<&str> = list(&metadata, "packages").filter_map(|p| p["name"].as_str()).collect();
    let mut problems = Vec::new();
    for package in list(&metadata, "packages") {
        let name = package["name"].as_str().unwrap_or_default();
        if FREE.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(n, _)| *n == name) else {
            problems.push(format!("{name}: not in the list of xtask/src/deps.rs"));
            continue;
        };
        for dependency in list(package, "dependencies").filter(|d| d["kind"] != "dev") {
            let to = dependency["name"].as_str().unwrap_or_default();
            if names.contains(to) && !allowed.contains(&to) {
                problems.push(format!("{name} -> {to}: may only depend on {allowed:?}"));
            }
        }
    }
    if problems.is_empty() {
        Ok(Outcome::Passed(format!("{} crates", names.len())))
    } else {
        Err(problems.join("\n"))
    }
}

pub fn tree() -> Result {
    let text = read(&mut cargo(&["tree", "-e", "normal,build", "-p", "stridegrad", "--prefix", "none"]))?;
    let crates: BTreeSet<&str> =
        text.lines().map(|l| l.trim_end_matches(" (*)")).filter(|l| !l.is_empty()).collect();
    // The hooks of the op harness are for tests alone.
    let features =
        read(&mut cargo(&["tree", "-e", "features,normal,build", "-p", "stridegrad", "--prefix", "none"]))?;
    if features.contains("feature \"testkit\"") {
        return Err("the facade turns on the feature `testkit`".to_owned());
    }
    let summary = format!("{} crates, at most {MAX_TREE}", crates.len());
    if crates.len() <= MAX_TREE {
        Ok(Outcome::Passed(summary))
    } else {
        Err(format!("{summary}:\n{}", crates.into_iter().collect::<Vec<_>>().join("\n")))
    }
}

/// The licences that deny.toml allows: the strings of its `allow = [...]`.
fn allowed_licences() -> std::result::Result<BTreeSet<String>, String> {
    let text = fs::read_to_string(root().join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let body =
        text.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']')).map(|(body, _)| body);
    let body = body.ok_or("deny.toml: no `allow = [...]`")?;
    Ok(body.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Whether an SPDX expression can be met with the allowed licences.
fn permitted(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens = spaced.split_whitespace().peekable();
    fn any<'a>(
        tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
        allowed: &BTreeSet<String>,
    ) -> bool {
        let mut met = all(tokens, allowed);
        while tokens.next_if_eq(&"OR").is_some() {
            met |= all(tokens, allowed);
        }
        met
    }
    fn all<'a>(
        tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
        allowed: &BTreeSet<String>,
    ) -> bool {
        let mut met = true;
        loop {
            met &= match tokens.next() {
                Some("(") => {
                    let inner = any(tokens, allowed);
                    inner & (tokens.next() == Some(")"))
                }
                Some(name) => {
                    // An exception only adds permissions.
                    if tokens.next_if_eq(&"WITH").is_some() {
                        tokens.next();
                    }
                    allowed.contains(name)
                }
                None => false,
            };
            if tokens.next_if_eq(&"AND").is_none() {
                return met;
            }
        }
    }
    any(&mut tokens, allowed) & tokens.next().is_none()
}

pub fn licences() -> Result {
    let allowed = allowed_licences()?;
    let metadata = metadata(&[])?;
    let mut count = BTreeMap::new();
    let mut problems = Vec::new();
    for package in list(&metadata, "packages") {
        let licence = package["license"].as_str().unwrap_or("none stated");
        *count.entry(licence).or_insert(0) += 1;
        if !permitted(licence, &allowed) {
            problems.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    if problems.is_empty() {
        Ok(Outcome::Passed(format!("{} packages", count.values().sum::<usize>())))
    } else {
        Err(problems.join("\n"))
    }
}

/// cargo-deny also looks at advisories; building it takes longer than all our tests, so it is optional.
pub fn deny() -> Result {
    if read(&mut cargo(&["deny", "--version"])).is_err() {
        return Ok(Outcome::Skipped("cargo-deny is not installed (cargo install cargo-deny)".to_owned()));
    }
    show(&mut cargo(&["deny", "check"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions() {
        let allowed: BTreeSet<String> = ["MIT", "Apache-2.0", "Zlib"].map(str::to_owned).into();
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Zlib",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(permitted(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND GPL-3.0", "none stated", "(MIT", ""] {
            assert!(!permitted(bad, &allowed), "{bad}");
        }
    }
}
