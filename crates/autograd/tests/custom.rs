//! Functions written by users, anomaly mode, hooks after accumulation, and the options of `grad`.

use std::sync::{Arc, Mutex};

use stridegrad_autograd::{
    BackwardContext, BackwardOptions, CustomFunction, ForwardContext, GradOptions, GradcheckOptions, Tensor,
    detect_anomaly, grad, gradcheck, gradgradcheck,
};
use stridegrad_core::{ErrorKind, Result, bail};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).requires_grad_(true)
}

/// a * b and exp(a): two outputs; saves inputs and an output.
struct MulExp;

impl CustomFunction for MulExp {
    fn forward(&self, ctx: &mut ForwardContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let e = x[0].try_exp()?;
        assert!(!e.requires_grad(), "forward records nothing");
        ctx.save_for_backward(&x[0]);
        ctx.save_for_backward(&x[1]);
        ctx.save_for_backward(&e);
        Ok(vec![x[0].try_mul(&x[1])?, e])
    }

    fn backward(&self, ctx: &BackwardContext<'_>, g: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let (a, b, e) = (ctx.saved(0)?, ctx.saved(1)?, ctx.saved(2)?);
        let da = ctx.needs_input_grad(0).then(|| g[0].mul(&b).add(g[1].mul(&e)));
        let db = ctx.needs_input_grad(1).then(|| g[0].mul(&a));
        assert!(ctx.saved(3).unwrap_err().message().contains("its forward saved 3"));
        Ok(vec![da, db])
    }
}

#[test]
fn custom_functions_have_gradients_of_two_orders() {
    let (a, b) = (leaf(&[0.5, -1.0, 2.0]), leaf(&[1.0, 3.0, -2.0]));
    let f = |t: &[Tensor]| {
        let y = MulExp.apply(&[&t[0], &t[1]]);
        y[0].mul(&y[1])
    };
    gradcheck(f, &[a.clone(), b.clone()], GradcheckOptions::default()).unwrap();
    gradgradcheck(f, &[a.clone(), b.clone()], GradcheckOptions::default()).unwrap();

    // One output alone: the other's gradient is zeros. An input that needs none gets none.
    let y = MulExp.apply(&[&a, &b.detach()]);
    assert_eq!(y[0].grad_fn(), Some("MulExp"));
    y[0].sum().backward();
    assert_eq!(a.grad().unwrap().to_vec::<f64>(), [1.0, 3.0, -2.0]);
    assert!(b.grad().is_none());
    assert!(!MulExp.apply(&[&a.detach(), &b.detach()])[0].requires_grad());
}

/// A function of closures, to misuse.
struct With<F, B>(F, B);

impl<F, B> CustomFunction for With<F, B>
where
    F: Fn(&mut ForwardContext, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
    B: Fn(&BackwardContext<'_>, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
{
    fn forward(&self, ctx: &mut ForwardContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![(self.0)(ctx, &x[0])?])
    }

    fn backward(&self, ctx: &BackwardContext<'_>, g: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        (self.1)(ctx, &g[0])
    }
}

fn through(_: &BackwardContext<'_>, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
    Ok(vec![Some(g.clone())])
}

#[test]
fn custom_functions_refuse_misuse() {
    let x = leaf(&[1.0, 2.0]);
    let alias = With(|_: &mut ForwardContext, x: &Tensor| x.try_view([2]), through);
    assert_eq!(alias.try_apply(&[&x]).unwrap_err().kind(), ErrorKind::Unsupported);
    let write = With(|_: &mut ForwardContext, x: &Tensor| Ok(x.try_mul_(2.0)?.copy()), through);
    let error = write.try_apply(&[&leaf(&[1.0])]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InPlace);
    assert_eq!(error.caller().unwrap().file(), file!());
    let fails = With(|_: &mut ForwardContext, _: &Tensor| bail!(Argument, "mine", "no"), through);
    assert_eq!(fails.try_apply(&[&x]).unwrap_err().op(), "mine");

    let few = With(
        |_: &mut ForwardContext, x: &Tensor| x.try_mul(2.0),
        |_: &BackwardContext<'_>, _: &Tensor| Ok(vec![]),
    );
    let line = line!() + 1;
    let y = few.apply(&[&x]).remove(0);
    let error = y.sum().try_backward().unwrap_err();
    assert!(error.message().contains("returned 0 gradients for 1 inputs"), "{error}");
    assert_eq!(error.caller().unwrap().line(), line);

    let wrong = With(
        |_: &mut ForwardContext, x: &Tensor| x.try_mul(2.0),
        |_: &BackwardContext<'_>, _: &Tensor| Ok(vec![Some(Tensor::ones([3]))]),
    );
    let y = wrong.apply(&[&x]).remove(0);
    assert_eq!(y.sum().try_backward().unwrap_err().kind(), ErrorKind::Shape);

    // A saved input that is written before backward is found out.
    let save = With(
        |ctx: &mut ForwardContext, x: &Tensor| {
            ctx.save_for_backward(x);
            x.try_square()
        },
        |ctx: &BackwardContext<'_>, g: &Tensor| Ok(vec![Some(g.try_mul(&ctx.saved(0)?)?)]),
    );
    let z = x.mul(1.0);
    let y = save.apply(&[&z]).remove(0);
    z.mul_(2.0);
    assert!(y.sum().try_backward().unwrap_err().message().contains("modified by an inplace operation"));
}

#[test]
fn outputs_can_be_marked_and_gradients_are_reduced() {
    let mark = With(
        |ctx: &mut ForwardContext, x: &Tensor| {
            let y = x.try_mul(2.0)?;
            ctx.mark_non_differentiable(&y);
            Ok(y)
        },
        through,
    );
    assert!(!mark.apply(&[&leaf(&[1.0])])[0].requires_grad());
    // A gradient that broadcasts to the input is summed to it.
    let x = leaf(&[3.0]);
    let expand = With(|_: &mut ForwardContext, x: &Tensor| Ok(x.try_expand([4])?.copy()), through);
    expand.apply(&[&x])[0].sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [4.0]);
}

#[test]
fn anomaly_mode_names_the_op_and_its_line() {
    let x = leaf(&[0.0, 4.0]);
    let line = line!() + 1;
    let root = x.sqrt();
    let y = root.mul(Tensor::from_slice(&[0.0f64, 1.0], [2])).sum();
    let keep = BackwardOptions { retain_graph: true, create_graph: false };
    y.backward_with(None, keep);
    assert!(x.grad().unwrap().to_vec::<f64>()[0].is_nan(), "without the guard nothing is said");
    {
        let _guard = detect_anomaly();
        let error = y.try_backward_with(None, keep).unwrap_err();
        assert!(error.message().contains("sqrt called at") && error.message().contains("nan"), "{error}");
        assert_eq!((error.caller().unwrap().file(), error.caller().unwrap().line()), (file!(), line));
        root.sum().backward_with(None, keep); // infinite, not NaN
    }
    y.backward();
}

#[test]
fn hooks_run_after_accumulation() {
    let x = leaf(&[1.0, 2.0]);
    let seen: Arc<Mutex<Vec<f64>>> = Arc::default();
    let log = seen.clone();
    let handle = x.register_post_accumulate_grad_hook(move |x| {
        log.lock().unwrap().push(x.grad().unwrap().to_vec::<f64>()[0]);
    });
    let y = x.mul(3.0);
    (y.sum() + x.sum()).backward();
    x.mul(5.0).sum().backward();
    grad(&[&x.mul(2.0).sum()], &[&x], None, GradOptions::default()).unwrap();
    assert_eq!(*seen.lock().unwrap(), [4.0, 9.0], "once a pass, with the sum; not for grad()");
    handle.remove();
    x.sum().backward();
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert!(y.try_register_post_accumulate_grad_hook(|_| {}).is_err());
    assert!(x.detach().try_register_post_accumulate_grad_hook(|_| {}).is_err());
}

#[test]
fn grad_of_unused_inputs() {
    let (x, z) = (leaf(&[1.0, 2.0]), leaf(&[3.0]));
    let y = || x.mul(2.0).sum();
    let error = grad(&[&y()], &[&x, &z], None, GradOptions::default()).unwrap_err();
    assert!(error.message().contains("input 1, of sizes [1], appears to not have been used"), "{error}");
    let allow = GradOptions { allow_unused: true, ..Default::default() };
    assert!(grad(&[&y()], &[&x, &z], None, allow).unwrap()[1].is_none());
    assert!(grad(&[&y()], &[&x, &z], None, BackwardOptions::default()).unwrap()[1].is_none());
    let zeros = GradOptions { materialize_grads: true, ..Default::default() };
    let g = grad(&[&y()], &[&x, &z], None, zeros).unwrap();
    assert_eq!(g[1].as_ref().unwrap().to_vec::<f64>(), [0.0]);
    assert_eq!(g[0].as_ref().unwrap().to_vec::<f64>(), [2.0, 2.0]);
}
