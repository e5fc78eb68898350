//! What the examples print.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn strides() {
    let program = env!("CARGO_BIN_EXE_strides");
    let expected = include_str!("../expected/strides.txt");
    let got = text(&run(program, &[]));
    for (i, (got, expected)) in got.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, expected, "line {} of examples/expected/strides.txt", i + 1);
    }
    assert_eq!(got.lines().count(), expected.lines().count());
    // One section, by name and by number.
    let expand = text(&run(program, &["--section", "expand"]));
    assert!(expand.starts_with("6. ") && got.contains(expand.trim_end()));
    assert_eq!(text(&run(program, &["--section", "6"])), expand);
    assert!(!run(program, &["--section", "none"]).status.success());
    assert_eq!(text(&run(program, &["--list"])).lines().count(), 13);
}

#[test]
fn gradcheck() {
    let got = text(&run(env!("CARGO_BIN_EXE_gradcheck"), &[]));
    assert_eq!(got.matches(": right").count(), 4, "{got}");
    assert_eq!(got.matches(": wrong").count(), 3, "{got}");
}
