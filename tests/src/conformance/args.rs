//! An op's arguments.

use serde_json::Value;
use stridegrad::{DType, Reduction, Scalar};

/// A JSON object of arguments; what is absent has the default that the op gives.
#[derive(Debug, Clone)]
pub struct Args(Value);

fn number(v: &Value) -> Option<f64> {
    match v.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity" | "inf") => Some(f64::INFINITY),
        Some("-Infinity" | "-inf") => Some(f64::NEG_INFINITY),
        _ => v.as_f64(),
    }
}

/// A number of the category in which it is written.
fn scalar(v: &Value) -> Option<Scalar> {
    match v {
        Value::Bool(b) => Some(Scalar::Bool(*b)),
        Value::Number(n) if n.is_i64() => n.as_i64().map(Scalar::Int),
        _ => number(v).map(Scalar::Float),
    }
}

impl Args {
    /// Of a JSON object.
    pub fn new(value: Value) -> Args {
        Args(value)
    }

    fn wrong(&self, name: &str, what: &str) -> String {
        format!("argument {name} should be {what}, but is {}", self.0[name])
    }

    /// Whether it is there, and not null.
    pub fn has(&self, name: &str) -> bool {
        !self.0[name].is_null()
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> Result<i64, String> {
        self.0[name].as_i64().ok_or_else(|| self.wrong(name, "a whole number"))
    }

    /// A whole number, or a default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, String> {
        if self.has(name) { self.int(name) } else { Ok(default) }
    }

    /// A whole number where there is one.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>, String> {
        self.has(name).then(|| self.int(name)).transpose()
    }

    /// A count.
    pub fn count(&self, name: &str) -> Result<usize, String> {
        usize::try_from(self.int(name)?).map_err(|_| self.wrong(name, "a count"))
    }

    /// A number.
    pub fn float(&self, name: &str) -> Result<f64, String> {
        number(&self.0[name]).ok_or_else(|| self.wrong(name, "a number"))
    }

    /// A number, or a default.
    pub fn float_or(&self, name: &str, default: f64) -> Result<f64, String> {
        if self.has(name) { self.float(name) } else { Ok(default) }
    }

    /// A number with its category.
    pub fn scalar(&self, name: &str) -> Result<Scalar, String> {
        scalar(&self.0[name]).ok_or_else(|| self.wrong(name, "a number"))
    }

    /// A number with its category, where there is one.
    pub fn maybe_scalar(&self, name: &str) -> Result<Option<Scalar>, String> {
        self.has(name).then(|| self.scalar(name)).transpose()
    }

    /// Yes or no; no where it is absent.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        self.flag_or(name, false)
    }

    /// Yes or no, or a default.
    pub fn flag_or(&self, name: &str, default: bool) -> Result<bool, String> {
        match &self.0[name] {
            Value::Null => Ok(default),
            Value::Bool(b) => Ok(*b),
            Value::Number(n) => Ok(n.as_i64() != Some(0)),
            _ => Err(self.wrong(name, "true or false")),
        }
    }

    /// A word, empty where it is absent.
    pub fn word(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    /// Whole numbers: a list, or one.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, String> {
        ints(&self.0[name]).ok_or_else(|| self.wrong(name, "whole numbers"))
    }

    /// Whole numbers where there are any.
    pub fn maybe_ints(&self, name: &str) -> Result<Option<Vec<i64>>, String> {
        self.has(name).then(|| self.ints(name)).transpose()
    }

    /// As many counts as there are spatial axes, from a list or one number for all, or from a default.
    pub fn each<const N: usize>(&self, name: &str, default: usize) -> Result<[usize; N], String> {
        if !self.has(name) {
            return Ok([default; N]);
        }
        let wrong = || self.wrong(name, &format!("one count or {N}"));
        let counts: Vec<usize> = self
            .ints(name)?
            .into_iter()
            .map(|n| usize::try_from(n).map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        match counts[..] {
            [n] => Ok([n; N]),
            _ => counts.try_into().map_err(|_| wrong()),
        }
    }

    /// A dtype.
    pub fn dtype(&self, name: &str) -> Result<DType, String> {
        DType::from_name(self.word(name)).ok_or_else(|| self.wrong(name, "a dtype"))
    }

    /// A loss's reduction, the mean where it is absent.
    pub fn reduction(&self) -> Result<Reduction, String> {
        match self.word("reduction") {
            "none" => Ok(Reduction::None),
            "mean" | "" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            _ => Err(self.wrong("reduction", "none, mean or sum")),
        }
    }
}

/// Whole numbers of a list, or one.
pub(super) fn ints(v: &Value) -> Option<Vec<i64>> {
    match v {
        Value::Array(list) => list.iter().map(Value::as_i64).collect(),
        one => Some(vec![one.as_i64()?]),
    }
}
