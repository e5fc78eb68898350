//! RMSprop (Tieleman and Hinton, 2012), as `torch.optim.RMSprop` has it.

use stridegrad_autograd::{Tensor, map_kernel};
use stridegrad_core::{Result, bail};

use crate::optimizer::{Optim, Rule, Setting, not_negative, slot};

map_kernel! {
    static DECAYED("rmsprop") = |[g, p], [decay]| g + decay * p;
    static SQUARE("rmsprop") = |[v, g], [keep, part]| keep * v + part * (g * g);
    static MEAN("rmsprop") = |[m, g], [part]| m + part * (g - m);
    static DESCEND("rmsprop") = |[p, g, v], [lr, eps]| p - lr * (g / (v.sqrt() + eps));
    static DESCEND_CENTERED("rmsprop") = |[p, g, v, m], [lr, eps]| p - lr * (g / ((v - m * m).sqrt() + eps));
    static BUFFER("rmsprop") = |[b, g, v], [momentum, eps]| momentum * b + g / (v.sqrt() + eps);
    static BUFFER_CENTERED("rmsprop") = |[b, g, v, m], [momentum, eps]| {
        momentum * b + g / ((v - m * m).sqrt() + eps)
    };
    static STEP("rmsprop") = |[p, b], [lr]| p - lr * b;
}

/// The settings of [`RmsProp`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RmsPropRule {
    /// The learning rate.
    pub lr: f64,
    /// What of the mean squared gradient stays each step.
    pub alpha: f64,
    /// Added to the root of the mean squared gradient.
    pub eps: f64,
    /// What of the last step's velocity stays.
    pub momentum: f64,
    /// Adds this times the parameter to its gradient.
    pub weight_decay: f64,
    /// Divides by the standard deviation of the gradient instead: the mean is taken off.
    pub centered: bool,
}

impl RmsPropRule {
    /// The usual settings: alpha 0.99, eps 1e-8, no momentum, no weight decay.
    pub fn new(lr: f64) -> RmsPropRule {
        RmsPropRule { lr, alpha: 0.99, eps: 1e-8, momentum: 0.0, weight_decay: 0.0, centered: false }
    }

    /// Another learning rate.
    pub fn lr(self, lr: f64) -> RmsPropRule {
        RmsPropRule { lr, ..self }
    }

    /// Another weight decay.
    pub fn weight_decay(self, weight_decay: f64) -> RmsPropRule {
        RmsPropRule { weight_decay, ..self }
    }
}

/// RMSprop: the gradient over the root of its running mean square.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_optim::{Optimizer, RmsProp};
/// let p = Tensor::ones([1]).requires_grad_(true);
/// let mut opt = RmsProp::new([p.clone()], 0.01).momentum(0.9);
/// p.mul(&p).sum().backward();
/// opt.step();
/// assert!((p.item::<f32>() - 0.9).abs() < 1e-6);
/// ```
pub type RmsProp = Optim<RmsPropRule>;

impl RmsProp {
    /// The usual settings at rate `lr`; 0.01 is a common one.
    ///
    /// # Panics
    /// If `lr` is negative, there are no parameters, or one is given twice or is no leaf;
    /// [`try_with`](Optim::try_with) gives an error.
    #[track_caller]
    pub fn new(params: impl IntoIterator<Item = Tensor>, lr: f64) -> RmsProp {
        Optim::with(params, RmsPropRule::new(lr))
    }

    /// What of the mean squared gradient stays each step.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn alpha(self, alpha: f64) -> RmsProp {
        self.change(|r| r.alpha = alpha)
    }

    /// Added to the root of the mean squared gradient.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn eps(self, eps: f64) -> RmsProp {
        self.change(|r| r.eps = eps)
    }

    /// What of the last step's velocity stays.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn momentum(self, momentum: f64) -> RmsProp {
        self.change(|r| r.momentum = momentum)
    }

    /// Adds this times the parameter to its gradient.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn weight_decay(self, weight_decay: f64) -> RmsProp {
        self.change(|r| r.weight_decay = weight_decay)
    }

    /// Whether the gradient's mean is taken off what it is divided by.
    pub fn centered(self, on: bool) -> RmsProp {
        self.change(|r| r.centered = on)
    }
}

impl Rule for RmsPropRule {
    const NAME: &'static str = "RmsProp";
    const SLOTS: &'static [&'static str] = &["square_avg", "momentum_buffer", "grad_avg"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("alpha", Setting::Number(&mut self.alpha)),
            ("eps", Setting::Number(&mut self.eps)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("centered", Setting::Flag(&mut self.centered)),
        ]
    }

    fn validate(&self) -> Result<()> {
        not_negative(Self::NAME, "learning rate", self.lr)?;
        not_negative(Self::NAME, "eps", self.eps)?;
        not_negative(Self::NAME, "momentum", self.momentum)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        not_negative(Self::NAME, "alpha", self.alpha)?;
        // A mean that grows without bound is no mean.
        if self.alpha > 1.0 {
            bail!(Argument, Self::NAME, "invalid alpha: {}, which must be in [0, 1]", self.alpha);
        }
        Ok(())
    }

    fn update(&self, p: &Tensor, g: &Tensor, _step: u64, slots: &mut [Option<Tensor>]) -> Result<()> {
        let RmsPropRule { lr, alpha, eps, momentum, weight_decay, centered } = *self;
        let mut g = g.clone();
        if weight_decay != 0.0 {
            let decayed = p.detach().try_zeros_like()?;
            decayed.try_map_(&DECAYED, &[weight_decay], &[&g, p])?;
            g = decayed;
        }
        let v = slot(slots, 0, p, 0.0)?;
        v.try_map_(&SQUARE, &[alpha, 1.0 - alpha], &[&v, &g])?;
        let m = if centered { Some(slot(slots, 2, p, 0.0)?) } else { None };
        if let Some(m) = &m {
            m.try_map_(&MEAN, &[1.0 - alpha], &[m, &g])?;
        }
        if momentum == 0.0 {
            return match &m {
                None => p.try_map_(&DESCEND, &[lr, eps], &[p, &g, &v]),
                Some(m) => p.try_map_(&DESCEND_CENTERED, &[lr, eps], &[p, &g, &v, m]),
            };
        }
        let b = slot(slots, 1, p, 0.0)?;
        match &m {
            None => b.try_map_(&BUFFER, &[momentum, eps], &[&b, &g, &v])?,
            Some(m) => b.try_map_(&BUFFER_CENTERED, &[momentum, eps], &[&b, &g, &v, m])?,
        }
        p.try_map_(&STEP, &[lr], &[p, &b])
    }
}
