//! Adagrad (Duchi, Hazan and Singer, 2011), as `torch.optim.Adagrad` has it.

use stridegrad_autograd::{Tensor, map_kernel};
use stridegrad_core::Result;

use crate::optimizer::{Optim, Rule, Setting, not_negative, slot};

map_kernel! {
    static DECAYED("adagrad") = |[g, p], [decay]| g + decay * p;
    static SQUARE("adagrad") = |[s, g], []| s + g * g;
    static DESCEND("adagrad") = |[p, g, s], [lr, eps]| p - lr * (g / (s.sqrt() + eps));
}

/// The settings of [`Adagrad`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdagradRule {
    /// The learning rate.
    pub lr: f64,
    /// The rate is `lr / (1 + lr_decay * k)` after `k` steps.
    pub lr_decay: f64,
    /// Adds this times the parameter to its gradient.
    pub weight_decay: f64,
    /// What the sum of squared gradients starts from.
    pub initial_accumulator: f64,
    /// Added to the root of the sum.
    pub eps: f64,
}

impl AdagradRule {
    /// The usual settings: eps 1e-10, and nothing else.
    pub fn new(lr: f64) -> AdagradRule {
        AdagradRule { lr, lr_decay: 0.0, weight_decay: 0.0, initial_accumulator: 0.0, eps: 1e-10 }
    }

    /// Another learning rate.
    pub fn lr(self, lr: f64) -> AdagradRule {
        AdagradRule { lr, ..self }
    }

    /// Another weight decay.
    pub fn weight_decay(self, weight_decay: f64) -> AdagradRule {
        AdagradRule { weight_decay, ..self }
    }
}

/// Adagrad: the gradient over the root of the sum of its squares so far.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_optim::{Adagrad, Optimizer};
/// let p = Tensor::ones([1]).requires_grad_(true);
/// let mut opt = Adagrad::new([p.clone()], 0.1);
/// p.mul(&p).sum().backward();
/// opt.step();
/// assert!((p.item::<f32>() - 0.9).abs() < 1e-6);
/// ```
pub type Adagrad = Optim<AdagradRule>;

impl Adagrad {
    /// The usual settings at rate `lr`; 0.01 is a common one.
    ///
    /// # Panics
    /// If `lr` is negative, there are no parameters, or one is given twice or is no leaf;
    /// [`try_with`](Optim::try_with) gives an error.
    #[track_caller]
    pub fn new(params: impl IntoIterator<Item = Tensor>, lr: f64) -> Adagrad {
        Optim::with(params, AdagradRule::new(lr))
    }

    /// The rate is `lr / (1 + lr_decay * k)` after `k` steps.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn lr_decay(self, lr_decay: f64) -> Adagrad {
        self.change(|r| r.lr_decay = lr_decay)
    }

    /// Adds this times the parameter to its gradient.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn weight_decay(self, weight_decay: f64) -> Adagrad {
        self.change(|r| r.weight_decay = weight_decay)
    }

    /// What the sum of squared gradients starts from.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn initial_accumulator(self, value: f64) -> Adagrad {
        self.change(|r| r.initial_accumulator = value)
    }

    /// Added to the root of the sum.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn eps(self, eps: f64) -> Adagrad {
        self.change(|r| r.eps = eps)
    }
}

impl Rule for AdagradRule {
    const NAME: &'static str = "Adagrad";
    const SLOTS: &'static [&'static str] = &["sum"];

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("lr_decay", Setting::Number(&mut self.lr_decay)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("initial_accumulator", Setting::Number(&mut self.initial_accumulator)),
            ("eps", Setting::Number(&mut self.eps)),
        ]
    }

    fn validate(&self) -> Result<()> {
        not_negative(Self::NAME, "learning rate", self.lr)?;
        not_negative(Self::NAME, "lr_decay", self.lr_decay)?;
        not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        not_negative(Self::NAME, "initial_accumulator", self.initial_accumulator)?;
        not_negative(Self::NAME, "eps", self.eps)
    }

    fn update(&self, p: &Tensor, g: &Tensor, step: u64, slots: &mut [Option<Tensor>]) -> Result<()> {
        let mut g = g.clone();
        if self.weight_decay != 0.0 {
            let decayed = p.detach().try_zeros_like()?;
            decayed.try_map_(&DECAYED, &[self.weight_decay], &[&g, p])?;
            g = decayed;
        }
        let lr = self.lr / (1.0 + (step - 1) as f64 * self.lr_decay);
        let sum = slot(slots, 0, p, self.initial_accumulator)?;
        sum.try_map_(&SQUARE, &[], &[&sum, &g])?;
        p.try_map_(&DESCEND, &[lr, self.eps], &[p, &g, &sum])
    }
}
