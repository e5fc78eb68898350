//! A process killed at any point while saving leaves the old file or the new one, never a broken one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use stridegrad_io::safetensors::{FileDType, SafeTensors, Spec, write};
use stridegrad_io::write_atomically;

const CHILD: &str = "STRIDEGRAD_TEST_SAVES_TO";
const ABORT_AT: &str = "STRIDEGRAD_TEST_ABORTS_AT";
const TENSORS: usize = 4;
const LEN: usize = 1 << 16;

/// Saves four tensors that all hold `value`, and aborts before tensor `abort_at` where that is asked for.
fn save(path: &Path, value: u8, abort_at: Option<usize>) {
    let specs: Vec<Spec> = (0..TENSORS)
        .map(|i| Spec { name: format!("t{i}"), dtype: FileDType::U8, shape: vec![LEN] })
        .collect();
    let metadata = BTreeMap::from([("value".to_owned(), value.to_string())]);
    write_atomically(path, |out| {
        write(out, &specs, &metadata, &mut |i, bytes| {
            if abort_at == Some(i) {
                std::process::abort();
            }
            bytes.resize(LEN, value);
            Ok(())
        })
    })
    .unwrap();
}

/// The one value that a whole file holds.
fn value(path: &Path) -> u8 {
    let file = SafeTensors::open(path).expect("the file is broken");
    let value = file.header().metadata["value"].parse().unwrap();
    for i in 0..TENSORS {
        assert!(
            file.bytes(&format!("t{i}")).unwrap().iter().all(|&b| b == value),
            "the file mixes two saves"
        );
    }
    value
}

fn child(path: &Path) -> Command {
    let mut c = Command::new(std::env::current_exe().unwrap());
    c.args(["--exact", "child_saves", "--nocapture"]).env(CHILD, path);
    c.stdout(Stdio::null()).stderr(Stdio::null());
    c
}

/// Not a test by itself: what the other tests start as a process, and then kill.
#[test]
fn child_saves() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    if let Ok(at) = std::env::var(ABORT_AT) {
        save(path.as_ref(), 2, Some(at.parse().unwrap()));
        return;
    }
    for value in (1..=200u8).cycle() {
        save(path.as_ref(), value, None);
    }
}

#[test]
fn killed_at_random_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    save(&path, 0, None);
    let mut changed = 0;
    for round in 0..30u64 {
        let before = value(&path);
        let mut running = child(&path).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(2_000 + 1_700 * (round * 7 % 30)));
        running.kill().unwrap();
        running.wait().unwrap();
        changed += usize::from(value(&path) != before);
    }
    assert!(changed > 0, "no child ever got to save");
}

#[test]
fn aborted_between_tensors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    for at in 0..=TENSORS {
        save(&path, 1, None);
        let status = child(&path).env(ABORT_AT, at.to_string()).status().unwrap();
        assert_eq!(status.success(), at == TENSORS);
        assert_eq!(value(&path), if at == TENSORS { 2 } else { 1 });
    }
}
