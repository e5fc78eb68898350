//! Checking gradients against central differences, in every layout.

mod layouts;
mod numeric;

use stridegrad_core::{CallerScope, Error, ErrorKind, Result, bail};

use self::layouts::{column_major, expandable, place, placements};
use self::numeric::{Jacobian, noise};
use crate::{BackwardOptions, Tensor, enable_grad, no_grad};

/// How [`gradcheck`] and [`gradgradcheck`] compare.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GradcheckOptions {
    /// The step of the differences: 1e-6.
    pub eps: f64,
    /// Absolute tolerance: 1e-5.
    pub atol: f64,
    /// Tolerance relative to the numeric value: 1e-3.
    pub rtol: f64,
    /// Whether inputs and the gradients of outputs are also tried in other layouts than their own: yes.
    pub layouts: bool,
    /// Whether that includes inputs made by `expand`: yes. Their elements are equal, which is a kink of some functions.
    pub expanded: bool,
    /// Whether a derivative in one random direction stands for all of them: no. A call costs a few evaluations
    /// then, not two an element, but an error is known by input only.
    pub fast: bool,
}

impl Default for GradcheckOptions {
    fn default() -> Self {
        GradcheckOptions { eps: 1e-6, atol: 1e-5, rtol: 1e-3, layouts: true, expanded: true, fast: false }
    }
}

impl GradcheckOptions {
    /// With another step.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// With other tolerances.
    #[must_use]
    pub fn tolerances(mut self, atol: f64, rtol: f64) -> Self {
        (self.atol, self.rtol) = (atol, rtol);
        self
    }

    /// With or without the sweep over layouts.
    #[must_use]
    pub fn layouts(mut self, on: bool) -> Self {
        self.layouts = on;
        self
    }

    /// With or without inputs made by `expand` in the sweep.
    #[must_use]
    pub fn expanded(mut self, on: bool) -> Self {
        self.expanded = on;
        self
    }

    /// With one random direction for all derivatives.
    #[must_use]
    pub fn fast(mut self, on: bool) -> Self {
        self.fast = on;
        self
    }
}

/// What a checked function may return: a tensor, several, or a `Result` of them.
pub trait Outputs {
    /// The tensors.
    fn into_outputs(self) -> Result<Vec<Tensor>>;
}

impl Outputs for Tensor {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}

impl Outputs for Vec<Tensor> {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(self)
    }
}

impl<const N: usize> Outputs for [Tensor; N] {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        Ok(self.into())
    }
}

impl<T: Outputs> Outputs for Result<T> {
    fn into_outputs(self) -> Result<Vec<Tensor>> {
        self?.into_outputs()
    }
}

/// Checks the gradients of `f` at `inputs` against central differences; those of the inputs that require grad, which
/// must be `f64`.
///
/// Every gradient is checked for its values, sizes, dtype and (in [`Tensor::grad`]) strides, and for being there at
/// all. Two runs must agree to the last bit. With [`GradcheckOptions::layouts`], the inputs are then put into other
/// layouts, all at once and one at a time (permuted, stepped with an offset, reversed, channels-last, expanded from a
/// smaller base, with NaN in the storage around them), and the gradients of the outputs are given transposed, stepped
/// and expanded: neither may change anything. A function that looks at its inputs' storage, as `as_strided` does, is
/// checked without the sweep.
///
/// At a kink the differences agree with the mean of both slopes, so keep inputs away from them.
///
/// # Errors
/// `Autograd`, naming input, element, numeric and analytic value and the layout; `Argument` for inputs that cannot be
/// checked; whatever `f` fails with.
///
/// ```
/// use stridegrad_autograd::{GradcheckOptions, Tensor, gradcheck};
///
/// fn gaussian(x: &Tensor, width: &Tensor) -> Tensor {
///     let z = x / width;
///     (&z * &z * -0.5).exp()
/// }
///
/// let x = Tensor::from_slice(&[-1.0f64, 0.5, 2.0, 0.1], [2, 2]).requires_grad_(true);
/// let width = Tensor::from_slice(&[0.5f64, 1.5], [2]).requires_grad_(true);
/// gradcheck(|t| gaussian(&t[0], &t[1]), &[x.clone(), width], GradcheckOptions::default())?;
///
/// // `detach` hides half of the gradient, and the check says so.
/// let wrong = gradcheck(|t| &t[0] * &t[0].detach(), &[x], GradcheckOptions::default());
/// assert!(wrong.unwrap_err().message().starts_with("input 0 at [0, 0]: numeric -2"));
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
#[track_caller]
pub fn gradcheck<O: Outputs>(
    f: impl Fn(&[Tensor]) -> O,
    inputs: &[Tensor],
    options: GradcheckOptions,
) -> Result<()> {
    let caller = std::panic::Location::caller();
    let _scope = CallerScope::enter(caller);
    let f = |x: &[Tensor]| f(x).into_outputs();
    Check { op: "gradcheck", f: &f, inputs, options }.run().map_err(|e| e.at(caller))
}

/// Checks the second derivatives of `f` at `inputs`: the gradients that [`grad`](crate::grad) gives with `create_graph`,
/// as functions of the inputs and of the gradients of the outputs, are put through [`gradcheck`].
///
/// # Errors
/// As [`gradcheck`].
///
/// ```
/// use stridegrad_autograd::{GradcheckOptions, Tensor, gradgradcheck};
/// let x = Tensor::from_slice(&[0.5f64, -1.0, 2.0], [3]).requires_grad_(true);
/// gradgradcheck(|t| t[0].exp() * &t[0], &[x], GradcheckOptions::default())?;
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
#[track_caller]
pub fn gradgradcheck<O: Outputs>(
    f: impl Fn(&[Tensor]) -> O,
    inputs: &[Tensor],
    options: GradcheckOptions,
) -> Result<()> {
    let caller = std::panic::Location::caller();
    let _scope = CallerScope::enter(caller);
    let run = || {
        let outputs = no_grad(|| f(inputs).into_outputs())?;
        let n = inputs.len();
        let mut all = inputs.to_vec();
        for (k, out) in outputs.iter().enumerate().filter(|(_, o)| o.dtype().is_floating()) {
            all.push(seed(out, k)?.try_requires_grad_(true)?);
        }
        let gradients = |x: &[Tensor]| enable_grad(|| gradients_of(&f, inputs, &x[..n], &x[n..]));
        Check { op: "gradgradcheck", f: &gradients, inputs: &all, options }.run()
    };
    run().map_err(|e| e.at(caller))
}

/// The gradients of the inputs marked in `marks`, with a graph; zeros for those that get none.
fn gradients_of<O: Outputs>(
    f: &impl Fn(&[Tensor]) -> O,
    marks: &[Tensor],
    x: &[Tensor],
    seeds: &[Tensor],
) -> Result<Vec<Tensor>> {
    let mut x = x.to_vec();
    for (t, mark) in x.iter_mut().zip(marks) {
        // Under the differences' `no_grad` the arguments are plain values.
        if mark.requires_grad() && !t.requires_grad() {
            *t = t.detach().try_requires_grad_(true)?;
        }
    }
    let outputs = f(&x).into_outputs()?;
    let outputs: Vec<&Tensor> = outputs.iter().filter(|o| o.dtype().is_floating()).collect();
    let tracked: Vec<usize> = (0..outputs.len()).filter(|&k| outputs[k].requires_grad()).collect();
    let wanted: Vec<&Tensor> =
        x.iter().zip(marks).filter(|(_, m)| m.requires_grad()).map(|(t, _)| t).collect();
    let outs: Vec<&Tensor> = tracked.iter().map(|&k| outputs[k]).collect();
    let grads: Vec<&Tensor> = tracked.iter().map(|&k| &seeds[k]).collect();
    let options = BackwardOptions { create_graph: true, ..Default::default() };
    let found = crate::grad(&outs, &wanted, Some(&grads), options)?;
    found.into_iter().zip(wanted).map(|(g, x)| g.map_or_else(|| x.try_zeros_like(), Ok)).collect()
}

type Function<'a> = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + 'a;

struct Check<'a> {
    op: &'static str,
    f: &'a Function<'a>,
    inputs: &'a [Tensor],
    options: GradcheckOptions,
}

/// How the gradients of the outputs are laid out.
#[derive(Clone, Copy, PartialEq)]
enum SeedLayout {
    Contiguous,
    Transposed,
    Stepped,
    Expanded,
}

impl Check<'_> {
    fn run(&self) -> Result<()> {
        let checked = self.checked()?;
        let own = self.leaves(|t| place(t, *t.layout()))?;
        let jacobian = Jacobian::new(self.f, &own, &checked, &self.options)?;
        self.same_twice(&own, &checked)?;
        for (k, j) in self.rows(&jacobian) {
            let mut seeds = vec![None; jacobian.outputs.len()];
            seeds[k] = Some(one_hot(&jacobian.outputs[k], j)?);
            self.compare(&own, &checked, &jacobian, &seeds, &|| {
                format!(" (of output {k} at {:?})", index_of(jacobian.outputs[k].sizes(), j))
            })?;
        }
        self.in_layouts(&own, &checked, &jacobian, "")?;
        if !self.options.layouts {
            return Ok(());
        }
        let every: Vec<_> = self.inputs.iter().map(|t| placements(t.sizes())).collect::<Result<_>>()?;
        let most = every.iter().map(Vec::len).max().unwrap_or(0);
        for v in 0..most {
            let chosen: Vec<_> = every.iter().map(|p| &p[v.min(p.len() - 1)]).collect();
            let x = self.leaves_at(|i, t| place(t, chosen[i].layout))?;
            let names: Vec<&str> = chosen.iter().map(|p| p.name).collect();
            self.in_layouts(&x, &checked, &jacobian, &format!(" (inputs {})", names.join(", ")))?;
        }
        for (i, places) in every.iter().enumerate().filter(|_| self.inputs.len() > 1) {
            for p in &places[1..] {
                let x = self.leaves_at(|k, t| place(t, if k == i { p.layout } else { *t.layout() }))?;
                let place = || format!(" (input {i} {})", p.name);
                self.compare(
                    &x,
                    &checked,
                    &jacobian,
                    &self.seeds(&jacobian, SeedLayout::Contiguous)?,
                    &place,
                )?;
            }
        }
        checked.iter().try_for_each(|&i| self.expanded(i, &checked))
    }

    /// The inputs whose gradients are checked.
    fn checked(&self) -> Result<Vec<usize>> {
        let checked: Vec<usize> =
            (0..self.inputs.len()).filter(|&i| self.inputs[i].requires_grad()).collect();
        if checked.is_empty() {
            return Err(Error::new(ErrorKind::Argument, self.op, "no input requires grad")
                .hint("mark inputs with requires_grad_(true)"));
        }
        for &i in &checked {
            let t = &self.inputs[i];
            if t.dtype() != stridegrad_core::DType::F64 {
                bail!(Argument, self.op, "input {i} is {}: differences need f64", t.dtype());
            }
            if stridegrad_core::self_overlaps(t.layout()) {
                return Err(Error::new(
                    ErrorKind::Argument,
                    self.op,
                    format!(
                        "elements of input {i} (sizes {:?}, strides {:?}) share a place and cannot change one by one",
                        t.sizes(),
                        t.strides()
                    ),
                )
                .hint("pass its base, and expand in the function"));
            }
        }
        Ok(checked)
    }

    fn leaves(&self, place: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
        self.leaves_at(|_, t| place(t))
    }

    /// The inputs placed anew, as leaves.
    fn leaves_at(&self, place: impl Fn(usize, &Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
        let leaf = |(i, t): (usize, &Tensor)| match place(i, t) {
            Ok(new) if t.requires_grad() => new.try_requires_grad_(true),
            other => other,
        };
        self.inputs.iter().enumerate().map(leaf).collect()
    }

    /// Which elements of which outputs get a one-hot gradient of their own.
    fn rows(&self, jacobian: &Jacobian) -> Vec<(usize, usize)> {
        if self.options.fast {
            return Vec::new();
        }
        let all = jacobian.outputs.iter().enumerate();
        all.flat_map(|(k, out)| (0..out.numel()).map(move |j| (k, j))).collect()
    }

    fn seeds(&self, jacobian: &Jacobian, layout: SeedLayout) -> Result<Vec<Option<Tensor>>> {
        jacobian.outputs.iter().enumerate().map(|(k, out)| lay_out_seed(out, k, layout).map(Some)).collect()
    }

    /// Compares in given input layouts, for gradients of the outputs in every layout.
    fn in_layouts(&self, x: &[Tensor], checked: &[usize], jacobian: &Jacobian, place: &str) -> Result<()> {
        use SeedLayout::*;
        let layouts: &[_] =
            if self.options.layouts { &[Contiguous, Transposed, Stepped, Expanded] } else { &[Contiguous] };
        for &layout in layouts {
            let name = match layout {
                Contiguous => "",
                Transposed => " (gradient of the output transposed)",
                Stepped => " (gradient of the output stepped)",
                Expanded => " (gradient of the output expanded)",
            };
            self.compare(x, checked, jacobian, &self.seeds(jacobian, layout)?, &|| format!("{place}{name}"))?;
        }
        Ok(())
    }

    /// Runs `f` and its backward at `x` and compares with the numeric gradients.
    fn compare(
        &self,
        x: &[Tensor],
        checked: &[usize],
        jacobian: &Jacobian,
        seeds: &[Option<Tensor>],
        place: &dyn Fn() -> String,
    ) -> Result<()> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Autograd, self.op, message + &place()));
        let outputs = (self.f)(x)?;
        let outputs: Vec<&Tensor> = outputs.iter().filter(|o| o.dtype().is_floating()).collect();
        if let Some(message) = jacobian.values_differ(&outputs)? {
            return wrong(message);
        }
        let run: Vec<usize> =
            (0..outputs.len()).filter(|&k| seeds[k].is_some() && outputs[k].requires_grad()).collect();
        let outs: Vec<&Tensor> = run.iter().map(|&k| outputs[k]).collect();
        let given: Vec<&Tensor> = run.iter().filter_map(|&k| seeds[k].as_ref()).collect();
        let wanted: Vec<&Tensor> = checked.iter().map(|&i| &x[i]).collect();
        let keep = BackwardOptions { retain_graph: true, ..Default::default() };
        let grads = crate::grad(&outs, &wanted, Some(&given), keep)?;
        for (n, (g, &i)) in grads.iter().zip(checked).enumerate() {
            if let Some(g) = g
                && (g.sizes() != x[i].sizes() || g.dtype() != x[i].dtype())
            {
                return wrong(format!(
                    "input {i}: the gradient is {} {:?}, the input {} {:?}",
                    g.dtype(),
                    g.sizes(),
                    x[i].dtype(),
                    x[i].sizes()
                ));
            }
            let analytic = g.as_ref().map(Tensor::try_to_vec_f64).transpose()?;
            if let Some(message) = jacobian.gradients_differ(n, seeds, analytic.as_deref(), &self.options)? {
                return wrong(format!("input {i}{message}"));
            }
        }
        self.accumulated(&outs, &given, &wanted, &grads).or_else(|e| wrong(e.message().to_owned()))
    }

    /// `backward` leaves the same gradients in the leaves, in the leaves' strides.
    fn accumulated(
        &self,
        outs: &[&Tensor],
        given: &[&Tensor],
        leaves: &[&Tensor],
        grads: &[Option<Tensor>],
    ) -> Result<()> {
        crate::engine::backward(outs, Some(given), BackwardOptions::default())?;
        for (i, (leaf, g)) in leaves.iter().zip(grads).enumerate() {
            let left = leaf.grad();
            leaf.zero_grad();
            let (Some(left), Some(g)) = (&left, g) else {
                if left.is_some() != g.is_some() {
                    bail!(
                        Autograd,
                        self.op,
                        "grad() and backward() disagree on whether checked input {i} gets a gradient"
                    );
                }
                continue;
            };
            if bits(left)? != bits(g)? {
                bail!(Autograd, self.op, "grad() and backward() give checked input {i} different gradients");
            }
            let strides = crate::graph::gradient_layout(leaf.layout())?;
            if !crate::transfer::same_strides(left.layout(), &strides) {
                bail!(
                    Autograd,
                    self.op,
                    "the gradient of checked input {i} has strides {:?}, expected {:?}",
                    left.strides(),
                    strides.strides()
                );
            }
        }
        Ok(())
    }

    /// Two runs agree to the last bit.
    fn same_twice(&self, x: &[Tensor], checked: &[usize]) -> Result<()> {
        let run = || -> Result<Vec<Option<Vec<u64>>>> {
            let outputs = (self.f)(x)?;
            let mut all = Vec::new();
            for out in outputs.iter().filter(|o| o.dtype().is_floating()) {
                all.push(Some(bits(out)?));
                if out.requires_grad() {
                    let wanted: Vec<&Tensor> = checked.iter().map(|&i| &x[i]).collect();
                    let keep = BackwardOptions { retain_graph: true, ..Default::default() };
                    for g in crate::grad(&[out], &wanted, Some(&[&seed(out, 0)?]), keep)? {
                        all.push(g.as_ref().map(bits).transpose()?);
                    }
                }
            }
            Ok(all)
        };
        if run()? != run()? {
            bail!(Autograd, self.op, "two runs at the same inputs differ: the function is not deterministic");
        }
        Ok(())
    }

    /// Input `i` as an expanded view of a smaller leaf, which gets the gradient.
    fn expanded(&self, i: usize, checked: &[usize]) -> Result<()> {
        let sizes = self.inputs[i].sizes().to_vec();
        let Some(d) = expandable(&sizes).filter(|_| self.options.expanded) else { return Ok(()) };
        let inner = self.f;
        let whole: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        let f = |x: &[Tensor]| {
            let mut x = x.to_vec();
            x[i] = x[i].try_expand(whole.as_slice())?;
            inner(&x)
        };
        let mut inputs = self.leaves(|t| place(t, *t.layout()))?;
        let first = self.inputs[i].detach().try_narrow(d as i64, 0, 1)?;
        inputs[i] = first.try_copy()?.try_requires_grad_(true)?;
        let small = Check { op: self.op, f: &f, inputs: &inputs, options: self.options };
        let jacobian = Jacobian::new(&f, &inputs, checked, &self.options)?;
        let place = format!(" (input {i} expanded along dim {d}, the gradient is its base's)");
        small.in_layouts(&inputs, checked, &jacobian, &place)
    }
}

/// Values for the gradient of output `k`.
fn seed(out: &Tensor, k: usize) -> Result<Tensor> {
    Tensor::try_from_slice(&noise(out.numel(), k as u64 + 1), out.sizes())?
        .try_to_dtype(out.dtype())?
        .try_to_device(out.device())
}

fn lay_out_seed(out: &Tensor, k: usize, layout: SeedLayout) -> Result<Tensor> {
    let dense = seed(out, k)?;
    match layout {
        SeedLayout::Contiguous => Ok(dense),
        SeedLayout::Transposed => place(&dense, column_major(out.sizes())?),
        SeedLayout::Stepped => {
            let strides: Vec<isize> = dense.strides().iter().map(|s| 2 * s).collect();
            place(&dense, stridegrad_core::Layout::new(out.sizes(), &strides, 1)?)
        }
        SeedLayout::Expanded => {
            let one = Tensor::try_full_on((), 0.75, out.dtype(), out.device())?;
            one.try_expand(out.sizes())
        }
    }
}

fn one_hot(out: &Tensor, j: usize) -> Result<Tensor> {
    let mut values = vec![0.0; out.numel()];
    values[j] = 1.0;
    Tensor::try_from_slice(&values, out.sizes())?.try_to_dtype(out.dtype())?.try_to_device(out.device())
}

fn bits(t: &Tensor) -> Result<Vec<u64>> {
    Ok(t.try_to_vec_f64()?.into_iter().map(f64::to_bits).collect())
}

/// The logical index of row-major position `flat`.
fn index_of(sizes: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (i, &n) in index.iter_mut().zip(sizes).rev() {
        (*i, flat) = (flat % n, flat / n);
    }
    index
}
