//! Optimizers and learning-rate schedules.
#![forbid(unsafe_code)]

mod adagrad;
mod adam;
mod clip;
mod optimizer;
mod rmsprop;
mod schedule;
mod scheduler;
mod sgd;

pub use adagrad::{Adagrad, AdagradRule};
pub use adam::{Adam, AdamRule, AdamW};
pub use clip::{clip_grad_norm, try_clip_grad_norm};
pub use optimizer::{Optim, Optimizer, OptimizerState, Rule, Setting};
pub use rmsprop::{RmsProp, RmsPropRule};
pub use schedule::{
    ConstantLr, CosineAnnealingLr, CosineAnnealingWarmRestarts, ExponentialLr, LinearLr, MultiStepLr,
    OneCycleLr, PolynomialLr, Schedule, Sequence, StepLr,
};
pub use scheduler::{LrScheduler, PlateauState, ReduceLrOnPlateau, SchedulerState};
pub use sgd::{Sgd, SgdRule};
