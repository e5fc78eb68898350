//! Grad mode: a setting of the thread.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
    static ANOMALY: Cell<bool> = const { Cell::new(false) };
}

/// Whether ops on this thread record what backward needs. Threads start with `true`.
pub fn is_grad_enabled() -> bool {
    ENABLED.with(Cell::get)
}

/// Sets the grad mode of this thread while it lives, then restores what was before.
#[must_use = "the mode is restored when the guard is dropped"]
pub struct GradMode {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl GradMode {
    /// Switches recording on or off.
    pub fn set(enabled: bool) -> GradMode {
        GradMode { before: ENABLED.with(|e| e.replace(enabled)), _not_send: PhantomData }
    }
}

impl Drop for GradMode {
    fn drop(&mut self) {
        ENABLED.with(|e| e.set(self.before));
    }
}

/// Runs `f` without recording a graph on this thread.
///
/// ```
/// use stridegrad_autograd::{Tensor, no_grad};
/// let w = Tensor::ones([2]).requires_grad_(true);
/// assert!(!no_grad(|| w.mul(2.0)).requires_grad());
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _mode = GradMode::set(false);
    f()
}

/// Runs `f` with recording switched on, inside a [`no_grad`] for instance.
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    let _mode = GradMode::set(true);
    f()
}

/// Looks for NaN in every result of backward on this thread while it lives: see [`detect_anomaly`].
#[must_use = "detection ends when the guard is dropped"]
pub struct AnomalyMode {
    before: bool,
    _not_send: PhantomData<*const ()>,
}

impl Drop for AnomalyMode {
    fn drop(&mut self) {
        ANOMALY.with(|a| a.set(self.before));
    }
}

/// While the guard lives, a backward pass on this thread that makes a NaN is an error: it names the op whose backward
/// made it and the line of the forward call. Every gradient is read once more for that.
///
/// ```
/// use stridegrad_autograd::{Tensor, detect_anomaly};
/// let x = Tensor::zeros([1]).requires_grad_(true);
/// let y = x.sqrt().mul(0.0); // 0 / 0 in backward
/// let _guard = detect_anomaly();
/// let error = y.sum().try_backward().unwrap_err();
/// assert!(error.message().contains("sqrt called at"));
/// ```
pub fn detect_anomaly() -> AnomalyMode {
    AnomalyMode { before: ANOMALY.with(|a| a.replace(true)), _not_send: PhantomData }
}

/// Whether [`detect_anomaly`] is on for this thread.
pub fn is_anomaly_enabled() -> bool {
    ANOMALY.with(Cell::get)
}
