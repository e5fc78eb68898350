//! gradcheck finds what is wrong, and only that.

use std::sync::atomic::{AtomicU64, Ordering};

use stridegrad_autograd::{GradcheckOptions, Tensor, gradcheck, gradgradcheck};
use stridegrad_core::{ErrorKind, Result};

fn leaf(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_slice(values, sizes).requires_grad_(true)
}

fn six() -> Tensor {
    leaf(&[0.5, -1.25, 2.0, 0.75, -0.5, 1.5], &[2, 3])
}

fn message(r: Result<()>) -> String {
    r.expect_err("the check must fail").to_string()
}

#[test]
fn right_gradients_pass_in_every_layout() {
    let options = GradcheckOptions::default();
    for options in [options, options.fast(true), options.layouts(false)] {
        let (x, row) = (six(), leaf(&[1.0, -2.0, 0.5], &[3]));
        gradcheck(|t| &t[0] * &t[1] + t[0].exp(), &[x.clone(), row.clone()], options).unwrap();
        gradgradcheck(|t| &t[0] * &t[1] * &t[0], &[x.clone(), row], options).unwrap();
        gradcheck(|t| t[0].sum_dims(0, false), std::slice::from_ref(&x), options).unwrap();
        gradcheck(|t| t[0].t().reshape([6]), &[x.t().detach().requires_grad_(true)], options).unwrap();
        gradcheck(|t| vec![t[0].exp(), -&t[0]], std::slice::from_ref(&x), options).unwrap();
        gradcheck(|t| t[0].try_select(1, -1), &[x], options).unwrap();
    }
    let image = leaf(&(0..24).map(|i| 0.1 * f64::from(i) - 1.0).collect::<Vec<_>>(), &[2, 3, 2, 2]);
    gradcheck(|t| t[0].exp().sum_dims([2, 3], true) * &t[0], &[image], options).unwrap();
}

#[test]
fn inputs_without_gradient_and_edge_shapes_are_fine() {
    let options = GradcheckOptions::default();
    let fixed = Tensor::from_slice(&[2.0f64, 3.0, 4.0], [3]);
    let counts = Tensor::from_slice(&[1i64, 2, 3], [3]);
    gradcheck(|t| &t[0] * &t[1] * &t[2], &[six(), fixed, counts], options).unwrap();
    gradcheck(|t| t[0].exp(), &[leaf(&[0.5], &[])], options).unwrap();
    gradcheck(|t| t[0].exp(), &[leaf(&[], &[2, 0])], options).unwrap();
    gradcheck(|t| t[0].exp(), &[leaf(&[0.5], &[1, 1, 1, 1])], options).unwrap();
}

#[test]
fn a_missing_part_of_a_gradient_is_found() {
    let wrong = gradcheck(|t| &t[0] * &t[0].detach(), &[six()], GradcheckOptions::default());
    let text = message(wrong);
    assert!(text.contains("input 0 at [0, 0]: numeric 0.99999") && text.contains("analytic 0.5"), "{text}");
    assert!(text.contains("(of output 0 at [0, 0])") && text.contains("gradcheck.rs:"), "{text}");

    let fast = GradcheckOptions::default().fast(true);
    assert!(message(gradcheck(|t| &t[0] * &t[0].detach(), &[six()], fast)).contains("random direction"));
}

#[test]
fn an_input_that_gets_no_gradient_is_found() {
    let (x, y) = (six(), six());
    let text = message(gradcheck(|t| &t[0] + &t[1].detach(), &[x.clone(), y], GradcheckOptions::default()));
    assert!(text.contains("input 1 at [0, 0]") && text.contains("gets no gradient"), "{text}");
    let text =
        message(gradcheck(|t| t[0].detach().exp(), std::slice::from_ref(&x), GradcheckOptions::default()));
    assert!(text.contains("gets no gradient"), "{text}");
    // No gradient is right where nothing changes.
    let zeros = |t: &[Tensor]| t[0].detach() * 0.0;
    gradcheck(zeros, &[x], GradcheckOptions::default()).unwrap();
}

#[test]
fn what_depends_on_the_layout_is_found() {
    // Reads the storage in its own order: right for row-major inputs alone.
    let blind = |t: &[Tensor]| t[0].as_strided([2, 3], [3, 1], None) * 2.0;
    gradcheck(blind, &[six()], GradcheckOptions::default().layouts(false)).unwrap();
    let text = message(gradcheck(blind, &[six()], GradcheckOptions::default()));
    assert!(text.contains("(inputs permuted)"), "{text}");

    let second = |t: &[Tensor]| &t[0] * &t[1].as_strided([2, 3], [3, 1], None);
    let text = message(gradcheck(second, &[six(), six()], GradcheckOptions::default()));
    assert!(text.contains("permuted"), "{text}");
}

#[test]
fn chance_is_found() {
    let calls = AtomicU64::new(0);
    let moody = |t: &[Tensor]| &t[0] * (1.0 + 1e-13 * calls.fetch_add(1, Ordering::Relaxed) as f64);
    let text = message(gradcheck(moody, &[six()], GradcheckOptions::default()));
    assert!(text.contains("not deterministic"), "{text}");
}

#[test]
fn a_wrong_second_derivative_is_found() {
    // The first derivative is right, but computed from a value that hides how it depends on x.
    let f = |t: &[Tensor]| {
        let x = &t[0];
        x * &x.detach() * 2.0 - (x * x).detach()
    };
    gradcheck(f, &[six()], GradcheckOptions::default()).unwrap();
    let text = message(gradgradcheck(f, &[six()], GradcheckOptions::default()));
    assert!(text.starts_with("gradgradcheck: ") && text.contains("input 0 at [0, 0]"), "{text}");
}

#[test]
fn inputs_that_cannot_be_checked_are_refused() {
    let options = GradcheckOptions::default();
    let f = |t: &[Tensor]| t[0].exp();
    let kind = |inputs: &[Tensor]| gradcheck(f, inputs, options).unwrap_err().kind();
    assert_eq!(kind(&[six().detach()]), ErrorKind::Argument);
    assert_eq!(kind(&[Tensor::ones([2]).requires_grad_(true)]), ErrorKind::Argument);
    let spread = leaf(&[1.0], &[1]).detach().expand([3]).requires_grad_(true);
    assert_eq!(kind(&[spread]), ErrorKind::Argument);
    let failing = gradcheck(|t: &[Tensor]| t[0].try_view([7]), &[six()], options);
    assert_eq!(failing.unwrap_err().kind(), ErrorKind::Shape);
}
