//! Which call a record's op stands for.

use stridegrad::Tensor;

use super::args::Args;
use super::{Problem, elementwise, layers, movement};

/// What a family of ops gives: outputs, or a problem; [`Problem::Unknown`] for an op of another family.
pub(super) type Outputs = Result<Vec<Tensor>, Problem>;

/// Operand `k`.
pub(super) fn operand(xs: &[Tensor], k: usize) -> Result<&Tensor, Problem> {
    xs.get(k).ok_or_else(|| Problem::Wrong(format!("operand {k} is missing")))
}

/// One output.
pub(super) fn one(t: Tensor) -> Vec<Tensor> {
    vec![t]
}

/// Calls the op.
pub(super) fn call(op: &str, args: &Args, xs: &[Tensor]) -> Outputs {
    for family in
        [elementwise::call, elementwise::reduce, movement::call, movement::index, layers::call, layers::loss]
    {
        match family(op, args, xs) {
            Err(Problem::Unknown) => {}
            known => return known,
        }
    }
    Err(Problem::Unknown)
}
