//! Checkpoints: the same gradients with less memory, or an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use stridegrad_autograd::{
    BackwardOptions, BatchNormOptions, GradOptions, GradcheckOptions, Tensor, checkpoint, checkpoint_with,
    default_generator, grad, gradcheck, gradgradcheck, no_grad,
};
use stridegrad_core::{ErrorKind, Generator};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).requires_grad_(true)
}

fn block(x: &Tensor, w: &Tensor) -> Tensor {
    let h = x.mul(w).sin();
    h.narrow(0, 0, 2).mul_(3.0); // a write through a view, inside
    h.square().tanh().mul(&h)
}

fn checkpointed(x: &Tensor, w: &Tensor) -> Tensor {
    let w = w.clone();
    checkpoint(move |x| block(&x[0], &w), &[x])
}

#[test]
fn gradients_are_those_without() {
    let (x, w) = (leaf(&[0.1, -0.2, 0.3]), leaf(&[-1.0, 0.5, -0.7]));
    let f = |t: &[Tensor]| checkpointed(&t[0], &t[1]);
    gradcheck(f, &[x.clone(), w.clone()], GradcheckOptions::default()).unwrap();
    gradgradcheck(f, &[x.clone(), w.clone()], GradcheckOptions::default()).unwrap();

    // Bit for bit, of what was captured too; through grad() nothing is accumulated.
    let gradients = |y: Tensor| {
        let found = grad(&[&y.sum()], &[&x, &w], None, GradOptions::default()).unwrap();
        found.into_iter().map(|g| g.unwrap().to_vec::<f64>()).collect::<Vec<_>>()
    };
    assert_eq!(gradients(checkpointed(&x, &w)), gradients(block(&x, &w)));
    assert!(x.grad().is_none() && w.grad().is_none());

    // Twice with retain_graph, then freed.
    let y = checkpointed(&x, &w).sum();
    let keep = BackwardOptions { retain_graph: true, create_graph: false };
    y.backward_with(None, keep);
    let once = w.grad().unwrap().to_vec::<f64>();
    y.backward();
    assert_eq!(w.grad().unwrap().to_vec::<f64>(), once.iter().map(|v| v * 2.0).collect::<Vec<_>>());
    assert!(y.try_backward().unwrap_err().message().contains("second time"));
}

#[test]
fn forward_runs_again_once_and_only_for_backward() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let f = move |x: &[Tensor]| {
        counted.fetch_add(1, Ordering::Relaxed);
        x[0].exp().square().sin()
    };
    let x = leaf(&[0.5]);
    let y = checkpoint(f.clone(), &[&x]);
    assert!(y.graph().to_string().contains("recomputed in backward"));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    y.backward();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert!(!no_grad(|| checkpoint(f, &[&x])).requires_grad());
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

/// A chain of ops that each save their result holds one tensor, not one an op.
#[test]
fn saved_values_are_gone_after_forward() {
    let x = leaf(&[0.5; 1000]);
    let chain = |x: &Tensor| (0..50).fold(x.clone(), |t, _| t.sin());
    let bytes = |y: &Tensor| {
        let text = y.graph().to_string();
        let kept = |l: &str| l.split("saved ").nth(1)?.split(' ').next()?.parse::<usize>().ok();
        text.lines().filter_map(kept).sum::<usize>()
    };
    assert_eq!(bytes(&chain(&x)), 50 * 8000);
    let y = checkpoint(move |x| chain(&x[0]), &[&x]);
    assert_eq!(bytes(&y), 0);
    y.sum().backward();
    let plain = leaf(&[0.5; 1000]);
    chain(&plain).sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), plain.grad().unwrap().to_vec::<f64>());
}

#[test]
fn random_numbers_are_drawn_again() {
    let own = Generator::new(3);
    let x = leaf(&[1.0; 64]);
    let g = own.clone();
    let f = move |x: &[Tensor]| x[0].dropout(0.5, true, &default_generator()).dropout(0.5, true, &g).square();
    let y = checkpoint_with(f, &[&x], std::slice::from_ref(&own));
    let after = own.state();
    y.sum().backward();
    // d/dx of (m x)^2 at 1 is 2 m^2, where y is m^2.
    let twice: Vec<f64> = y.to_vec::<f64>().iter().map(|v| 2.0 * v).collect();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), twice);
    assert!(twice.contains(&0.0) && twice.contains(&32.0));
    assert_eq!(own.state(), after, "backward draws nothing that others would miss");
}

#[test]
fn nested_checkpoints_and_batch_norm() {
    let x = Tensor::from_slice(&[1.0f64, 2.0, 4.0, 8.0, 5.0, 7.0], [3, 2]).requires_grad_(true);
    let (mean, var) = (Tensor::zeros([2]).to_dtype(x.dtype()), Tensor::ones([2]).to_dtype(x.dtype()));
    let inner = move |x: &Tensor| {
        x.batch_norm(Some(&mean), Some(&var), None, None, BatchNormOptions::training()).exp()
    };
    let plain = inner.clone();
    let nested = move |x: &[Tensor]| {
        let inner = inner.clone();
        checkpoint(move |x| inner(&x[0]), &[&x[0].sin()]).square()
    };
    checkpoint(nested, &[&x]).sum().backward();
    let found = x.grad().unwrap().to_vec::<f64>();
    x.zero_grad();
    plain(&x.sin()).square().sum().backward();
    assert_eq!(found, x.grad().unwrap().to_vec::<f64>());
}

#[test]
fn what_changed_since_forward_is_an_error() {
    let message = |y: Tensor| {
        let e = y.sum().try_backward().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Autograd);
        e.message().to_string()
    };
    let (x, w) = (leaf(&[1.0, 2.0, 3.0]), leaf(&[1.0, 1.0, 1.0]));
    let y = checkpointed(&x, &w);
    no_grad(|| w.mul_(2.0));
    assert!(message(y).contains("an input of mul has been modified by an inplace operation"));
    let z = x.mul(1.0);
    let y = checkpointed(&z, &w);
    z.mul_(2.0);
    assert!(message(y).contains("input 0 of the checkpoint has been modified"));
    let first = AtomicBool::new(true);
    let fickle = move |x: &[Tensor]| match first.swap(false, Ordering::Relaxed) {
        true => x[0].sin(),
        false => x[0].cos(),
    };
    assert!(message(checkpoint(fickle, &[&x])).contains(r#"["sin"] in forward, and ["cos"]"#));
}

#[test]
fn graphs_print() {
    let x = Tensor::ones([2, 3]).requires_grad_(true);
    assert!(x.detach().graph().is_empty());
    let y = x.mul(&x).sum();
    let graph = y.graph();
    let place = |line: u32| format!("{}:{line}", file!());
    let line = line!() - 3;
    let expected = format!(
        "#0 sum -> f32 [] at {0}, from #1\n#1 mul -> f32 [2, 3], saved 48 bytes at {0}, from #2, #2\n#2 leaf -> f32 [2, 3] at {1}\n",
        place(line),
        place(line - 2)
    );
    assert_eq!((graph.to_string(), graph.len()), (expected, 3));
    let dot = graph.to_dot();
    assert!(dot.contains("n1 -> n2;\n  n1 -> n2;") && dot.contains("fillcolor=lightblue"), "{dot}");
    y.backward();
    assert!(y.graph().to_string().contains("saved values freed"));
}

#[test]
fn explanations() {
    let t = Tensor::arange(24.0).view([2, 3, 4]);
    assert!(t.explain().contains("contiguous: row-major without gaps\nflattening is a view"));
    let text = t.permute([1, 2, 0]).explain();
    assert!(text.contains("dim 2 (size 2) has stride 12, row-major order wants 1"), "{text}");
    assert!(text.contains("dims merge to sizes [12, 2] at most\nflattening would copy 96 bytes"), "{text}");
    let text = t.select(0, 1).narrow(1, 0, 2).explain();
    assert!(
        text.contains("reads 6 of the 24 cells")
            && text.contains("  .   .   0   1   .   .\ncell     16  17  18  19"),
        "{text}"
    );
    let text = Tensor::arange(2.0).expand([3, 2]).explain();
    assert!(text.contains("6 elements in 2 cells") && text.contains("dim 0 repeats"), "{text}");
    assert!(text.ends_with("element  *  *\n"), "{text}");
    assert!(Tensor::zeros([2, 0]).explain().contains("reads 0 of the 0 cells"));
    assert!(Tensor::scalar(1.0).explain().contains("reads 1 of the 1 cells"));
    assert!(Tensor::zeros([100]).explain().ends_with("and 36 cells more\n"));
    let wide = Tensor::zeros([1]).expand([1i64 << 40]);
    assert!(wide.explain().contains("too many elements to draw"));
}

/// Neither backward nor the end of the graph recurses from one checkpoint into the next.
#[test]
fn many_checkpoints_in_a_row() {
    let x = leaf(&[1.0]);
    let chain = || (0..50_000).fold(x.clone(), |t, _| checkpoint(|t| t[0].sin().cos(), &[&t]));
    drop(chain());
    let y = chain();
    y.backward();
    assert!(x.grad().unwrap().item::<f64>().is_finite());
}
