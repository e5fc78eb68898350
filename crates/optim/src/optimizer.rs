//! What every optimizer shares: groups of parameters, state for each, and how both are saved.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;

use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{Error, ErrorKind, Result, bail};
use stridegrad_nn::StateDict;

/// Moves parameters against their gradients. The object-safe face of [`Optim`].
pub trait Optimizer: fmt::Debug + Send + Sync {
    /// One step: every parameter with a gradient moves; those without are passed over, weight decay included.
    ///
    /// # Panics
    /// If a gradient does not fit its parameter; [`try_step`](Optimizer::try_step) gives an error.
    #[track_caller]
    fn step(&mut self) {
        if let Err(e) = self.try_step() {
            e.at(Location::caller()).raise();
        }
    }

    /// Fallible form of [`step`](Optimizer::step).
    ///
    /// # Errors
    /// If a gradient does not fit its parameter, or memory cannot be had.
    fn try_step(&mut self) -> Result<()>;

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self);

    /// The learning rate of each group.
    fn lrs(&self) -> Vec<f64>;

    /// Sets the learning rate of each group.
    ///
    /// # Errors
    /// `Argument` unless there is one for each group, finite and not negative.
    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()>;

    /// All that continuing needs, but for the parameters themselves.
    fn state(&self) -> OptimizerState;

    /// Continues from a saved state.
    ///
    /// # Errors
    /// `StateDict` where it is another optimizer's, or of other parameters; nothing is changed then.
    fn load_state(&mut self, state: &OptimizerState) -> Result<()>;
}

/// The state of an optimizer: its settings, and tensors by parameter.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState {
    /// The optimizer's name, such as `"Sgd"`.
    pub kind: String,
    /// The settings of each group, by name.
    pub groups: Vec<BTreeMap<String, f64>>,
    /// The steps that each parameter has taken.
    pub steps: Vec<u64>,
    /// The tensors, named `<parameter>.<what>`, such as `0.momentum_buffer`; parameters are numbered in order.
    pub tensors: StateDict,
}

/// One setting of a [`Rule`].
#[derive(Debug)]
pub enum Setting<'a> {
    /// A number.
    Number(&'a mut f64),
    /// A switch; saved as 0 or 1.
    Flag(&'a mut bool),
}

impl Setting<'_> {
    fn get(&self) -> f64 {
        match self {
            Setting::Number(v) => **v,
            Setting::Flag(on) => f64::from(u8::from(**on)),
        }
    }

    fn set(&mut self, value: f64) {
        match self {
            Setting::Number(v) => **v = value,
            Setting::Flag(on) => **on = value != 0.0,
        }
    }
}

/// The rule of one optimizer: its settings, and what they make of a parameter and its gradient.
pub trait Rule: Clone + fmt::Debug + Send + Sync + 'static {
    /// The optimizer's name.
    const NAME: &'static str;
    /// The names of the tensors it keeps for each parameter.
    const SLOTS: &'static [&'static str];

    /// The settings by name; the number `lr` is among them.
    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)>;

    /// Refuses settings out of their range.
    ///
    /// # Errors
    /// `Argument`, naming the setting.
    fn validate(&self) -> Result<()>;

    /// Moves `p` by its gradient `g`. `step` counts from 1; `slots` are this parameter's tensors, empty at first.
    ///
    /// # Errors
    /// Where an op refuses.
    fn update(&self, p: &Tensor, g: &Tensor, step: u64, slots: &mut [Option<Tensor>]) -> Result<()>;
}

/// A group of parameters under the same settings.
#[derive(Debug)]
struct Group<R> {
    params: Vec<Param>,
    rule: R,
}

/// A parameter and its state.
struct Param {
    tensor: Tensor,
    steps: u64,
    slots: Vec<Option<Tensor>>,
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} after {} steps", self.tensor.dtype(), self.tensor.sizes(), self.steps)
    }
}

/// An optimizer: groups of parameters, each moved by a [`Rule`]. See [`Sgd`](crate::Sgd), [`Adam`](crate::Adam),
/// [`AdamW`](crate::AdamW).
#[derive(Debug)]
pub struct Optim<R: Rule> {
    groups: Vec<Group<R>>,
}

impl<R: Rule> Optim<R> {
    /// An optimizer of `params` under `rule`.
    ///
    /// # Errors
    /// `Argument` if there are no parameters, one is given twice, one is no leaf, or a setting is out of range.
    pub fn try_with(params: impl IntoIterator<Item = Tensor>, rule: R) -> Result<Optim<R>> {
        let mut optim = Optim { groups: Vec::new() };
        optim.push_group(params.into_iter().collect(), rule)?;
        Ok(optim)
    }

    #[track_caller]
    pub(crate) fn with(params: impl IntoIterator<Item = Tensor>, rule: R) -> Optim<R> {
        let caller = Location::caller();
        Optim::try_with(params, rule).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Adds parameters under settings of their own: `change` gets those of the first group.
    ///
    /// # Panics
    /// As [`try_group`](Optim::try_group) fails.
    #[track_caller]
    pub fn group(self, params: impl IntoIterator<Item = Tensor>, change: impl FnOnce(R) -> R) -> Optim<R> {
        let caller = Location::caller();
        self.try_group(params, change).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`group`](Optim::group).
    ///
    /// # Errors
    /// `Argument` if there are no parameters, one is given twice, one is no leaf, or a setting is out of range.
    pub fn try_group(
        mut self,
        params: impl IntoIterator<Item = Tensor>,
        change: impl FnOnce(R) -> R,
    ) -> Result<Optim<R>> {
        let rule = change(self.groups[0].rule.clone());
        self.push_group(params.into_iter().collect(), rule)?;
        Ok(self)
    }

    fn push_group(&mut self, params: Vec<Tensor>, rule: R) -> Result<()> {
        rule.validate()?;
        if params.is_empty() {
            bail!(Argument, R::NAME, "an empty list of parameters");
        }
        for (i, p) in params.iter().enumerate() {
            if !p.is_leaf() {
                return Err(Error::new(ErrorKind::Argument, R::NAME, "can't optimize a non-leaf Tensor")
                    .hint("optimize the tensors it was computed from, or detach() it"));
            }
            let known = self.groups.iter().flat_map(|g| g.params.iter().map(|p| &p.tensor));
            if known.chain(&params[..i]).any(|old| old.is_same(p)) {
                bail!(Argument, R::NAME, "parameter {i} of sizes {:?} is given twice", p.sizes());
            }
        }
        let new = |tensor| Param { tensor, steps: 0, slots: vec![None; R::SLOTS.len()] };
        self.groups.push(Group { params: params.into_iter().map(new).collect(), rule });
        Ok(())
    }

    /// Changes the settings of every group, for the builders.
    #[track_caller]
    pub(crate) fn change(mut self, change: impl Fn(&mut R)) -> Optim<R> {
        for group in &mut self.groups {
            change(&mut group.rule);
            if let Err(e) = group.rule.validate() {
                e.at(Location::caller()).raise();
            }
        }
        self
    }

    /// The learning rate of the first group.
    pub fn lr(&self) -> f64 {
        self.lrs()[0]
    }

    /// Sets the learning rate of every group.
    ///
    /// # Panics
    /// If it is negative or not finite.
    #[track_caller]
    pub fn set_lr(&mut self, lr: f64) {
        if let Err(e) = self.set_lrs(&vec![lr; self.groups.len()]) {
            e.at(Location::caller()).raise();
        }
    }

    fn params(&self) -> impl Iterator<Item = &Param> {
        self.groups.iter().flat_map(|g| &g.params)
    }
}

/// The setting `lr` of a rule.
fn lr_of<R: Rule>(rule: &mut R) -> Option<Setting<'_>> {
    rule.settings().into_iter().find(|(name, _)| *name == "lr").map(|(_, setting)| setting)
}

impl<R: Rule> Optimizer for Optim<R> {
    fn try_step(&mut self) -> Result<()> {
        let grads: Vec<Option<Tensor>> = self.params().map(|p| p.tensor.grad()).collect();
        // Refused before the first write.
        for (i, (p, g)) in self.params().zip(&grads).enumerate() {
            // Nobody can compute with a tensor that the optimizer alone holds: it would never move, without a word.
            if g.is_none() && p.tensor.handle_count() == 1 {
                return Err(Error::new(
                    ErrorKind::Argument,
                    R::NAME,
                    format!("parameter {i} of sizes {:?} is held by the optimizer alone", p.tensor.sizes()),
                )
                .hint("Module::to() makes new parameters: make the optimizer after it"));
            }
            if let Some(g) = g
                && (g.sizes() != p.tensor.sizes() || g.dtype() != p.tensor.dtype())
            {
                let (gd, gs, pd, ps) = (g.dtype(), g.sizes(), p.tensor.dtype(), p.tensor.sizes());
                bail!(Shape, R::NAME, "a gradient of {gd} {gs:?} for a parameter of {pd} {ps:?}");
            }
        }
        let mut grads = grads.into_iter();
        no_grad(|| {
            for Group { params, rule } in &mut self.groups {
                for (p, g) in params.iter_mut().zip(&mut grads) {
                    let Some(g) = g else { continue };
                    rule.update(&p.tensor, &g, p.steps + 1, &mut p.slots)?;
                    p.steps += 1;
                }
            }
            Ok(())
        })
    }

    fn zero_grad(&self) {
        self.params().for_each(|p| p.tensor.zero_grad());
    }

    fn lrs(&self) -> Vec<f64> {
        let lr = |g: &Group<R>| lr_of(&mut g.rule.clone()).map_or(0.0, |s| s.get());
        self.groups.iter().map(lr).collect()
    }

    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        if lrs.len() != self.groups.len() {
            bail!(Argument, R::NAME, "{} learning rates for {} groups", lrs.len(), self.groups.len());
        }
        let mut rules: Vec<R> = self.groups.iter().map(|g| g.rule.clone()).collect();
        for (rule, &new) in rules.iter_mut().zip(lrs) {
            if let Some(mut lr) = lr_of(rule) {
                lr.set(new);
            }
            rule.validate()?;
        }
        self.groups.iter_mut().zip(rules).for_each(|(g, rule)| g.rule = rule);
        Ok(())
    }

    fn state(&self) -> OptimizerState {
        let settings = |g: &Group<R>| {
            let mut rule = g.rule.clone();
            rule.settings().into_iter().map(|(n, s)| (n.to_owned(), s.get())).collect()
        };
        let mut tensors = StateDict::new();
        for (i, p) in self.params().enumerate() {
            for (slot, name) in p.slots.iter().zip(R::SLOTS) {
                if let Some(t) = slot {
                    tensors.push(format!("{i}.{name}"), t.clone());
                }
            }
        }
        OptimizerState {
            kind: R::NAME.to_owned(),
            groups: self.groups.iter().map(settings).collect(),
            steps: self.params().map(|p| p.steps).collect(),
            tensors,
        }
    }

    fn load_state(&mut self, state: &OptimizerState) -> Result<()> {
        if state.kind != R::NAME {
            bail!(StateDict, R::NAME, "the state is one of {:?}", state.kind);
        }
        let count = self.params().count();
        if (state.groups.len(), state.steps.len()) != (self.groups.len(), count) {
            let (groups, params) = (state.groups.len(), state.steps.len());
            bail!(
                StateDict,
                R::NAME,
                "the state has {groups} groups and {params} parameters, the optimizer {} and {count}",
                self.groups.len()
            );
        }
        let mut rules = Vec::new();
        for (group, saved) in self.groups.iter().zip(&state.groups) {
            let mut rule = group.rule.clone();
            for (name, mut setting) in rule.settings() {
                let Some(&saved) = saved.get(name) else {
                    bail!(StateDict, R::NAME, "the state has no setting {name:?}")
                };
                setting.set(saved);
            }
            rule.validate()?;
            rules.push(rule);
        }
        let mut all_slots = Vec::new();
        for (i, p) in self.params().enumerate() {
            let mut slots = Vec::new();
            for name in R::SLOTS {
                let name = format!("{i}.{name}");
                let saved = state.tensors.get(&name);
                if let Some(t) = saved.filter(|t| t.sizes() != p.tensor.sizes()) {
                    let (was, is) = (t.sizes(), p.tensor.sizes());
                    bail!(StateDict, R::NAME, "{name} is of sizes {was:?}, its parameter of {is:?}");
                }
                // Of the parameter's strides, dtype and device, as a slot made by a step would be.
                slots.push(match saved {
                    None => None,
                    Some(t) => {
                        let slot = p.tensor.detach().try_zeros_like()?;
                        slot.try_copy_(t)?;
                        Some(slot)
                    }
                });
            }
            all_slots.push(slots);
        }
        let (mut all_slots, mut steps) = (all_slots.into_iter(), state.steps.iter());
        for (group, rule) in self.groups.iter_mut().zip(rules) {
            group.rule = rule;
            for p in &mut group.params {
                (p.slots, p.steps) = match (all_slots.next(), steps.next()) {
                    (Some(slots), Some(&n)) => (slots, n),
                    _ => break, // counted above
                };
            }
        }
        Ok(())
    }
}

/// Refuses a setting that is negative, NaN or infinite.
pub(crate) fn not_negative(op: &'static str, name: &str, value: f64) -> Result<()> {
    if !(value >= 0.0 && value.is_finite()) {
        bail!(Argument, op, "invalid {name}: {value}, which must be finite and not negative");
    }
    Ok(())
}

/// A parameter's slot, filled with `start` when it is first asked for.
pub(crate) fn slot(slots: &mut [Option<Tensor>], i: usize, p: &Tensor, start: f64) -> Result<Tensor> {
    if let Some(t) = &slots[i] {
        return Ok(t.clone());
    }
    let t = p.detach().try_full_like(start)?;
    slots[i] = Some(t.clone());
    Ok(t)
}
