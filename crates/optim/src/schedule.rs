//! Learning-rate schedules: the rate as a function of the step, so that resuming needs the step's number alone.
//!
//! Formulas are those of `torch.optim.lr_scheduler`, in closed form.

use std::f64::consts::PI;
use std::fmt;

/// A learning rate for each step. What a step is, an epoch or a batch, is the caller's choice.
///
/// ```
/// use stridegrad_optim::{Schedule, StepLr};
/// let s = StepLr::new(3).gamma(0.1);
/// assert_eq!((s.lr(1.0, 2), s.lr(1.0, 3)), (1.0, 0.1));
/// ```
pub trait Schedule: fmt::Debug + Send + Sync {
    /// The rate at step `step`, the first being 0, for a group whose own rate is `base`.
    fn lr(&self, base: f64, step: u64) -> f64;

    /// The number of steps it is made for, where it must not go on beyond them.
    fn limit(&self) -> Option<u64> {
        None
    }
}

impl<S: Schedule + ?Sized> Schedule for Box<S> {
    fn lr(&self, base: f64, step: u64) -> f64 {
        (**self).lr(base, step)
    }

    fn limit(&self) -> Option<u64> {
        (**self).limit()
    }
}

/// `step / total`, from 0 to 1 and 1 from there on.
fn part(step: u64, total: u64) -> f64 {
    if step >= total { 1.0 } else { step as f64 / total as f64 }
}

/// From `from` to `to` along half a cosine, as `part` goes from 0 to 1.
fn cosine(from: f64, to: f64, part: f64) -> f64 {
    let weight = (1.0 + (PI * part).cos()) / 2.0;
    from * weight + to * (1.0 - weight)
}

fn power(gamma: f64, n: u64) -> f64 {
    gamma.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// Multiplies the rate by `gamma` every `every` steps (PyTorch's `StepLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct StepLr {
    every: u64,
    gamma: f64,
}

impl StepLr {
    /// By 0.1 every `every` steps.
    ///
    /// # Panics
    /// If `every` is 0.
    #[track_caller]
    pub fn new(every: u64) -> StepLr {
        assert!(every > 0, "StepLr: a period of 0 steps");
        StepLr { every, gamma: 0.1 }
    }

    /// The factor.
    pub fn gamma(mut self, gamma: f64) -> StepLr {
        self.gamma = gamma;
        self
    }
}

impl Schedule for StepLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * power(self.gamma, step / self.every)
    }
}

/// Multiplies the rate by `gamma` at each milestone (PyTorch's `MultiStepLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStepLr {
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStepLr {
    /// By 0.1 at each of `milestones`, in any order.
    pub fn new(milestones: impl Into<Vec<u64>>) -> MultiStepLr {
        MultiStepLr { milestones: milestones.into(), gamma: 0.1 }
    }

    /// The factor.
    pub fn gamma(mut self, gamma: f64) -> MultiStepLr {
        self.gamma = gamma;
        self
    }
}

impl Schedule for MultiStepLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * power(self.gamma, self.milestones.iter().filter(|&&m| m <= step).count() as u64)
    }
}

/// Multiplies the rate by `gamma` at each step (PyTorch's `ExponentialLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct ExponentialLr {
    gamma: f64,
}

impl ExponentialLr {
    /// By `gamma` at each step.
    pub fn new(gamma: f64) -> ExponentialLr {
        ExponentialLr { gamma }
    }
}

impl Schedule for ExponentialLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * power(self.gamma, step)
    }
}

/// Along a cosine from the rate down to `eta_min` in `t_max` steps, and up again (PyTorch's `CosineAnnealingLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingLr {
    t_max: u64,
    eta_min: f64,
}

impl CosineAnnealingLr {
    /// Down to 0 in `t_max` steps; periodic beyond, as PyTorch's.
    ///
    /// # Panics
    /// If `t_max` is 0.
    #[track_caller]
    pub fn new(t_max: u64) -> CosineAnnealingLr {
        assert!(t_max > 0, "CosineAnnealingLr: a half period of 0 steps");
        CosineAnnealingLr { t_max, eta_min: 0.0 }
    }

    /// The lowest rate.
    pub fn eta_min(mut self, eta_min: f64) -> CosineAnnealingLr {
        self.eta_min = eta_min;
        self
    }
}

impl Schedule for CosineAnnealingLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        // Reduced to one period first, so that late steps lose no digits.
        cosine(base, self.eta_min, (step % (2 * self.t_max)) as f64 / self.t_max as f64)
    }
}

/// Along a cosine down, then from the top again, each period `multiplier` times as long as the last
/// (PyTorch's `CosineAnnealingWarmRestarts`).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingWarmRestarts {
    t_0: u64,
    multiplier: u64,
    eta_min: f64,
}

impl CosineAnnealingWarmRestarts {
    /// Periods of `t_0` steps, down to 0.
    ///
    /// # Panics
    /// If `t_0` is 0.
    #[track_caller]
    pub fn new(t_0: u64) -> CosineAnnealingWarmRestarts {
        assert!(t_0 > 0, "CosineAnnealingWarmRestarts: a period of 0 steps");
        CosineAnnealingWarmRestarts { t_0, multiplier: 1, eta_min: 0.0 }
    }

    /// How many times as long as the last each period is.
    ///
    /// # Panics
    /// If it is 0.
    #[track_caller]
    pub fn multiplier(mut self, multiplier: u64) -> CosineAnnealingWarmRestarts {
        assert!(multiplier > 0, "CosineAnnealingWarmRestarts: a multiplier of 0");
        self.multiplier = multiplier;
        self
    }

    /// The lowest rate.
    pub fn eta_min(mut self, eta_min: f64) -> CosineAnnealingWarmRestarts {
        self.eta_min = eta_min;
        self
    }
}

impl Schedule for CosineAnnealingWarmRestarts {
    fn lr(&self, base: f64, mut step: u64) -> f64 {
        let mut period = self.t_0;
        if self.multiplier == 1 {
            step %= period;
        }
        while step >= period {
            step -= period;
            period = period.saturating_mul(self.multiplier);
        }
        cosine(base, self.eta_min, step as f64 / period as f64)
    }
}

/// A factor that goes linearly from one value to another: a warm-up (PyTorch's `LinearLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLr {
    from: f64,
    to: f64,
    total: u64,
}

impl LinearLr {
    /// The factor goes from `from` to 1 in `total` steps, and stays.
    pub fn new(from: f64, total: u64) -> LinearLr {
        LinearLr { from, to: 1.0, total }
    }

    /// Another last factor.
    pub fn to(mut self, to: f64) -> LinearLr {
        self.to = to;
        self
    }
}

impl Schedule for LinearLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * (self.from + (self.to - self.from) * part(step, self.total))
    }
}

/// A constant factor for the first steps (PyTorch's `ConstantLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantLr {
    factor: f64,
    total: u64,
}

impl ConstantLr {
    /// `factor` for `total` steps, 1 from there on.
    pub fn new(factor: f64, total: u64) -> ConstantLr {
        ConstantLr { factor, total }
    }
}

impl Schedule for ConstantLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        if step < self.total { base * self.factor } else { base }
    }
}

/// Down to 0 as a power of what is left (PyTorch's `PolynomialLR`).
#[derive(Clone, Debug, PartialEq)]
pub struct PolynomialLr {
    total: u64,
    power: f64,
}

impl PolynomialLr {
    /// `(1 - step / total) ^ power`, 0 from `total` on.
    pub fn new(total: u64, power: f64) -> PolynomialLr {
        PolynomialLr { total, power }
    }
}

impl Schedule for PolynomialLr {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * (1.0 - part(step, self.total)).powf(self.power)
    }
}

/// Up to a largest rate and down to almost nothing, along cosines (PyTorch's `OneCycleLR`; Smith and Topin, 2019).
/// The group's own rate plays no part.
#[derive(Clone, Debug, PartialEq)]
pub struct OneCycleLr {
    max: f64,
    total: u64,
    rising: f64,
    initial: f64,
    last: f64,
}

impl OneCycleLr {
    /// Up to `max` in the first 30% of `total` steps, from a 25th of it; down to a 10,000th of where it began.
    pub fn new(max: f64, total: u64) -> OneCycleLr {
        OneCycleLr { max, total, rising: 0.3, initial: 25.0, last: 1e4 }
    }

    /// The part of the steps that rise.
    pub fn pct_start(mut self, rising: f64) -> OneCycleLr {
        self.rising = rising;
        self
    }

    /// What `max` is divided by for the first step.
    pub fn div_factor(mut self, initial: f64) -> OneCycleLr {
        self.initial = initial;
        self
    }

    /// What the first step's rate is divided by for the last.
    pub fn final_div_factor(mut self, last: f64) -> OneCycleLr {
        self.last = last;
        self
    }
}

impl Schedule for OneCycleLr {
    fn lr(&self, _base: f64, step: u64) -> f64 {
        let initial = self.max / self.initial;
        let (top, end) = (self.rising * self.total as f64 - 1.0, self.total as f64 - 1.0);
        let step = step as f64;
        if step <= top {
            cosine(initial, self.max, if top > 0.0 { step / top } else { 1.0 })
        } else {
            cosine(self.max, initial / self.last, ((step - top) / (end - top)).min(1.0))
        }
    }

    fn limit(&self) -> Option<u64> {
        Some(self.total)
    }
}

/// One schedule after another (PyTorch's `SequentialLR`): each counts its steps from its own start.
#[derive(Debug)]
pub struct Sequence {
    parts: Vec<(u64, Box<dyn Schedule>)>,
}

impl Sequence {
    /// Begins with `first`.
    pub fn new(first: impl Schedule + 'static) -> Sequence {
        Sequence { parts: vec![(0, Box::new(first))] }
    }

    /// Goes on with `next` from step `at`.
    ///
    /// # Panics
    /// If `at` does not lie after the start of the part before.
    #[track_caller]
    pub fn then(mut self, at: u64, next: impl Schedule + 'static) -> Sequence {
        assert!(
            self.parts.iter().all(|&(start, _)| start < at),
            "Sequence: step {at} is not after the last start"
        );
        self.parts.push((at, Box::new(next)));
        self
    }

    fn present(&self, step: u64) -> &(u64, Box<dyn Schedule>) {
        // The first part starts at 0.
        self.parts.iter().rev().find(|&&(start, _)| start <= step).unwrap_or(&self.parts[0])
    }
}

impl Schedule for Sequence {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let (start, schedule) = self.present(step);
        schedule.lr(base, step - start)
    }

    fn limit(&self) -> Option<u64> {
        let (start, schedule) = &self.parts[self.parts.len() - 1];
        schedule.limit().map(|n| start.saturating_add(n))
    }
}
