//! Differentiable functions written by users.

use std::panic::Location;

use stridegrad_core::{Array, CallerScope, Error, ErrorKind, Result, bail};

use crate::graph::{BackwardFn, Ctx, Recorder, version_of};
use crate::{GradMode, Tensor};

/// A differentiable function with a backward of its own (PyTorch's `torch.autograd.Function`).
///
/// `forward` runs without recording; what it hands to [`ForwardContext::save_for_backward`] is there in `backward`. If
/// `backward` is written in tensor ops on its gradients and on saved inputs and outputs, it can be differentiated itself.
///
/// ```
/// use stridegrad_autograd::{BackwardContext, CustomFunction, ForwardContext, Tensor};
/// use stridegrad_core::Result;
///
/// struct Exp;
/// impl CustomFunction for Exp {
///     fn forward(&self, ctx: &mut ForwardContext, x: &[Tensor]) -> Result<Vec<Tensor>> {
///         let y = x[0].try_exp()?;
///         ctx.save_for_backward(&y);
///         Ok(vec![y])
///     }
///     fn backward(&self, ctx: &BackwardContext, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some(grads[0].try_mul(&ctx.saved(0)?)?)])
///     }
/// }
/// let x = Tensor::zeros([2]).requires_grad_(true);
/// let y = Exp.apply(&[&x]).remove(0);
/// assert_eq!(y.grad_fn(), Some("Exp"));
/// y.sum().backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 1.0]);
/// ```
pub trait CustomFunction: Send + Sync + 'static {
    /// The name in graphs and messages: the type's, unless given.
    fn name(&self) -> &'static str {
        let full = std::any::type_name::<Self>();
        let plain = full.split('<').next().unwrap_or(full);
        plain.rsplit("::").next().unwrap_or(plain)
    }

    /// The outputs. They must have storages of their own, and the inputs must not be written.
    fn forward(&self, ctx: &mut ForwardContext, inputs: &[Tensor]) -> Result<Vec<Tensor>>;

    /// One gradient an input, of its sizes or of sizes it broadcasts to; `None` where there is none. `grads` has one an
    /// output, zeros for those that nothing depends on.
    fn backward(&self, ctx: &BackwardContext<'_>, grads: &[Tensor]) -> Result<Vec<Option<Tensor>>>;

    /// Runs `forward` and records `backward`. Panics where [`CustomFunction::try_apply`] is an error.
    #[track_caller]
    fn apply(self, inputs: &[&Tensor]) -> Vec<Tensor>
    where
        Self: Sized,
    {
        match self.try_apply(inputs) {
            Ok(v) => v,
            Err(e) => e.raise(),
        }
    }

    /// Runs `forward` and records `backward`. An error of `forward`, an input written in it ([`ErrorKind::InPlace`]), and an
    /// output that shares memory with an input ([`ErrorKind::Unsupported`]) are errors.
    #[track_caller]
    fn try_apply(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>>
    where
        Self: Sized,
    {
        let caller = Location::caller();
        let _scope = CallerScope::enter(caller);
        run(self, inputs).map_err(|e| e.at(caller))
    }
}

/// What a [`CustomFunction`]'s forward can ask and keep.
pub struct ForwardContext {
    needs: Vec<bool>,
    saved: Vec<Tensor>,
    constant: Vec<Tensor>,
}

impl ForwardContext {
    /// Whether the gradient of input `i` may be asked for.
    pub fn needs_input_grad(&self, i: usize) -> bool {
        self.needs.get(i).copied().unwrap_or(false)
    }

    /// Keeps a tensor for backward: inputs and outputs with their place in the graph, others as constants. The n-th kept
    /// is [`BackwardContext::saved`]`(n)`.
    pub fn save_for_backward(&mut self, t: &Tensor) {
        self.saved.push(t.clone());
    }

    /// Declares that an output carries no gradient. Integer and boolean ones never do.
    pub fn mark_non_differentiable(&mut self, output: &Tensor) {
        self.constant.push(output.clone());
    }
}

/// What a [`CustomFunction`]'s backward can ask.
pub struct BackwardContext<'a> {
    ctx: &'a Ctx<'a>,
    slots: &'a [Slot],
}

impl BackwardContext<'_> {
    /// Whether the gradient of input `i` is wanted in this pass.
    pub fn needs_input_grad(&self, i: usize) -> bool {
        self.ctx.wanted.get(i).copied().unwrap_or(false)
    }

    /// The `n`-th tensor that forward saved. An error if it was written in place since, or if there is none.
    pub fn saved(&self, n: usize) -> Result<Tensor> {
        match self.slots.get(n) {
            Some(Slot::Input(i)) => self.ctx.input(*i),
            Some(Slot::Output(k)) => self.ctx.output(*k),
            Some(Slot::Extra(k)) => self.ctx.extra(*k),
            None => bail!(
                Autograd,
                "saved",
                "tensor {n} of {} was not saved: its forward saved {}",
                self.ctx.node.name,
                self.slots.len()
            ),
        }
    }
}

/// Where a saved tensor is kept.
enum Slot {
    Input(usize),
    Output(usize),
    Extra(usize),
}

fn run(function: impl CustomFunction, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let name = function.name();
    let mut rec = Recorder::new(name, inputs);
    let versions: Vec<u64> = inputs.iter().map(|t| version_of(t.array())).collect();
    let needs = (0..inputs.len()).map(|i| rec.needs(i)).collect();
    let mut ctx = ForwardContext { needs, saved: Vec::new(), constant: Vec::new() };
    let handles: Vec<Tensor> = inputs.iter().map(|&t| t.clone()).collect();
    let outs = {
        let _mode = GradMode::set(false);
        function.forward(&mut ctx, &handles)?
    };
    for (i, (t, before)) in inputs.iter().zip(versions).enumerate() {
        if version_of(t.array()) != before {
            return Err(Error::new(ErrorKind::InPlace, name, format!("forward wrote input {i} in place"))
                .hint("write into a copy() of it, and return that"));
        }
        if let Some(k) = outs.iter().position(|o| o.shares_storage(t) && o.numel() > 0) {
            let text = format!("output {k} shares memory with input {i}");
            return Err(Error::new(ErrorKind::Unsupported, name, text).hint("return a copy() of it"));
        }
    }
    let (mut slots, mut extras) = (Vec::new(), 0);
    for t in &ctx.saved {
        if let Some(i) = inputs.iter().position(|x| x.is_same(t)) {
            rec.save_input(i);
            slots.push(Slot::Input(i));
        } else if let Some(k) = outs.iter().position(|o| o.is_same(t)) {
            rec.save_output(k);
            slots.push(Slot::Output(k));
        } else {
            rec.save_extra(t.array());
            slots.push(Slot::Extra(extras));
            extras += 1;
        }
    }
    let arrays: Vec<Array> = outs.iter().map(|o| o.array().clone()).collect();
    let device = inputs.first().map_or(stridegrad_core::Device::CPU, |t| t.device());
    let backward: BackwardFn = Box::new(move |ctx, grads| {
        let grads = grads
            .iter()
            .zip(&ctx.node.outputs)
            .map(|(g, o)| match g {
                Some(g) => Ok(g.clone()),
                None => Ok(Tensor::from_array(Array::zeros(o.layout, o.dtype, device)?)),
            })
            .collect::<Result<Vec<_>>>()?;
        let found = function.backward(&BackwardContext { ctx, slots: &slots }, &grads)?;
        if found.len() != ctx.wanted.len() {
            bail!(
                Autograd,
                name,
                "backward returned {} gradients for {} inputs",
                found.len(),
                ctx.wanted.len()
            );
        }
        found.into_iter().enumerate().map(|(i, g)| g.map_or(Ok(None), |g| ctx.reduce_to(i, g))).collect()
    });
    let recorded = rec.finish_many(arrays, backward)?;
    let constant = |o: &Tensor| ctx.constant.iter().any(|c| c.is_same(o));
    Ok(recorded.into_iter().zip(&outs).map(|(t, o)| if constant(o) { t.detach() } else { t }).collect())
}
