//! Checking the gradient of an op of one's own: right ones, and three ways to be wrong.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use stridegrad::prelude::*;
use stridegrad::{GradcheckOptions, gradcheck, gradgradcheck};

/// An op of one's own: the Gaussian `exp(-(x / width)^2 / 2)`. Made of tensor ops, it has a gradient already.
fn gaussian(x: &Tensor, width: &Tensor) -> Tensor {
    let z = x / width;
    (&z * &z * -0.5).exp()
}

/// The same with a mistake: `detach` hides one factor, and half of the gradient with it.
fn half_a_gradient(x: &Tensor, width: &Tensor) -> Tensor {
    let z = x / width;
    (&z * z.detach() * -0.5).exp()
}

/// The sum of neighbours, for row-major matrices only: it takes the strides for granted.
fn neighbours(x: &Tensor) -> Tensor {
    let (rows, columns) = (x.sizes()[0], x.sizes()[1]);
    let next = x.as_strided([rows, columns - 1], [columns, 1], Some(x.storage_offset() + 1));
    x.narrow(1, 0, columns as i64 - 1) + next
}

/// The same for every layout.
fn neighbours_of_any(x: &Tensor) -> Tensor {
    x.slice(1, None, Some(-1), 1) + x.slice(1, Some(1), None, 1)
}

/// Prints what a check says, and whether that is what was to be expected.
fn report(what: &str, result: stridegrad::Result<()>, right: bool) -> bool {
    match &result {
        Ok(()) => println!("{what}: right"),
        Err(e) => println!("{what}: wrong\n    {}", e.message()),
    }
    result.is_ok() == right
}

fn main() -> ExitCode {
    // Differences need f64. What requires a gradient is checked, in every layout.
    let x = Tensor::from_slice(&[-1.0f64, 0.5, 2.0, 0.1, -0.4, 1.2], [2, 3]).requires_grad_(true);
    let width = Tensor::from_slice(&[0.5f64, 1.5, 1.0], [3]).requires_grad_(true);
    let inputs = [x, width];
    let x = &inputs[..1];
    let options = GradcheckOptions::default;
    let as_expected = [
        report("gaussian", gradcheck(|t| gaussian(&t[0], &t[1]), &inputs, options()), true),
        report("its second derivatives", gradgradcheck(|t| gaussian(&t[0], &t[1]), &inputs, options()), true),
        report(
            "gaussian with a detach",
            gradcheck(|t| half_a_gradient(&t[0], &t[1]), &inputs, options()),
            false,
        ),
        // Right on the row-major matrix it was written for, and so it passes without the sweep over layouts.
        report(
            "neighbours, row-major only",
            gradcheck(|t| neighbours(&t[0]), x, options().layouts(false)),
            true,
        ),
        report("neighbours, in every layout", gradcheck(|t| neighbours(&t[0]), x, options()), false),
        report("neighbours by slices", gradcheck(|t| neighbours_of_any(&t[0]), x, options()), true),
        // Differences cannot be told from values that f32 has rounded.
        report(
            "gaussian in f32",
            gradcheck(
                |t| gaussian(&t[0], &Tensor::scalar(1.0)),
                &[Tensor::ones([2]).requires_grad_(true)],
                options(),
            ),
            false,
        ),
    ];
    if as_expected.contains(&false) {
        eprintln!("not what this example expects");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
