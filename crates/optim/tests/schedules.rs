//! Rates as PyTorch gives them: lr before each step, from 1.

use stridegrad_optim::*;

#[track_caller]
fn gives(s: &dyn Schedule, want: &[f64], tolerance: f64) {
    for (step, &want) in want.iter().enumerate() {
        let got = s.lr(1.0, step as u64);
        assert!((got - want).abs() <= tolerance, "{s:?} at step {step}: {got}, not {want}");
    }
}

#[test]
fn steps() {
    gives(&StepLr::new(3), &[1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.01], 1e-15);
    gives(&MultiStepLr::new([2, 4]).gamma(0.5), &[1.0, 1.0, 0.5, 0.5, 0.25], 0.0);
    gives(&ExponentialLr::new(0.5), &[1.0, 0.5, 0.25, 0.125], 0.0);
    assert_eq!(ExponentialLr::new(0.5).lr(1.0, u64::MAX), 0.0);
}

#[test]
fn cosines() {
    let want = [1.0, 0.868198, 0.55, 0.231802, 0.1, 0.231802, 0.55, 0.868198, 1.0];
    gives(&CosineAnnealingLr::new(4).eta_min(0.1), &want, 1e-6);
    assert_eq!(CosineAnnealingLr::new(4).lr(1.0, 8_000_000_000), 1.0);
    let want = [1.0, 0.55, 1.0, 0.868198, 0.55, 0.231802, 1.0, 0.965746];
    gives(&CosineAnnealingWarmRestarts::new(2).multiplier(2).eta_min(0.1), &want, 1e-6);
    gives(&CosineAnnealingWarmRestarts::new(2), &[1.0, 0.5, 1.0, 0.5, 1.0], 1e-15);
    assert!(CosineAnnealingWarmRestarts::new(1).multiplier(2).lr(1.0, u64::MAX).is_finite());
}

#[test]
fn ramps() {
    gives(&LinearLr::new(0.5, 4), &[0.5, 0.625, 0.75, 0.875, 1.0, 1.0], 1e-15);
    gives(&LinearLr::new(1.0, 2).to(0.0), &[1.0, 0.5, 0.0, 0.0], 0.0);
    gives(&ConstantLr::new(0.5, 3), &[0.5, 0.5, 0.5, 1.0, 1.0], 0.0);
    gives(&PolynomialLr::new(4, 2.0), &[1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0], 1e-15);
    gives(&LinearLr::new(0.5, 0), &[1.0], 0.0);
}

#[test]
fn one_cycle() {
    let s = OneCycleLr::new(1.0, 8);
    gives(&s, &[0.04, 0.819275, 0.971942, 0.811746, 0.555984, 0.283061, 0.076642, 4e-6], 5e-7);
    assert_eq!(s.limit(), Some(8));
}

#[test]
fn sequences() {
    let s = Sequence::new(LinearLr::new(0.1, 2)).then(2, ExponentialLr::new(0.5));
    gives(&s, &[0.1, 0.55, 1.0, 0.5, 0.25], 1e-15);
    assert_eq!(s.limit(), None);
    let s = Sequence::new(ConstantLr::new(0.5, 9)).then(3, OneCycleLr::new(1.0, 8));
    assert_eq!((s.lr(1.0, 2), s.lr(1.0, 3), s.limit()), (0.5, 0.04, Some(11)));
}

#[test]
#[should_panic(expected = "step 2 is not after the last start")]
fn sequences_are_ordered() {
    let _ = Sequence::new(StepLr::new(1)).then(2, StepLr::new(1)).then(2, StepLr::new(1));
}
