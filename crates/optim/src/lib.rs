//! Optimizers and learning-rate schedules.
#![forbid(unsafe_code)]

mod schedule;

pub use schedule::{
    ConstantLr, CosineAnnealingLr, CosineAnnealingWarmRestarts, ExponentialLr, LinearLr, MultiStepLr,
    OneCycleLr, PolynomialLr, Schedule, Sequence, StepLr,
};
