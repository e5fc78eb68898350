//! The views that lead from a leaf to an operand.

use serde_json::Value;
use stridegrad::Tensor;

use super::Problem;
use super::args::ints;

/// One step of a chain.
pub(super) fn step(x: &Tensor, name: &str, args: &[Value]) -> Result<Tensor, Problem> {
    let wrong = || Problem::Wrong(format!("chain step {name} with arguments {args:?}"));
    let int = |i: usize| args.get(i).and_then(Value::as_i64).ok_or_else(wrong);
    let maybe = |i: usize| match args.get(i) {
        Some(Value::Null) | None => Ok(None),
        Some(v) => v.as_i64().map(Some).ok_or_else(wrong),
    };
    let list = |i: usize| args.get(i).and_then(ints).ok_or_else(wrong);
    Ok(match name {
        "view" => x.try_view(list(0)?)?,
        "reshape" => x.try_reshape(list(0)?)?,
        "permute" => x.try_permute(list(0)?)?,
        "expand" => x.try_expand(list(0)?)?,
        "transpose" => x.try_transpose(int(0)?, int(1)?)?,
        "narrow" => x.try_narrow(int(0)?, int(1)?, int(2)?)?,
        "select" => x.try_select(int(0)?, int(1)?)?,
        "slice" => x.try_slice(int(0)?, maybe(1)?, maybe(2)?, maybe(3)?.unwrap_or(1))?,
        "unsqueeze" => x.try_unsqueeze(int(0)?)?,
        "squeeze" => match maybe(0)? {
            Some(dim) => x.try_squeeze_dims(dim)?,
            None => x.try_squeeze()?,
        },
        "as_strided" => as_strided(x, list(0)?, list(1)?, maybe(2)?)?,
        "flatten" => x.try_flatten(maybe(0)?.unwrap_or(0), maybe(1)?.unwrap_or(-1))?,
        "unfold" => x.try_unfold(int(0)?, int(1)?, int(2)?)?,
        "diagonal" => {
            x.try_diagonal(maybe(0)?.unwrap_or(0), maybe(1)?.unwrap_or(0), maybe(2)?.unwrap_or(1))?
        }
        "movedim" => x.try_movedim(list(0)?, list(1)?)?,
        _ => return Err(Problem::Wrong(format!("unknown chain step {name}"))),
    })
}

/// `as_strided` with an offset as it is written; a negative one is refused as PyTorch does.
pub(super) fn as_strided(
    x: &Tensor,
    size: Vec<i64>,
    stride: Vec<i64>,
    offset: Option<i64>,
) -> Result<Tensor, Problem> {
    // A negative offset becomes one that lies in no storage.
    let offset = offset.map(|o| usize::try_from(o).unwrap_or(usize::MAX));
    Ok(x.try_as_strided(size, stride, offset)?)
}
