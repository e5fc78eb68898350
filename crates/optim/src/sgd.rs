//! Stochastic gradient descent, with momentum (Sutskever et al., 2013, as `torch.optim.SGD` has it).

use stridegrad_autograd::{Tensor, map_kernel};
use stridegrad_core::{Result, bail};

use crate::optimizer::{Optim, Rule, Setting, not_negative, slot};

map_kernel! {
    static DESCEND("sgd") = |[p, g], [lr]| p - lr * g;
    static DESCEND_DECAYED("sgd") = |[p, g], [lr, decay]| p - lr * (g + decay * p);
    static DESCEND_NESTEROV("sgd") = |[p, g, b], [lr, decay, momentum]| p - lr * (g + decay * p + momentum * b);
    static BUFFER("sgd") = |[b, g], [momentum, part]| momentum * b + part * g;
    static BUFFER_DECAYED("sgd") = |[b, g, p], [momentum, part, decay]| momentum * b + part * (g + decay * p);
}

/// The settings of [`Sgd`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SgdRule {
    /// The learning rate.
    pub lr: f64,
    /// What of the last step's velocity stays.
    pub momentum: f64,
    /// What of the gradient does not join the velocity; the first step takes all of it.
    pub dampening: f64,
    /// Adds this times the parameter to its gradient.
    pub weight_decay: f64,
    /// Looks ahead along the velocity.
    pub nesterov: bool,
}

impl SgdRule {
    /// Plain descent.
    pub fn new(lr: f64) -> SgdRule {
        SgdRule { lr, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }

    /// Another learning rate.
    pub fn lr(self, lr: f64) -> SgdRule {
        SgdRule { lr, ..self }
    }

    /// Another weight decay.
    pub fn weight_decay(self, weight_decay: f64) -> SgdRule {
        SgdRule { weight_decay, ..self }
    }
}

/// Stochastic gradient descent: `p -= lr * v` with the velocity `v = momentum * v + (1 - dampening) * g`.
///
/// ```
/// use stridegrad_autograd::{Tensor, map_kernel};
/// use stridegrad_optim::{Optimizer, Sgd};
/// let p = Tensor::ones([1]).requires_grad_(true);
/// let mut opt = Sgd::new([p.clone()], 0.1).momentum(0.9);
/// for _ in 0..2 {
///     opt.zero_grad();
///     p.mul(&p).sum().backward();
///     opt.step();
/// }
/// assert!((p.item::<f32>() - 0.46).abs() < 1e-6);
/// ```
pub type Sgd = Optim<SgdRule>;

impl Sgd {
    /// Plain descent at rate `lr`.
    ///
    /// # Panics
    /// If `lr` is negative, there are no parameters, or one is given twice or is no leaf;
    /// [`try_with`](Optim::try_with) gives an error.
    #[track_caller]
    pub fn new(params: impl IntoIterator<Item = Tensor>, lr: f64) -> Sgd {
        Optim::with(params, SgdRule::new(lr))
    }

    /// What of the last step's velocity stays.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn momentum(self, momentum: f64) -> Sgd {
        self.change(|r| r.momentum = momentum)
    }

    /// What of the gradient does not join the velocity.
    ///
    /// # Panics
    /// If it is not finite, or not 0 with Nesterov's momentum.
    #[track_caller]
    pub fn dampening(self, dampening: f64) -> Sgd {
        self.change(|r| r.dampening = dampening)
    }

    /// Adds this times the parameter to its gradient.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn weight_decay(self, weight_decay: f64) -> Sgd {
        self.change(|r| r.weight_decay = weight_decay)
    }

    /// Nesterov's momentum. Set the momentum first.
    ///
    /// # Panics
    /// If the momentum is 0 or the dampening is not.
    #[track_caller]
    pub fn nesterov(self, on: bool) -> Sgd {
        self.change(|r| r.nesterov = on)
    }
}

impl Rule for SgdRule {
    const NAME: &'static str = "Sgd";
    const SLOTS: &'static [&'static str] = &["momentum_buffer"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("dampening", Setting::Number(&mut self.dampening)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("nesterov", Setting::Flag(&mut self.nesterov)),
        ]
    }

    fn validate(&self) -> Result<()> {
        not_negative(Self::NAME, "learning rate", self.lr)?;
        not_negative(Self::NAME, "momentum", self.momentum)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        if !self.dampening.is_finite() {
            bail!(Argument, Self::NAME, "invalid dampening: {}", self.dampening);
        }
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            bail!(Argument, Self::NAME, "Nesterov momentum requires a momentum and zero dampening");
        }
        Ok(())
    }

    fn update(&self, p: &Tensor, g: &Tensor, step: u64, slots: &mut [Option<Tensor>]) -> Result<()> {
        let (lr, decay, momentum) = (self.lr, self.weight_decay, self.momentum);
        if momentum == 0.0 {
            return match decay == 0.0 {
                true => p.try_map_(&DESCEND, &[lr], &[p, g]),
                false => p.try_map_(&DESCEND_DECAYED, &[lr, decay], &[p, g]),
            };
        }
        let b = &slot(slots, 0, p, 0.0)?;
        let part = if step == 1 { 1.0 } else { 1.0 - self.dampening };
        match decay == 0.0 {
            true => b.try_map_(&BUFFER, &[momentum, part], &[b, g])?,
            false => b.try_map_(&BUFFER_DECAYED, &[momentum, part, decay], &[b, g, p])?,
        }
        match self.nesterov {
            false => p.try_map_(&DESCEND, &[lr], &[p, b]),
            true => p.try_map_(&DESCEND_NESTEROV, &[lr, decay, momentum], &[p, g, b]),
        }
    }
}
