//! The records of a file.

use serde_json::Value;
use stridegrad::DType;

use super::args::Args;

/// One case.
#[derive(Debug)]
pub struct Record {
    /// Its name, which its tensors' names begin with.
    pub id: String,
    /// The op.
    pub op: String,
    /// The op's arguments.
    pub args: Args,
    /// The operands.
    pub inputs: Vec<Operand>,
    /// What is expected; `None` where a refusal is.
    pub outputs: Option<Vec<Expected>>,
    /// The tolerance, where it is not the dtype's.
    pub tolerance: Option<f64>,
}

/// A leaf and what leads from it to the operand.
#[derive(Debug)]
pub struct Operand {
    /// The dtype.
    pub dtype: DType,
    /// Whether its gradient is checked.
    pub grad: bool,
    /// The views.
    pub chain: Vec<(String, Vec<Value>)>,
}

/// An expected output.
#[derive(Debug)]
pub struct Expected {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// The dtype.
    pub dtype: DType,
    /// The strides, where they are checked.
    pub strides: Option<Vec<isize>>,
}

/// The records of a JSON text. Python writes `NaN` and `Infinity` bare, which is not JSON: they are read as strings.
///
/// # Errors
/// A message that names the record and the field.
pub fn parse(text: &str) -> Result<Vec<Record>, String> {
    let value: Value = serde_json::from_str(&quote_specials(text)).map_err(|e| e.to_string())?;
    let list = value.as_array().ok_or("a list of records is expected")?;
    list.iter()
        .enumerate()
        .map(|(i, r)| record(r).map_err(|what| format!("record {i} ({}): {what}", r["id"])))
        .collect()
}

fn record(r: &Value) -> Result<Record, String> {
    let inputs = list(&r["inputs"], "inputs")?;
    let expected = match r.get("error") {
        Some(e) if !e.is_null() => None,
        _ => Some(list(&r["outputs"], "outputs")?.iter().map(expected).collect::<Result<_, _>>()?),
    };
    Ok(Record {
        id: text(&r["id"], "id")?,
        op: text(&r["op"], "op")?,
        args: Args::new(r["args"].clone()),
        inputs: inputs.iter().map(operand).collect::<Result<_, _>>()?,
        outputs: expected,
        tolerance: r["tol"].as_f64(),
    })
}

fn operand(i: &Value) -> Result<Operand, String> {
    let step = |s: &Value| {
        let parts = list(s, "chain")?;
        let name = parts.first().ok_or("an empty step of a chain")?;
        Ok((text(name, "chain")?, parts[1..].to_vec()))
    };
    let chain = list(&i["chain"], "chain")?.iter().map(step).collect::<Result<_, String>>()?;
    Ok(Operand { dtype: dtype(&i["dtype"])?, grad: i["grad"].as_bool().unwrap_or(false), chain })
}

fn expected(o: &Value) -> Result<Expected, String> {
    let number = |v: &Value| v.as_i64().ok_or_else(|| format!("{v} is no whole number"));
    let sizes = list(&o["sizes"], "sizes")?
        .iter()
        .map(|v| number(v).and_then(|n| usize::try_from(n).map_err(|_| format!("{n} is no size"))))
        .collect::<Result<_, _>>()?;
    let strides = match &o["strides"] {
        Value::Null => None,
        s => Some(
            list(s, "strides")?.iter().map(|v| number(v).map(|n| n as isize)).collect::<Result<_, _>>()?,
        ),
    };
    Ok(Expected { sizes, dtype: dtype(&o["dtype"])?, strides })
}

fn list<'a>(v: &'a Value, what: &str) -> Result<&'a Vec<Value>, String> {
    v.as_array().ok_or_else(|| format!("{what} must be a list, not {v}"))
}

fn text(v: &Value, what: &str) -> Result<String, String> {
    v.as_str().map(str::to_owned).ok_or_else(|| format!("{what} must be a text, not {v}"))
}

fn dtype(v: &Value) -> Result<DType, String> {
    v.as_str().and_then(DType::from_name).ok_or_else(|| format!("{v} is no dtype"))
}

/// Puts quotes around the bare words `NaN`, `Infinity` and `-Infinity`.
fn quote_specials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut inside) = (text, false);
    while let Some(c) = rest.chars().next() {
        let special = ["NaN", "-Infinity", "Infinity"].into_iter().find(|s| !inside && rest.starts_with(s));
        let taken = match special {
            Some(word) => {
                out.push_str(&format!("\"{word}\""));
                word.len()
            }
            None => {
                // An escaped character inside a string is taken with its backslash.
                let n = if inside && c == '\\' {
                    1 + rest[1..].chars().next().map_or(0, char::len_utf8)
                } else {
                    c.len_utf8()
                };
                inside ^= c == '"';
                out.push_str(&rest[..n]);
                n
            }
        };
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_specials_are_quoted_outside_strings_only() {
        let text = r#"{"a": [NaN, -Infinity, Infinity], "b": "NaN \" Infinity"}"#;
        let want = r#"{"a": ["NaN", "-Infinity", "Infinity"], "b": "NaN \" Infinity"}"#;
        assert_eq!(quote_specials(text), want);
    }

    #[test]
    fn a_record_with_a_mistake_is_named() {
        let e =
            parse(r#"[{"id": "7", "op": "neg", "args": {}, "inputs": [{"dtype": "f31"}], "outputs": []}]"#);
        assert!(e.unwrap_err().starts_with(r#"record 0 ("7"): "#));
    }
}
