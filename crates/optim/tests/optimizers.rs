//! Steps as PyTorch takes them: p from 1, loss p * p, in f64.

use stridegrad_autograd::Tensor;
use stridegrad_core::ErrorKind;
use stridegrad_optim::*;

fn parameter(value: f64) -> Tensor {
    Tensor::from_slice(&[value], [1]).requires_grad_(true)
}

/// The parameter after each step.
fn steps<O: Optimizer>(n: usize, make: impl Fn(Tensor) -> O) -> Vec<f64> {
    let p = parameter(1.0);
    let mut opt = make(p.clone());
    let mut values = Vec::new();
    for _ in 0..n {
        opt.zero_grad();
        p.mul(&p).sum().backward();
        opt.step();
        values.push(p.item::<f64>());
    }
    values
}

#[track_caller]
fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-10, "{got}, not {want}");
    }
}

#[test]
fn sgd() {
    let sgd = |p| Sgd::new([p], 0.1);
    close(&steps(3, sgd), &[0.8, 0.64, 0.512]);
    close(&steps(3, |p| sgd(p).momentum(0.9)), &[0.8, 0.46, 0.062]);
    close(&steps(3, |p| sgd(p).momentum(0.9).dampening(0.5)), &[0.8, 0.54, 0.252]);
    close(&steps(3, |p| sgd(p).momentum(0.9).nesterov(true)), &[0.62, 0.2224, -0.108352]);
    close(&steps(3, |p| sgd(p).weight_decay(0.1)), &[0.79, 0.6241, 0.493039]);
    close(&steps(3, |p| sgd(p).momentum(0.9).weight_decay(0.1)), &[0.79, 0.4351, 0.024319]);
}

#[test]
fn adam() {
    close(&steps(3, |p| Adam::new([p], 0.1)), &[0.9000000005, 0.8004122287, 0.7015862729]);
    close(&steps(3, |p| Adam::new([p], 0.1).weight_decay(0.1)), &[0.9000000005, 0.8004122286, 0.7015862729]);
    let want = [0.5000000025, 0.0339101857, -0.3358899506, -0.5423125214, -0.585470102, -0.5110901792];
    close(&steps(6, |p| Adam::new([p], 0.5).amsgrad(true)), &want);
    let plain = steps(6, |p| Adam::new([p], 0.5));
    close(&plain[2..], &[-0.3359046219, -0.5423227902, -0.5854751177, -0.5110908629]);
}

#[test]
fn rmsprop_and_adagrad() {
    let plain = steps(3, |p| RmsProp::new([p], 0.1));
    assert!(plain[0].abs() < 1e-7 && plain[2].abs() < 1e-9, "{plain:?}");
    let centered = steps(3, |p| RmsProp::new([p], 0.1).centered(true).momentum(0.9));
    close(&centered, &[-0.0050377648, -0.9044836831, -1.0394789856]);
    close(&steps(3, |p| Adagrad::new([p], 0.1)), &[0.9, 0.8331035268, 0.7804561814]);
    // The sum starts at 4 and the first gradient is 2: its step is 0.1 * 2 / sqrt(8).
    close(&steps(1, |p| Adagrad::new([p], 0.1).initial_accumulator(4.0)), &[1.0 - 0.1 / 2f64.sqrt()]);
    // The second step goes at half the rate: from 0.9 by 0.05 * 1.8 / sqrt(4 + 1.8^2).
    let decayed = steps(2, |p| Adagrad::new([p], 0.1).lr_decay(1.0));
    close(&decayed, &[0.9, 0.9 - 0.09 / 7.24f64.sqrt()]);
    for refused in [-1.0, f64::NAN, 1.5] {
        let mut rule = RmsPropRule::new(0.1);
        rule.alpha = refused;
        assert_eq!(Optim::try_with([parameter(1.0)], rule).unwrap_err().kind(), ErrorKind::Argument);
    }
}

#[test]
fn adamw() {
    close(&steps(3, |p| AdamW::new([p], 0.1).weight_decay(0.1)), &[0.8900000005, 0.7815718559, 0.6751012216]);
    close(&steps(3, |p| AdamW::new([p], 0.1)), &[0.8990000005, 0.7985190272, 0.6989111832]);
}

#[test]
fn parameters_without_gradient_stay() {
    let (p, q) = (parameter(1.0), parameter(3.0));
    let mut opt = Sgd::new([p.clone(), q.clone()], 0.1).momentum(0.9).weight_decay(0.5);
    let mut adamw = AdamW::new([q.clone()], 0.1);
    p.mul(&p).sum().backward();
    opt.step();
    adamw.step();
    assert_eq!(q.item::<f64>(), 3.0);
    assert_ne!(p.item::<f64>(), 1.0);
    assert_eq!(opt.state().steps, [1, 0]);
}

#[test]
fn zero_grad_forgets() {
    let p = parameter(1.0);
    let opt = Sgd::new([p.clone()], 0.1);
    p.mul(&p).sum().backward();
    assert!(p.grad().is_some());
    opt.zero_grad();
    assert!(p.grad().is_none());
}

#[test]
fn groups_have_settings_of_their_own() {
    let (p, q) = (parameter(1.0), parameter(1.0));
    let mut opt = Sgd::new([p.clone()], 0.1).group([q.clone()], |g| g.lr(0.5).weight_decay(1.0));
    assert_eq!(opt.lrs(), [0.1, 0.5]);
    p.mul(&p).add(q.mul(&q)).sum().backward();
    opt.step();
    close(&[p.item::<f64>(), q.item::<f64>()], &[0.8, -0.5]);
    opt.set_lrs(&[1.0, 2.0]).unwrap();
    assert_eq!(opt.lrs(), [1.0, 2.0]);
    assert!(opt.set_lrs(&[1.0]).is_err() && opt.set_lrs(&[1.0, -2.0]).is_err());
    assert_eq!(opt.lrs(), [1.0, 2.0]);
}

#[test]
fn misuse_is_refused() {
    let refused = |r: stridegrad_core::Result<Sgd>, says: &str| {
        let e = r.expect_err(says);
        assert_eq!(e.kind(), ErrorKind::Argument);
        assert!(e.to_string().contains(says), "{e}");
    };
    let p = parameter(1.0);
    refused(Sgd::try_with([], SgdRule::new(0.1)), "empty list");
    refused(Sgd::try_with([p.clone()], SgdRule::new(-0.1)), "learning rate");
    refused(Sgd::try_with([p.clone()], SgdRule::new(f64::NAN)), "learning rate");
    refused(Sgd::try_with([p.clone(), p.clone()], SgdRule::new(0.1)), "twice");
    refused(Sgd::try_with([p.mul(&p)], SgdRule::new(0.1)), "non-leaf");
    refused(Sgd::new([p.clone()], 0.1).try_group([p.clone()], |g| g), "twice");
    assert!(Adam::try_with([p], AdamRule::new(-1.0)).is_err());
}

#[test]
#[should_panic(expected = "Nesterov momentum requires a momentum")]
fn nesterov_needs_momentum() {
    let _ = Sgd::new([parameter(1.0)], 0.1).nesterov(true);
}

#[test]
#[should_panic(expected = "invalid beta2")]
fn betas_are_below_one() {
    let _ = Adam::new([parameter(1.0)], 0.1).betas(0.9, 1.0);
}

/// Takes `n` steps of a loss that looks different every time.
fn run(opt: &mut dyn Optimizer, p: &Tensor, from: u32, n: u32) {
    for i in from..from + n {
        opt.zero_grad();
        p.mul(p).mul(f64::from(i).sin() + 1.5).sum().backward();
        opt.step();
    }
}

#[test]
fn a_saved_state_continues_bit_for_bit() {
    fn check<R: Rule>(make: impl Fn(Tensor) -> Optim<R>) {
        let p = parameter(1.0);
        let mut opt = make(p.clone());
        run(&mut opt, &p, 0, 5);
        let (half, state) = (parameter(p.item::<f64>()), opt.state());
        let tensors = state.tensors.iter().map(|(n, t)| (n.to_owned(), t.copy())).collect();
        let state = OptimizerState { tensors, ..state };
        run(&mut opt, &p, 5, 5);

        let mut again = make(half.clone());
        again.set_lr(123.0); // comes back with the state
        again.load_state(&state).unwrap();
        run(&mut again, &half, 5, 5);
        assert_eq!(p.item::<f64>().to_bits(), half.item::<f64>().to_bits(), "{}", R::NAME);
    }
    check(|p| Sgd::new([p], 0.01).momentum(0.9).dampening(0.3).weight_decay(0.1));
    check(|p| Sgd::new([p], 0.01).momentum(0.9).nesterov(true));
    check(|p| Adam::new([p], 0.01).amsgrad(true));
    check(|p| AdamW::new([p], 0.01));
}

#[test]
fn a_state_of_something_else_is_refused() {
    let one = || [parameter(1.0)];
    let sgd = Sgd::new(one(), 0.1).state();
    assert_eq!(Adam::new(one(), 0.1).load_state(&sgd).unwrap_err().kind(), ErrorKind::StateDict);
    assert!(AdamW::new(one(), 0.1).load_state(&Adam::new(one(), 0.1).state()).is_err());
    let two = Sgd::new([parameter(1.0), parameter(2.0)], 0.1).state();
    assert!(Sgd::new(one(), 0.1).load_state(&two).is_err());
    let mut other = Sgd::new(one(), 0.1).momentum(0.9).state();
    other.tensors.push("0.momentum_buffer", Tensor::zeros([3]));
    assert!(Sgd::new(one(), 0.1).load_state(&other).is_err());
    let mut less = sgd.clone();
    less.groups[0].remove("momentum");
    assert!(Sgd::new(one(), 0.1).load_state(&less).is_err());
}

#[test]
fn half_precision_and_strides_are_kept() {
    let p = Tensor::ones([2, 3]).t().to_dtype(stridegrad_core::DType::BF16).requires_grad_(true);
    let mut opt = Adam::new([p.clone()], 0.1);
    p.mul(&p).sum().backward();
    opt.step();
    let state = opt.state();
    let m = state.tensors.get("0.exp_avg").unwrap();
    assert_eq!((m.dtype(), m.strides()), (p.dtype(), p.strides()));
    assert!((p.to_dtype(stridegrad_core::DType::F64).to_vec::<f64>()[0] - 0.9).abs() < 4e-3);
}

#[test]
fn clipping() {
    let (p, q) = (parameter(1.5), parameter(2.0));
    let params = [p.clone(), q.clone(), parameter(9.0)];
    p.mul(&p).add(q.mul(&q)).sum().backward(); // gradients 3 and 4
    assert_eq!(clip_grad_norm(&params, 10.0), 5.0);
    assert_eq!(p.grad().unwrap().item::<f64>(), 3.0);
    assert_eq!(clip_grad_norm(&params, 1.0), 5.0);
    close(
        &[p.grad().unwrap().item::<f64>(), q.grad().unwrap().item::<f64>()],
        &[3.0 / 5.000001, 4.0 / 5.000001],
    );
    assert!(try_clip_grad_norm(&params, -1.0).is_err());
    assert_eq!(clip_grad_norm(&[], 1.0), 0.0);
    let inf = parameter(f64::INFINITY);
    inf.mul(&inf).sum().backward();
    assert!(try_clip_grad_norm(std::slice::from_ref(&inf), 1.0).is_err());
    assert_eq!(inf.grad().unwrap().item::<f64>(), f64::INFINITY);
}

#[test]
fn schedulers_set_the_rates() {
    let mut opt = Sgd::new([parameter(1.0)], 1.0).group([parameter(1.0)], |g| g.lr(10.0));
    let mut s = LrScheduler::new(&mut opt, LinearLr::new(0.5, 2));
    let mut seen = vec![opt.lrs()];
    for _ in 0..2 {
        s.step(&mut opt);
        seen.push(opt.lrs());
    }
    assert_eq!(seen, [[0.5, 5.0], [0.75, 7.5], [1.0, 10.0]]);
    let state = s.state().clone();
    let mut fresh = Sgd::new([parameter(1.0)], 7.0).group([parameter(1.0)], |g| g);
    let mut again = LrScheduler::new(&mut fresh, LinearLr::new(0.5, 2));
    again.load_state(&state, &mut fresh).unwrap();
    assert_eq!((again.steps(), fresh.lrs()), (2, vec![1.0, 10.0]));
}

#[test]
fn a_schedule_that_ends_says_so() {
    let mut opt = Sgd::new([parameter(1.0)], 1.0);
    let mut s = LrScheduler::new(&mut opt, OneCycleLr::new(1.0, 8));
    for _ in 0..7 {
        s.try_step(&mut opt).unwrap();
    }
    assert!((opt.lr() - 4e-6).abs() < 1e-12);
    assert_eq!(s.try_step(&mut opt).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(s.steps(), 7);
}

#[test]
fn plateaus() {
    let mut opt = Sgd::new([parameter(1.0)], 1.0);
    let mut s = ReduceLrOnPlateau::new().patience(2).factor(0.5).min_lr(0.3);
    let seen: Vec<f64> = [1.0, 0.99995, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6]
        .iter()
        .map(|&m| {
            s.step(m, &mut opt).unwrap();
            opt.lr()
        })
        .collect();
    // The third bad step after the best reduces; 0.99995 is within the threshold, so bad too.
    assert_eq!(seen, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3]);
    let mut s = ReduceLrOnPlateau::new().patience(0).maximize().cooldown(1);
    opt.set_lr(1.0);
    let lowered: Vec<bool> =
        [1.0, 2.0, 1.0, 1.0, 1.0].iter().map(|&m| s.step(m, &mut opt).unwrap()).collect();
    assert_eq!(lowered, [false, false, true, false, true]);
}

#[test]
fn a_parameter_that_only_the_optimizer_holds_is_refused() {
    let kept = parameter(1.0);
    let mut opt = Sgd::new([kept.clone(), parameter(2.0)], 0.1);
    kept.mul(&kept).sum().backward();
    let e = opt.try_step().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
    assert!(e.to_string().contains("parameter 1") && e.to_string().contains("after it"), "{e}");
    assert_eq!(kept.item::<f64>(), 1.0, "nothing is written");
}
