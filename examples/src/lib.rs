//! What the examples share.
#![forbid(unsafe_code)]

use stridegrad::prelude::*;
use stridegrad::{Error, ErrorKind, Result};

/// The device of that name: `cpu`.
///
/// # Errors
/// `Device` for any other: this build has none.
pub fn device(name: &str) -> Result<Device> {
    match name {
        "cpu" => Ok(Device::cpu()),
        _ => Err(Error::new(ErrorKind::Device, "device", format!("{name:?} is not a device of this build"))
            .hint("the devices are: cpu")),
    }
}

/// The most memory this process has held at once, in bytes, where the system tells it.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// How many rows of `logits` (n, classes) have their largest value at the label in `labels` (n).
pub fn correct(logits: &Tensor, labels: &Tensor) -> Result<usize> {
    let (classes, labels) = (logits.sizes()[1], labels.try_to_vec::<i64>()?);
    let logits = logits.detach().try_to_vec::<f32>()?;
    let best = |row: &[f32]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i as i64);
    Ok(logits.chunks_exact(classes).zip(&labels).filter(|&(row, &l)| best(row) == Some(l)).count())
}
