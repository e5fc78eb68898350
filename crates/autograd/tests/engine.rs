//! The engine: in-place writes, views, versions, hooks, layouts of gradients, and graphs too deep for the stack.

use std::sync::{Arc, Mutex};

use stridegrad_autograd::{BackwardOptions, Tensor, grad, no_grad};
use stridegrad_core::{Device, ErrorKind, MemoryFormat, backend};

fn leaf(values: &[f64], sizes: &[usize]) -> Tensor {
    Tensor::from_slice(values, sizes).requires_grad_(true)
}

fn count(n: usize) -> Vec<f64> {
    (1..=n).map(|i| i as f64).collect()
}

fn of(t: &Tensor) -> Vec<f64> {
    t.grad().expect("a gradient").to_vec()
}

const KEEP: BackwardOptions = BackwardOptions { retain_graph: true, create_graph: false };
const GRAPH: BackwardOptions = BackwardOptions { retain_graph: true, create_graph: true };

/// Semantics A11.5: writes through views rebase the base.
#[test]
fn writes_through_views_of_a_base() {
    let x = leaf(&count(4), &[4]);
    let y = &x * 1.0;
    let sibling = y.narrow(0, 2, 2);
    y.narrow(0, 1, 2).mul_(10.0);
    (&y * &Tensor::from_slice(&count(4), [4])).sum().backward_with(None, KEEP);
    assert_eq!(of(&x), [1.0, 20.0, 30.0, 4.0]);
    x.zero_grad();
    (sibling * Tensor::from_slice(&[1.0, 100.0], [2])).sum().backward();
    assert_eq!(of(&x), [0.0, 0.0, 10.0, 100.0]);

    let x = leaf(&count(4), &[4]);
    let y = &x * 1.0;
    let view = y.narrow(0, 1, 2);
    y.mul_(3.0);
    view.sum().backward();
    assert_eq!(of(&x), [0.0, 3.0, 3.0, 0.0]);

    let x = leaf(&count(4), &[4]);
    let y = &x * 1.0;
    y.select(0, 1).zero_();
    y.select(0, 2).mul_(5.0);
    y.sum().backward();
    assert_eq!(of(&x), [1.0, 0.0, 5.0, 1.0]);

    let x = leaf(&count(6), &[2, 3]);
    let y = &x * 1.0;
    y.t().select(0, 0).mul_(2.0);
    y.diagonal(0, 0, 1).zero_();
    y.sum().backward();
    assert_eq!(of(&x), [0.0, 1.0, 1.0, 2.0, 0.0, 1.0]);
}

/// Semantics A11.6 and T34: a plain base that is written from a tracked value joins the graph.
#[test]
fn a_plain_base_joins_the_graph() {
    let y = leaf(&[1.0, 2.0], &[2]);
    let b = Tensor::from_slice(&[0.0f64; 4], [4]);
    let before = b.narrow(0, 0, 2);
    b.narrow(0, 1, 2).copy_(&(&y * 3.0));
    assert!(b.requires_grad() && before.requires_grad());
    b.sum().backward();
    assert_eq!(of(&y), [3.0, 3.0]);

    let s = leaf(&[5.0], &[1]);
    let y = Tensor::from_slice(&[0.0f64; 2], [2]);
    y.slice(0, Some(0), Some(1), 1).copy_(&s);
    y.sum().backward();
    assert_eq!(of(&s), [1.0]);
}

/// Semantics A11.1: one version for all views and for detach; a copy has its own.
#[test]
fn versions() {
    let x = Tensor::from_slice(&count(3), [3]);
    let (y, z, own) = (x.narrow(0, 1, 2), x.detach(), x.copy());
    y.add_(1.0);
    assert_eq!((x.version(), y.version(), z.version(), own.version()), (1, 1, 1, 0));
    no_grad(|| z.add_(1.0));
    assert_eq!((x.version(), own.version()), (2, 0));
}

/// Semantics A11.2-3 and T32: what was saved must not have changed; what was not saved may.
#[test]
fn stale_values() {
    let x = leaf(&[1.0, 2.0], &[2]);
    let loss = (&x * &x).sum();
    no_grad(|| x.copy_(&Tensor::from_slice(&[10.0f64, 20.0], [2])));
    let e = loss.try_backward().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Autograd);
    let text = e.to_string();
    assert!(text.contains("modified by an inplace operation") && text.contains("is at version 1"), "{text}");
    assert!(text.contains("expected version 0") && text.contains("engine.rs:"), "{text}");

    let x = leaf(&[1.0, 2.0], &[2]);
    let y = &x + 1.0;
    y.add_(1.0);
    y.sum().backward();
    assert_eq!(of(&x), [1.0, 1.0]);

    let y = x.exp();
    y.detach().add_(1.0);
    assert_eq!(y.sum().try_backward().unwrap_err().kind(), ErrorKind::Autograd);
}

/// Semantics A11.4, A11.7 and T16: writes that cannot be followed are refused before anything is written.
#[test]
fn refused_writes() {
    let kind = |t: &Tensor| {
        let before: Vec<f64> = t.to_vec();
        let e = t.try_add_(1.0).unwrap_err();
        assert_eq!((t.to_vec::<f64>(), t.version()), (before, 0));
        e.kind()
    };
    let x = leaf(&count(4), &[2, 2]);
    assert_eq!(kind(&x), ErrorKind::InPlace);
    assert_eq!(kind(&x.select(0, 0)), ErrorKind::InPlace);
    no_grad(|| x.add_(1.0));
    assert_eq!(x.to_vec::<f64>(), [2.0, 3.0, 4.0, 5.0]);

    let y = &x * 1.0;
    assert_eq!(kind(&y.unbind(0)[0]), ErrorKind::InPlace);
    assert_eq!(kind(&y.split(1, 0)[0].view([2])), ErrorKind::InPlace);
    assert_eq!(kind(&y.chunk(2, 0)[1]), ErrorKind::InPlace);
    assert_eq!(kind(&no_grad(|| y.select(0, 0))), ErrorKind::InPlace);
    assert_eq!(y.select(0, 0).try_requires_grad_(false).unwrap_err().kind(), ErrorKind::Autograd);
}

/// Semantics A12: roots.
#[test]
fn roots() {
    let x = leaf(&count(3), &[3]);
    assert_eq!((&x * 2.0).try_backward().unwrap_err().kind(), ErrorKind::Autograd);
    let wrong = Tensor::from_slice(&[1.0f64; 3], [1, 3]);
    assert_eq!((&x * 2.0).try_backward_with(Some(&wrong), KEEP).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(x.detach().sum().try_backward().unwrap_err().kind(), ErrorKind::Autograd);
}

/// Semantics A12: a second backward, and derivatives of derivatives (T31).
#[test]
fn again_and_higher() {
    let x = leaf(&count(3), &[3]);
    let square = (&x * &x).sum();
    square.backward_with(None, KEEP);
    square.backward();
    assert_eq!(of(&x), [4.0, 8.0, 12.0]);
    assert_eq!(square.try_backward().unwrap_err().kind(), ErrorKind::Autograd);
    x.zero_grad();
    let shifted = (&x + 1.0).sum();
    shifted.backward();
    shifted.backward();
    assert_eq!(of(&x), [2.0, 2.0, 2.0]);

    let cube = (&x * &x * &x).sum();
    let first = grad(&[&cube], &[&x], None, GRAPH).unwrap()[0].clone().unwrap();
    assert_eq!(first.to_vec::<f64>(), [3.0, 12.0, 27.0]);
    let second = grad(&[&first.sum()], &[&x], None, GRAPH).unwrap()[0].clone().unwrap();
    assert_eq!(second.to_vec::<f64>(), [6.0, 12.0, 18.0]);
    let third = grad(&[&second.sum()], &[&x], None, KEEP).unwrap()[0].clone().unwrap();
    assert_eq!(third.to_vec::<f64>(), [6.0, 6.0, 6.0]);
}

#[test]
fn grad_of_views_and_of_what_is_unused() {
    let (x, other) = (leaf(&count(4), &[4]), leaf(&[1.0], &[1]));
    let y = &x * 2.0;
    let (view, rest) = (y.narrow(0, 1, 2), y.narrow(0, 3, 1));
    let loss = (&view * &view).sum() + rest.sum();
    let found = grad(&[&loss], &[&view, &y, &x, &other], None, KEEP).unwrap();
    let values: Vec<Option<Vec<f64>>> = found.iter().map(|g| g.as_ref().map(Tensor::to_vec)).collect();
    assert_eq!(values[0].as_deref(), Some(&[8.0, 12.0][..]));
    assert_eq!(values[1].as_deref(), Some(&[0.0, 8.0, 12.0, 1.0][..]));
    assert_eq!(values[2].as_deref(), Some(&[0.0, 16.0, 24.0, 2.0][..]));
    assert_eq!(values[3], None);
    assert!(x.grad().is_none(), "grad() leaves the leaves alone");
}

/// Semantics A12: the order of hooks, and what they see.
#[test]
fn hooks() {
    let calls: Arc<Mutex<Vec<(&str, f64)>>> = Arc::default();
    let x = leaf(&[1.0], &[1]);
    let y = &x * 2.0;
    let note = |name: &'static str, f: fn(f64) -> f64| {
        let calls = calls.clone();
        move |g: &Tensor| {
            calls.lock().unwrap().push((name, g.item_f64()));
            Some(Tensor::from_slice(&[f(g.item_f64())], [1]))
        }
    };
    y.register_hook(note("y1", |g| g * 10.0));
    y.register_hook(note("y2", |g| g + 1.0));
    x.register_hook(note("x", |g| g));
    let removed = x.register_hook(note("never", |g| g));
    removed.remove();
    // Two uses: hooks see their sum, once.
    y.sum().backward_with(None, KEEP);
    assert_eq!(*calls.lock().unwrap(), [("y1", 1.0), ("y2", 10.0), ("x", 22.0)]);
    assert_eq!(of(&x), [22.0]);
    calls.lock().unwrap().clear();
    (&y + &y).sum().backward();
    assert_eq!(calls.lock().unwrap()[0], ("y1", 2.0));

    let z = leaf(&count(2), &[2]);
    let w = &z * 1.0;
    w.register_hook(|_| Some(Tensor::from_slice(&[1.0f64], [1])));
    assert_eq!(w.sum().try_backward().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(z.detach().try_register_hook(|_| None).err().unwrap().kind(), ErrorKind::Autograd);
}

#[test]
fn retained_gradients() {
    let x = leaf(&count(3), &[3]);
    let y = &x * 2.0;
    assert!(y.grad().is_none());
    y.retain_grad();
    let view = y.narrow(0, 0, 2);
    view.retain_grad();
    (&view * 3.0).sum().backward_with(None, KEEP);
    assert_eq!(of(&y), [3.0, 3.0, 0.0]);
    assert_eq!(of(&view), [3.0, 3.0]);
    // With a write in place, the gradient kept is that of the latest value.
    let y = &x * 2.0;
    y.retain_grad();
    y.mul_(5.0);
    y.sum().backward();
    assert_eq!(of(&y), [1.0, 1.0, 1.0]);
}

/// Semantics A12: nobody else's memory becomes a gradient.
#[test]
fn gradients_share_nothing() {
    let (x, y) = (leaf(&count(2), &[2]), leaf(&count(2), &[2]));
    let seed = Tensor::from_slice(&[1.0f64, 1.0], [2]);
    (&x + &y).backward_with(Some(&seed), KEEP);
    let (gx, gy) = (x.grad().unwrap(), y.grad().unwrap());
    assert!(!gx.shares_storage(&gy) && !gx.shares_storage(&seed) && !gy.shares_storage(&seed));
    gx.fill_(7.0);
    assert_eq!((of(&y), seed.to_vec::<f64>()), (vec![1.0, 1.0], vec![1.0, 1.0]));

    let z = leaf(&count(4), &[2, 2]);
    let seed = Tensor::from_slice(&[1.0f64; 4], [4]);
    z.view(4).backward_with(Some(&seed), KEEP);
    assert!(!z.grad().unwrap().shares_storage(&seed));
    // A gradient that is held is not changed by the next backward.
    let held = z.grad().unwrap();
    z.sum().backward();
    assert_eq!((held.to_vec::<f64>(), of(&z)), (vec![1.0; 4], vec![2.0; 4]));
}

/// Semantics A12: the layout contract.
#[test]
fn gradients_have_the_strides_of_their_leaves() {
    let strides = |t: &Tensor| {
        let t = t.detach().requires_grad_(true);
        (&t * &t).sum().backward();
        let once = t.grad().unwrap().strides().to_vec();
        t.zero_grad();
        // However the gradient arrives.
        let back: Vec<i64> = (0..t.dim() as i64).rev().collect();
        t.permute(back).contiguous().sum().backward();
        assert_eq!(t.grad().unwrap().strides(), once);
        once
    };
    let image = Tensor::from_slice(&count(120), [2, 3, 4, 5]);
    assert_eq!(strides(&image), [60, 20, 5, 1]);
    assert_eq!(strides(&image.to_format(MemoryFormat::ChannelsLast)), [60, 1, 15, 3]);
    let matrix = Tensor::from_slice(&count(12), [3, 4]);
    assert_eq!(strides(&matrix.t()), [1, 4]);
    assert_eq!(strides(&matrix.slice(1, None, None, 2)), [2, 1]);
    assert_eq!(strides(&matrix.reversed(0)), [4, 1]);
    let row = leaf(&[1.0], &[1]);
    row.expand([5]).sum().backward();
    assert_eq!((of(&row), row.grad().unwrap().strides()), (vec![5.0], &[1][..]));
}

/// T8 and T14.
#[test]
fn selections_of_a_base() {
    let z = leaf(&[0.0; 6], &[2, 3]);
    let rows = |start| z.slice(0, Some(start), None, 2);
    let weights = |w: [f64; 3]| Tensor::from_slice(&w, [3]);
    ((rows(0) * weights([1.0, 2.0, 3.0])).sum() + (rows(1) * weights([100.0, 101.0, 102.0])).sum())
        .backward();
    assert_eq!(of(&z), [1.0, 2.0, 3.0, 100.0, 101.0, 102.0]);

    let x = leaf(&[0.0; 2], &[2]);
    let six = Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [3, 2]);
    (x.expand([3, 2]).as_strided([3, 2], [0, 1], None) * six).sum().backward();
    assert_eq!(of(&x), [6.0, 9.0]);
    let one = leaf(&[0.0], &[1]);
    (one.expand([3]).as_strided([2], [0], None) * Tensor::from_slice(&[1.0, 10.0], [2])).sum().backward();
    assert_eq!(of(&one), [11.0]);
    let four = leaf(&count(4), &[4]);
    four.as_strided([3, 2], [1, 1], None).sum().backward();
    assert_eq!(of(&four), [1.0, 2.0, 2.0, 1.0]);
}

/// A graph a million nodes deep: built, walked and dropped without recursion.
#[test]
fn a_million_nodes() {
    let x = leaf(&[1.0], &[1]);
    let mut y = &x * 1.0;
    for _ in 0..1_000_000 {
        y = y.neg();
    }
    y.sum().backward();
    assert_eq!(of(&x), [1.0]);
    drop(y);

    // Dropped without a backward, saved values and all.
    let mut y = &x * 1.0;
    for _ in 0..100_000 {
        y = &y * &y;
    }
    drop(y);
}

#[test]
fn a_million_views() {
    let x = leaf(&[1.0, 2.0], &[1, 2]);
    let mut y = x.view([2, 1]);
    for _ in 0..1_000_000 {
        y = y.t();
    }
    (&y * 3.0).sum().backward();
    assert_eq!(of(&x), [3.0, 3.0]);
}

#[test]
fn several_threads_go_backward_at_once() {
    let x = leaf(&count(64), &[8, 8]);
    let y = &x * 2.0;
    std::thread::scope(|s| {
        for k in 0..4i64 {
            let (x, y) = (&x, &y);
            s.spawn(move || {
                for _ in 0..50 {
                    // One shared node, one of each thread's own.
                    (y.select(0, k) * 1.0 + y.select(0, k + 4)).sum().backward_with(None, KEEP);
                    let g = grad(&[&(y * x).sum()], &[x], None, KEEP).unwrap()[0].clone().unwrap();
                    assert_eq!(g.select(0, 0).select(0, 0).item::<f64>(), 4.0);
                }
            });
        }
    });
    assert_eq!(of(&x), [100.0; 64]);
}

/// Memory zero-filled for the gradients of views: one gradient of the base, however many views there are.
#[test]
fn a_thousand_selects_fill_one_gradient() {
    let zeroed = || backend::of(Device::CPU).unwrap().memory_stats(0).zeroed;
    let x = Tensor::zeros([1024, 8, 16]).requires_grad_(true);
    let mut loss = Tensor::zeros(()).add(0.0);
    for k in 0..1024 {
        loss = &loss + x.select(0, k).sum();
    }
    let before = zeroed();
    loss.backward();
    let filled = zeroed() - before;
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), vec![1.0; 1024 * 8 * 16]);
    // Other tests of this process may fill a little meanwhile.
    assert!(
        filled <= x.storage_bytes() as u64 + 100_000,
        "{filled} bytes for a base of {}",
        x.storage_bytes()
    );
}
