//! What the benchmark programs share: timing and output.

#![forbid(unsafe_code)]

use std::time::Instant;

/// The median time of `f` in seconds, over at least five runs and about `budget` seconds, after two warm-up runs.
pub fn median(budget: f64, mut f: impl FnMut()) -> f64 {
    f();
    f();
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < 5 || (begin.elapsed().as_secs_f64() < budget && times.len() < 1000) {
        let t = Instant::now();
        f();
        times.push(t.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints rows as one JSON object, name to value, for compare.py.
pub fn print_json(rows: &[(String, f64)]) {
    let map: serde_json::Map<String, serde_json::Value> =
        rows.iter().map(|(k, v)| (k.clone(), serde_json::json!(v))).collect();
    println!("{}", serde_json::Value::Object(map));
}
