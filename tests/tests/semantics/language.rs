//! The records of `semantics.json` and their small language of steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::{Map, Value};
use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, Element, Result, Scalar};

/// One record of the file.
pub struct Record {
    pub id: String,
    pub what: String,
    pub inputs: Value,
    pub expected: Value,
}

impl Record {
    /// The part of the id before the first slash; the cases of the T list are one section.
    pub fn section(&self) -> &str {
        match self.id.split('/').next().unwrap_or_default() {
            t if t.starts_with('T') => "T",
            section => section,
        }
    }
}

/// All records, read once.
pub fn records() -> &'static [Record] {
    static RECORDS: OnceLock<Vec<Record>> = OnceLock::new();
    RECORDS.get_or_init(|| {
        let path = stridegrad_tests::fixture("semantics.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let Value::Array(all) = serde_json::from_str(&text).unwrap() else { panic!("not a list") };
        all.into_iter()
            .map(|mut r| Record {
                id: r["id"].as_str().unwrap().to_owned(),
                what: r["what"].as_str().unwrap().to_owned(),
                inputs: r["inputs"].take(),
                expected: r["expected"].take(),
            })
            .collect()
    })
}

/// One step: `names = op(on, args)`.
pub struct Step {
    pub names: Vec<String>,
    pub op: String,
    pub on: Vec<String>,
    pub args: Args,
}

/// A step's arguments. It knows which were asked for, so that none is overlooked.
pub struct Args {
    all: Map<String, Value>,
    used: RefCell<BTreeSet<String>>,
}

impl Args {
    pub fn new(all: &Value) -> Args {
        Args { all: all.as_object().cloned().unwrap_or_default(), used: RefCell::default() }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.used.borrow_mut().insert(name.to_owned());
        self.all.get(name).filter(|v| !v.is_null())
    }

    /// The arguments that nobody asked for.
    pub fn overlooked(&self) -> Vec<&str> {
        let used = self.used.borrow();
        self.all.keys().map(String::as_str).filter(|k| !used.contains(*k)).collect()
    }

    pub fn opt_int(&self, name: &str) -> Option<i64> {
        self.get(name).map(|v| v.as_i64().unwrap_or_else(|| panic!("{name}: not an integer: {v}")))
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.opt_int(name).unwrap_or(default)
    }

    pub fn opt_float(&self, name: &str) -> Option<f64> {
        self.get(name).map(number)
    }

    pub fn float(&self, name: &str, default: f64) -> f64 {
        self.opt_float(name).unwrap_or(default)
    }

    /// A number as Rust would have it: an integer or a float.
    pub fn scalar(&self, name: &str) -> Scalar {
        match self.get(name) {
            Some(Value::Number(n)) if n.is_i64() => Scalar::Int(n.as_i64().unwrap_or_default()),
            Some(v) => Scalar::Float(number(v)),
            None => panic!("no argument {name}"),
        }
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |v| v.as_bool().unwrap_or_else(|| panic!("{name}: not a bool: {v}")))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// A list of integers; a single one is a list of one.
    pub fn opt_ints(&self, name: &str) -> Option<Vec<i64>> {
        self.get(name).filter(|v| !v.is_string()).map(ints)
    }

    pub fn ints(&self, name: &str) -> Vec<i64> {
        self.opt_ints(name).unwrap_or_else(|| panic!("no argument {name}"))
    }

    /// A number for both image dims, or one for each.
    pub fn opt_pair(&self, name: &str) -> Option<[i64; 2]> {
        self.opt_ints(name).map(|v| if v.len() == 1 { [v[0]; 2] } else { [v[0], v[1]] })
    }

    pub fn dtype(&self, name: &str) -> DType {
        parse_dtype(self.get(name).unwrap_or_else(|| panic!("no argument {name}")))
    }
}

fn parse_dtype(v: &Value) -> DType {
    v.as_str().and_then(DType::from_name).unwrap_or_else(|| panic!("no dtype: {v}"))
}

pub fn ints(v: &Value) -> Vec<i64> {
    match v {
        Value::Array(all) => all.iter().map(|v| v.as_i64().unwrap()).collect(),
        one => vec![one.as_i64().unwrap()],
    }
}

/// A number; NaN and the infinities are strings.
pub fn number(v: &Value) -> f64 {
    match v {
        Value::String(s) => s.parse().unwrap(),
        v => v.as_f64().unwrap_or_else(|| panic!("not a number: {v}")),
    }
}

pub fn steps(record: &Record) -> Vec<Step> {
    let names = |v: &Value| -> Vec<String> {
        v.as_array().unwrap().iter().map(|n| n.as_str().unwrap().to_owned()).collect()
    };
    let step = |s: &Value| Step {
        names: names(&s["names"]),
        op: s["op"].as_str().unwrap().to_owned(),
        on: names(&s["on"]),
        args: Args::new(&s["args"]),
    };
    record.inputs["steps"].as_array().unwrap().iter().map(step).collect()
}

/// The leaves: row-major tensors of given values.
pub fn leaves(record: &Record) -> Result<BTreeMap<String, Tensor>> {
    let specs = record.inputs["leaves"].as_object().unwrap();
    specs.iter().map(|(name, spec)| Ok((name.clone(), leaf(spec)?))).collect()
}

fn leaf(spec: &Value) -> Result<Tensor> {
    let sizes: Vec<usize> = ints(&spec["sizes"]).iter().map(|&s| s as usize).collect();
    let n = sizes.iter().product::<usize>();
    let values: Vec<f64> = match &spec["data"] {
        Value::Array(all) => all.iter().map(number).collect(),
        how => match how.as_str().unwrap() {
            "arange" => (0..n).map(|i| i as f64).collect(),
            "zeros" => vec![0.0; n],
            "ones" => vec![1.0; n],
            other => panic!("unknown data {other}"),
        },
    };
    of_values(&values, parse_dtype(&spec["dtype"]), &sizes)?
        .try_requires_grad_(spec["grad"].as_bool().unwrap())
}

/// A row-major tensor of `dtype`: converted on the host, without any op.
pub fn of_values(values: &[f64], dtype: DType, sizes: &[usize]) -> Result<Tensor> {
    fn of<T: Element>(values: &[f64], sizes: &[usize]) -> Result<Tensor> {
        let values: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
        Tensor::try_from_slice(&values, sizes)
    }
    match dtype {
        DType::F64 => of::<f64>(values, sizes),
        DType::F32 => of::<f32>(values, sizes),
        DType::F16 => of::<half::f16>(values, sizes),
        DType::BF16 => of::<half::bf16>(values, sizes),
        DType::I64 => of::<i64>(values, sizes),
        DType::I32 => of::<i32>(values, sizes),
        DType::I16 => of::<i16>(values, sizes),
        DType::I8 => of::<i8>(values, sizes),
        DType::U8 => of::<u8>(values, sizes),
        DType::Bool => of::<bool>(values, sizes),
        other => panic!("unknown dtype {other}"),
    }
}
