//! Steps that read the tree's files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Outcome, Result, command::root};

const WARN_LINES: usize = 600;
const MAX_LINES: usize = 900;

/// Crates that may hold `unsafe` code.
const UNSAFE_CRATES: &[&str] = &["crates/core", "crates/cpu", "crates/cuda"];

/// What holds no source of ours.
const SKIPPED: &[&str] = &["target", ".git", ".venv", "node_modules", "__pycache__"];

/// All files of the repository, relative to its root, sorted.
fn all() -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if SKIPPED.iter().any(|s| entry.file_name() == *s) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(&root) {
                found.push(relative.to_owned());
            }
        }
    }
    found.sort();
    found
}

fn rust() -> impl Iterator<Item = (PathBuf, String)> {
    let rust = all().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.filter_map(|path| fs::read_to_string(root().join(&path)).ok().map(|text| (path, text)))
}

fn verdict(problems: Vec<String>, summary: String) -> Result {
    if problems.is_empty() { Ok(Outcome::Passed(summary)) } else { Err(problems.join("\n")) }
}

pub fn lengths() -> Result {
    let (mut count, mut longest) = (0, (0, PathBuf::new()));
    let mut problems = Vec::new();
    for (path, text) in rust() {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            problems.push(format!("{}: {lines} lines, at most {MAX_LINES}: split it", path.display()));
        } else if lines > WARN_LINES {
            println!("warning: {}: {lines} lines", path.display());
        }
        count += 1;
        longest = longest.max((lines, path));
    }
    verdict(
        problems,
        format!("{count} files, the longest is {} with {} lines", longest.1.display(), longest.0),
    )
}

/// The code of a line, roughly: without a line comment and without what stands in quotes.
fn code(line: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::new(), false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            // The characters '"' and '\"' open no string.
            '"' if !quoted && line[..at].ends_with('\'') && line[at + 1..].starts_with('\'') => {}
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => break,
            _ if !quoted => out.push(c),
            _ => {}
        }
    }
    out
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

/// Whether a file is the root of a library or of a program.
fn is_crate_root(path: &Path) -> bool {
    path.ends_with("src/lib.rs")
        || path.ends_with("src/main.rs")
        || path.parent().is_some_and(|p| p.ends_with("src/bin"))
}

pub fn unsafe_code() -> Result {
    let mut problems = Vec::new();
    let mut roots = 0;
    for (path, text) in rust() {
        if UNSAFE_CRATES.iter().any(|c| path.starts_with(c)) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            if has_word(&code(line), "unsafe") {
                problems.push(format!("{}:{}: unsafe outside {UNSAFE_CRATES:?}", path.display(), at + 1));
            }
        }
        if is_crate_root(&path) {
            roots += 1;
            if !text.contains("#![forbid(unsafe_code)]") {
                problems.push(format!("{}: lacks #![forbid(unsafe_code)]", path.display()));
            }
        }
    }
    verdict(problems, format!("{roots} libraries and programs forbid it"))
}

/// Beginnings of paths that exist on one machine only.
fn machine_paths() -> Vec<String> {
    ["home", "root", "Users", "work", "builds"].iter().map(|top| format!("/{top}/")).collect()
}

/// The first absolute path of a build machine in a line.
fn machine_path<'a>(line: &str, beginnings: &'a [String]) -> Option<&'a str> {
    let starts_here = |at: usize| {
        let before = line[..at].chars().next_back();
        // The middle of a longer path or address is not an absolute path.
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}~*".contains(c))
    };
    let found = beginnings.iter().find(|b| line.match_indices(b.as_str()).any(|(at, _)| starts_here(at)));
    found.map(String::as_str)
}

pub fn paths() -> Result {
    let beginnings = machine_paths();
    let mut count = 0;
    let mut problems = Vec::new();
    for path in all() {
        // Other files are data.
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        count += 1;
        for (at, line) in text.lines().enumerate() {
            if let Some(beginning) = machine_path(line, &beginnings) {
                problems.push(format!(
                    "{}:{}: a path of one machine, {beginning}...",
                    path.display(),
                    at + 1
                ));
            }
        }
    }
    verdict(problems, format!("{count} text files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_is_found_in_code_only() {
        let quoted = "let a = \"\\\"\"; unsafe {}";
        for found in [
            "unsafe { x }",
            "pub unsafe fn f() {}",
            "let a = \"s\"; unsafe {}",
            quoted,
            "let q = '\"'; unsafe {}",
        ] {
            assert!(has_word(&code(found), "unsafe"), "{found}");
        }
        for clean in
            ["// unsafe here", "let a = \"unsafe\";", "#![forbid(unsafe_code)]", "let x = 1; // unsafe"]
        {
            assert!(!has_word(&code(clean), "unsafe"), "{clean}");
        }
    }

    #[test]
    fn machine_paths_are_found() {
        let beginnings = machine_paths();
        for top in ["home", "root", "Users"] {
            assert!(machine_path(&format!("see /{top}/someone/file"), &beginnings).is_some());
            assert!(machine_path(&format!("\"/{top}/x\""), &beginnings).is_some());
            assert!(
                machine_path(&format!("https://example.org/{top}/x and a/{top}/b"), &beginnings).is_none()
            );
        }
    }
}
