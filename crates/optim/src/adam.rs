//! Adam (Kingma and Ba, 2015), AMSGrad (Reddi et al., 2018) and AdamW (Loshchilov and Hutter, 2019), as
//! `torch.optim` has them.

use stridegrad_autograd::{Tensor, map_kernel};
use stridegrad_core::{Result, bail};

use crate::optimizer::{Optim, Rule, Setting, not_negative, slot};

map_kernel! {
    static DECAY("adam") = |[p], [keep]| p * keep;
    static GRADIENT("adam") = |[g, p], [decay]| g + decay * p;
    static MEAN("adam") = |[m, g], [part]| m + part * (g - m);
    static SQUARE("adam") = |[v, g], [keep, part]| keep * v + part * (g * g);
    static LARGEST("adam") = |[a, b], []| a.max(b);
    static DESCEND("adam") = |[p, m, v], [size, correction, eps]| p - size * (m / (v.sqrt() / correction + eps));
}

/// The settings of [`Adam`] and [`AdamW`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdamRule<const DECOUPLED: bool> {
    /// The learning rate.
    pub lr: f64,
    /// What of the mean gradient stays each step.
    pub beta1: f64,
    /// What of the mean squared gradient stays each step.
    pub beta2: f64,
    /// Added to the root of the mean squared gradient.
    pub eps: f64,
    /// Adam adds this times the parameter to its gradient; AdamW takes `lr` times this off the parameter.
    pub weight_decay: f64,
    /// Divides by the largest mean squared gradient so far.
    pub amsgrad: bool,
}

impl<const DECOUPLED: bool> AdamRule<DECOUPLED> {
    /// The usual settings: betas 0.9 and 0.999, eps 1e-8; weight decay 0 for Adam, 0.01 for AdamW.
    pub fn new(lr: f64) -> Self {
        let weight_decay = if DECOUPLED { 0.01 } else { 0.0 };
        AdamRule { lr, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay, amsgrad: false }
    }

    /// Another learning rate.
    pub fn lr(self, lr: f64) -> Self {
        AdamRule { lr, ..self }
    }

    /// Another weight decay.
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        AdamRule { weight_decay, ..self }
    }
}

/// Adam: steps of about `lr` in each coordinate; weight decay is part of the gradient.
///
/// ```
/// use stridegrad_autograd::{Tensor, map_kernel};
/// use stridegrad_optim::{Adam, Optimizer};
/// let p = Tensor::ones([1]).requires_grad_(true);
/// let mut opt = Adam::new([p.clone()], 0.1);
/// p.mul(&p).sum().backward();
/// opt.step();
/// assert!((p.item::<f32>() - 0.9).abs() < 1e-6);
/// ```
pub type Adam = Optim<AdamRule<false>>;

/// AdamW: Adam with weight decay beside the gradient, 0.01 by default.
pub type AdamW = Optim<AdamRule<true>>;

impl<const DECOUPLED: bool> Optim<AdamRule<DECOUPLED>> {
    /// The usual settings at rate `lr`; 1e-3 is a common one.
    ///
    /// # Panics
    /// If `lr` is negative, there are no parameters, or one is given twice or is no leaf;
    /// [`try_with`](Optim::try_with) gives an error.
    #[track_caller]
    pub fn new(params: impl IntoIterator<Item = Tensor>, lr: f64) -> Self {
        Optim::with(params, AdamRule::new(lr))
    }

    /// What of the mean gradient and of the mean squared gradient stays each step.
    ///
    /// # Panics
    /// If one is not in [0, 1).
    #[track_caller]
    pub fn betas(self, beta1: f64, beta2: f64) -> Self {
        self.change(|r| (r.beta1, r.beta2) = (beta1, beta2))
    }

    /// Added to the root of the mean squared gradient.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn eps(self, eps: f64) -> Self {
        self.change(|r| r.eps = eps)
    }

    /// Shrinks parameters: by way of the gradient with Adam, directly with AdamW.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        self.change(|r| r.weight_decay = weight_decay)
    }

    /// Divides by the largest mean squared gradient so far.
    pub fn amsgrad(self, on: bool) -> Self {
        self.change(|r| r.amsgrad = on)
    }
}

impl<const DECOUPLED: bool> Rule for AdamRule<DECOUPLED> {
    const NAME: &'static str = if DECOUPLED { "AdamW" } else { "Adam" };
    const SLOTS: &'static [&'static str] = &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("beta1", Setting::Number(&mut self.beta1)),
            ("beta2", Setting::Number(&mut self.beta2)),
            ("eps", Setting::Number(&mut self.eps)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("amsgrad", Setting::Flag(&mut self.amsgrad)),
        ]
    }

    fn validate(&self) -> Result<()> {
        not_negative(Self::NAME, "learning rate", self.lr)?;
        not_negative(Self::NAME, "eps", self.eps)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        for (name, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                bail!(Argument, Self::NAME, "invalid {name}: {beta}, which must be in [0, 1)");
            }
        }
        Ok(())
    }

    fn update(&self, p: &Tensor, g: &Tensor, step: u64, slots: &mut [Option<Tensor>]) -> Result<()> {
        let mut g = g.clone();
        if self.weight_decay != 0.0 {
            if DECOUPLED {
                p.try_map_(&DECAY, &[1.0 - self.lr * self.weight_decay], &[p])?;
            } else {
                let decayed = p.detach().try_zeros_like()?;
                decayed.try_map_(&GRADIENT, &[self.weight_decay], &[&g, p])?;
                g = decayed;
            }
        }
        let (m, v) = (slot(slots, 0, p, 0.0)?, slot(slots, 1, p, 0.0)?);
        m.try_map_(&MEAN, &[1.0 - self.beta1], &[&m, &g])?;
        v.try_map_(&SQUARE, &[self.beta2, 1.0 - self.beta2], &[&v, &g])?;
        let v = if !self.amsgrad {
            v
        } else {
            let largest = slot(slots, 2, p, 0.0)?;
            largest.try_map_(&LARGEST, &[], &[&largest, &v])?;
            largest
        };
        let bias = |beta: f64| 1.0 - beta.powf(step as f64);
        let size = self.lr / bias(self.beta1);
        p.try_map_(&DESCEND, &[size, bias(self.beta2).sqrt(), self.eps], &[p, &m, &v])
    }
}
