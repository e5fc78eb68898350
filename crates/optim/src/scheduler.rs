//! Schedules at work on an optimizer.

use std::panic::Location;

use stridegrad_core::{Result, bail};

use crate::optimizer::Optimizer;
use crate::schedule::Schedule;

/// Applies a [`Schedule`] to an optimizer's learning rates, step by step.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_optim::{LrScheduler, Sgd, StepLr};
/// let mut opt = Sgd::new([Tensor::ones([1]).requires_grad_(true)], 0.1);
/// let mut scheduler = LrScheduler::new(&mut opt, StepLr::new(1).gamma(0.5));
/// scheduler.step(&mut opt);
/// assert_eq!(opt.lr(), 0.05);
/// ```
#[derive(Debug)]
pub struct LrScheduler<S = Box<dyn Schedule>> {
    schedule: S,
    state: SchedulerState,
}

/// What a scheduler needs to continue: save it with the optimizer's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchedulerState {
    /// The steps taken.
    pub step: u64,
    /// The learning rate of each group that the schedule starts from.
    pub base_lrs: Vec<f64>,
}

impl<S: Schedule> LrScheduler<S> {
    /// Takes the optimizer's present rates as the base, and sets the rates of step 0.
    ///
    /// # Panics
    /// If the schedule gives a negative rate.
    #[track_caller]
    pub fn new(optimizer: &mut dyn Optimizer, schedule: S) -> LrScheduler<S> {
        let caller = Location::caller();
        LrScheduler::try_new(optimizer, schedule).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`new`](LrScheduler::new).
    ///
    /// # Errors
    /// `Argument` if the schedule gives a negative rate.
    pub fn try_new(optimizer: &mut dyn Optimizer, schedule: S) -> Result<LrScheduler<S>> {
        let state = SchedulerState { step: 0, base_lrs: optimizer.lrs() };
        let scheduler = LrScheduler { schedule, state };
        scheduler.apply(optimizer)?;
        Ok(scheduler)
    }

    fn apply(&self, optimizer: &mut dyn Optimizer) -> Result<()> {
        let lr = |&base: &f64| self.schedule.lr(base, self.state.step);
        optimizer.set_lrs(&self.state.base_lrs.iter().map(lr).collect::<Vec<_>>())
    }

    /// Goes on to the next step and sets its rates.
    ///
    /// # Panics
    /// Beyond the last step of a schedule that has one; [`try_step`](LrScheduler::try_step) gives an error.
    #[track_caller]
    pub fn step(&mut self, optimizer: &mut dyn Optimizer) {
        if let Err(e) = self.try_step(optimizer) {
            e.at(Location::caller()).raise();
        }
    }

    /// Fallible form of [`step`](LrScheduler::step).
    ///
    /// # Errors
    /// `Argument` beyond the last step of a schedule that has one.
    pub fn try_step(&mut self, optimizer: &mut dyn Optimizer) -> Result<()> {
        if let Some(limit) = self.schedule.limit()
            && self.state.step + 1 >= limit
        {
            bail!(Argument, "LrScheduler", "step {} of a schedule of {limit} steps", self.state.step + 1);
        }
        self.state.step += 1;
        self.apply(optimizer)
    }

    /// The steps taken.
    pub fn steps(&self) -> u64 {
        self.state.step
    }

    /// What continuing needs.
    pub fn state(&self) -> &SchedulerState {
        &self.state
    }

    /// Continues from a saved state, and sets that step's rates.
    ///
    /// # Errors
    /// `Argument` where the optimizer has another number of groups.
    pub fn load_state(&mut self, state: &SchedulerState, optimizer: &mut dyn Optimizer) -> Result<()> {
        self.state = state.clone();
        self.apply(optimizer)
    }
}

/// Lowers the learning rates when a metric stops improving (PyTorch's `ReduceLROnPlateau`, relative threshold).
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLrOnPlateau {
    factor: f64,
    patience: u64,
    threshold: f64,
    cooldown: u64,
    min_lr: f64,
    maximize: bool,
    state: PlateauState,
}

/// What a [`ReduceLrOnPlateau`] needs to continue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlateauState {
    /// The best value so far.
    pub best: Option<f64>,
    /// Steps without improvement.
    pub bad: u64,
    /// Steps of rest left.
    pub resting: u64,
}

impl ReduceLrOnPlateau {
    /// Multiplies the rates by 0.1 after more than 10 steps without a lower value.
    pub fn new() -> ReduceLrOnPlateau {
        ReduceLrOnPlateau {
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            cooldown: 0,
            min_lr: 0.0,
            maximize: false,
            state: PlateauState::default(),
        }
    }

    /// What the rates are multiplied by.
    pub fn factor(self, factor: f64) -> Self {
        ReduceLrOnPlateau { factor, ..self }
    }

    /// Steps without improvement that are let pass.
    pub fn patience(self, patience: u64) -> Self {
        ReduceLrOnPlateau { patience, ..self }
    }

    /// By what part a value must be better to count.
    pub fn threshold(self, threshold: f64) -> Self {
        ReduceLrOnPlateau { threshold, ..self }
    }

    /// Steps after a reduction in which nothing counts as bad.
    pub fn cooldown(self, cooldown: u64) -> Self {
        ReduceLrOnPlateau { cooldown, ..self }
    }

    /// The rates go no lower.
    pub fn min_lr(self, min_lr: f64) -> Self {
        ReduceLrOnPlateau { min_lr, ..self }
    }

    /// Higher values are better.
    pub fn maximize(self) -> Self {
        ReduceLrOnPlateau { maximize: true, ..self }
    }

    /// Takes note of `metric`; returns whether the rates were lowered.
    ///
    /// # Errors
    /// `Argument` if the factor makes a rate negative or infinite.
    pub fn step(&mut self, metric: f64, optimizer: &mut dyn Optimizer) -> Result<bool> {
        let state = &mut self.state;
        let better = match (state.best, self.maximize) {
            (None, _) => !metric.is_nan(),
            (Some(best), false) => metric < best * (1.0 - self.threshold),
            (Some(best), true) => metric > best * (1.0 + self.threshold),
        };
        if better {
            (state.best, state.bad) = (Some(metric), 0);
        } else {
            state.bad += 1;
        }
        if state.resting > 0 {
            (state.resting, state.bad) = (state.resting - 1, 0);
        }
        if state.bad <= self.patience {
            return Ok(false);
        }
        (state.resting, state.bad) = (self.cooldown, 0);
        let lower = |lr: f64| (lr * self.factor).max(self.min_lr);
        let lrs = optimizer.lrs();
        let new: Vec<f64> = lrs.iter().map(|&lr| lower(lr).min(lr)).collect();
        optimizer.set_lrs(&new)?;
        Ok(new != lrs)
    }

    /// What continuing needs.
    pub fn state(&self) -> PlateauState {
        self.state
    }

    /// Continues from a saved state.
    pub fn load_state(&mut self, state: PlateauState) {
        self.state = state;
    }
}

impl Default for ReduceLrOnPlateau {
    fn default() -> Self {
        ReduceLrOnPlateau::new()
    }
}
