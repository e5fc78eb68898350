//! What tests are made of: layout variants, comparisons with `f64` references, and the op harness.
//!
//! The harness crosses every registered op with the layouts of its inputs, dtypes and checks: see [`harness`].
//! [`mutants`] proves that it would notice.

#![forbid(unsafe_code)]

pub mod compare;
pub mod harness;
mod jacobian;
pub mod mutants;
pub mod values;
pub mod variants;
