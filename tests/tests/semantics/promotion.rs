//! Tables of type promotion.

use serde_json::Value;
use stridegrad_autograd::{Operand, Tensor};
use stridegrad_core::{DType, Device, result_type};

use crate::language::Record;

fn operand(kind: &str, name: &str) -> Operand {
    let ones = |sizes: &[usize]| {
        let dtype = DType::from_name(name).unwrap();
        Operand::Tensor(Tensor::full_on(sizes, 1, dtype, Device::CPU))
    };
    match (kind, name) {
        ("dim", _) => ones(&[2]),
        ("zero_dim", _) => ones(&[]),
        ("number", "bool") => true.into(),
        ("number", "int") => 1.into(),
        ("number", "float") => 1.5.into(),
        other => panic!("unknown operand {other:?}"),
    }
}

/// The rule, and an op that follows it, in both orders.
pub fn run(record: &Record, expected: &Value) -> Result<(), String> {
    let kind = |side: &str| record.inputs["promotion"][side].as_str().unwrap();
    let mut wrong = Vec::new();
    for (left, row) in expected["table"].as_object().unwrap() {
        for (right, want) in row.as_object().unwrap() {
            let want = DType::from_name(want.as_str().unwrap()).unwrap();
            let (a, b) = (operand(kind("left"), left), operand(kind("right"), right));
            let mut check = |what: &str, got: Result<DType, stridegrad_core::Error>| match got {
                Ok(got) if got == want => {}
                Ok(got) => wrong.push(format!("{what} of {left} and {right}: {got}, expected {want}")),
                Err(e) => wrong.push(format!("{what} of {left} and {right}: {e}")),
            };
            check("result type", Ok(result_type(&[a.type_arg(), b.type_arg()])));
            check("result type, reversed", Ok(result_type(&[b.type_arg(), a.type_arg()])));
            if let Operand::Tensor(x) = &a {
                check("product", x.try_mul(b.clone()).map(|z| z.dtype()));
            }
            if let Operand::Tensor(y) = &b {
                check("product, reversed", y.try_mul(a.clone()).map(|z| z.dtype()));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}
