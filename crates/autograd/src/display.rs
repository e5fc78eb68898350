//! Printing tensors, as PyTorch does.
//!
//! Numbers share one format: whole ones are printed without digits, others with 4, and all in scientific notation if
//! the largest is over a thousand times the smallest, above 1e8, or the smallest is below 1e-4 (zeros and non-finite
//! ones do not count). Beyond 1000 elements, dims longer than 6 are cut to their ends.

use std::fmt::{self, Write};

use stridegrad_core::{DType, Device, Result};

use crate::Tensor;

/// Beyond so many elements, only the ends of long dims are printed.
const THRESHOLD: usize = 1000;
/// How many elements of each end.
const EDGE: usize = 3;
/// How long a line may be.
const LINE: usize = 80;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} strides {:?}", self.dtype(), self.sizes(), self.strides())?;
        if let Some(op) = self.grad_fn() {
            write!(f, ", grad_fn={op}")?;
        } else if self.requires_grad() {
            write!(f, ", requires_grad")?;
        }
        write!(f, ")")
    }
}

/// `tensor([[1., 2.], [3., 4.]])`: the values, then device, dtype and gradient where they are not the default. A precision
/// (`{t:.2}`) sets the number of digits.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// assert_eq!(Tensor::from_slice(&[1.0f32, 2.5], [2]).to_string(), "tensor([1.0000, 2.5000])");
/// assert_eq!(format!("{:.1}", Tensor::from_slice(&[1.0f64, 2.5], [2])), "tensor([1.0, 2.5], dtype=f64)");
/// ```
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPEN: &str = "tensor(";
        let body = if self.numel() == 0 {
            "[]".to_string()
        } else {
            match crate::no_grad(|| body(self, OPEN.len(), f.precision().unwrap_or(4))) {
                Ok(text) => text,
                // Values that cannot be read are no reason to fail a message that shows them.
                Err(e) => format!("<{e}>"),
            }
        };
        let mut text = format!("{OPEN}{body}");
        // Suffixes that would make the last line too long start a new one.
        let mut line = text.len() - text.rfind('\n').map_or(0, |k| k + 1) + 2;
        for suffix in suffixes(self) {
            if line + suffix.len() + 2 > LINE {
                let _ = write!(text, ",\n{:1$}{suffix}", "", OPEN.len());
                line = OPEN.len() + suffix.len();
            } else {
                let _ = write!(text, ", {suffix}");
                line += suffix.len() + 2;
            }
        }
        text.push(')');
        f.write_str(&text)
    }
}

fn suffixes(t: &Tensor) -> Vec<String> {
    let mut all = Vec::new();
    if t.device() != Device::CPU {
        all.push(format!("device='{}'", t.device()));
    }
    let empty = t.numel() == 0;
    if empty && t.dim() != 1 {
        let sizes: Vec<String> = t.sizes().iter().map(usize::to_string).collect();
        all.push(format!("size=({})", sizes.join(", ")));
    }
    let shown = matches!(t.dtype(), DType::I64 | DType::Bool) && !empty || t.dtype() == DType::F32;
    if !shown {
        all.push(format!("dtype={}", t.dtype()));
    }
    match t.grad_fn() {
        Some(op) => all.push(format!("grad_fn=<{op}>")),
        None if t.requires_grad() => all.push("requires_grad=True".to_string()),
        None => {}
    }
    all
}

/// The values that are printed, and whether a dim was cut to its ends.
struct Printed {
    text: Vec<String>,
    sizes: Vec<usize>,
    cut: Vec<bool>,
    width: usize,
}

fn body(t: &Tensor, indent: usize, precision: usize) -> Result<String> {
    let summarize = t.numel() > THRESHOLD;
    let cut: Vec<bool> = t.sizes().iter().map(|&n| summarize && n > 2 * EDGE).collect();
    let mut ends = t.detach();
    for (d, _) in cut.iter().enumerate().filter(|(_, c)| **c) {
        let edge = EDGE as i64;
        ends = Tensor::try_cat(
            &[ends.try_narrow(d as i64, 0, edge)?, ends.try_narrow(d as i64, -edge, edge)?],
            d as i64,
        )?;
    }
    let (text, width) = match t.dtype() {
        dtype if dtype.is_floating() => floats(&ends.try_to_vec_f64()?, precision),
        DType::Bool => {
            let name = |v: bool| if v { "True" } else { "False" }.to_string();
            padded(ends.try_to_vec::<bool>()?.into_iter().map(name).collect())
        }
        _ => {
            let values = ends.try_to_dtype(DType::I64)?.try_to_vec::<i64>()?;
            padded(values.iter().map(i64::to_string).collect())
        }
    };
    let printed = Printed { text, sizes: ends.sizes().to_vec(), cut, width };
    Ok(printed.block(0, 0, indent))
}

/// Texts aligned to the right, and their width.
fn padded(text: Vec<String>) -> (Vec<String>, usize) {
    let width = text.iter().map(String::len).max().unwrap_or(1);
    (text.into_iter().map(|s| format!("{s:>width$}")).collect(), width)
}

fn floats(values: &[f64], precision: usize) -> (Vec<String>, usize) {
    let counted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite() && *v != 0.0).collect();
    let whole = counted.iter().all(|v| v.fract() == 0.0);
    let largest = counted.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let smallest = counted.iter().fold(f64::INFINITY, |m, v| m.min(v.abs()));
    let scientific = !counted.is_empty() && (largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4);
    let print = |v: f64| match v {
        _ if v.is_nan() => "nan".to_string(),
        _ if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.to_string(),
        _ if scientific => exponent(v, precision),
        _ if whole => format!("{v:.0}."),
        _ => format!("{v:.precision$}"),
    };
    let width = counted.iter().map(|&v| print(v).len()).max().unwrap_or(1);
    (values.iter().map(|&v| format!("{:>width$}", print(v))).collect(), width)
}

/// `1.0000e-05`: with a sign and at least two digits in the exponent.
fn exponent(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
    format!("{digits}e{sign}{power:0>2}")
}

impl Printed {
    /// Dim `d` of the block whose first value is number `start`, at a depth of `indent` columns.
    fn block(&self, d: usize, start: usize, indent: usize) -> String {
        let rank = self.sizes.len();
        let Some(&n) = self.sizes.get(d) else { return self.text[start].clone() };
        let stride: usize = self.sizes[d + 1..].iter().product();
        let mut parts: Vec<String> =
            (0..n).map(|i| self.block(d + 1, start + i * stride, indent + 1)).collect();
        if self.cut[d] {
            // A place of its own among numbers, a line among blocks.
            parts.insert(EDGE, if d + 1 == rank { " ..." } else { "..." }.to_string());
        }
        let margin = " ".repeat(indent + 1);
        if d + 1 < rank {
            let gap = "\n".repeat(rank - d - 1);
            return format!("[{}]", parts.join(&format!(",{gap}{margin}")));
        }
        let per_line = (LINE.saturating_sub(indent) / (self.width + 2)).max(1);
        let lines: Vec<String> = parts.chunks(per_line).map(|line| line.join(", ")).collect();
        format!("[{}]", lines.join(&format!(",\n{margin}")))
    }
}
