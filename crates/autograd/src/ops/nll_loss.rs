//! The negative log likelihood of classes, and what cross entropy shares with it.

use stridegrad_core::kernel::IndexPass;
use stridegrad_core::{Array, DType, Error, ErrorKind, Layout, Result, bail, exec};

use super::elementwise::linear;
use super::mean::want_float;
use super::reduction::Reduction;
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    // The class to look up, and whether it counts; what is ignored looks up class 0.
    static CLASS("nll_loss") = |[t], [ignored]| E::select(t.eq(ignored), E::lit(0.0), t);
    static COUNTS("nll_loss") = |[t], [ignored]| E::from_mask(t.ne(ignored));
    static WEIGHT("nll_loss") = |[w, counts], []| E::select(counts.ne(E::lit(0.0)), w, E::lit(0.0));
    // A choice, not a product: minus infinity times 0 is no 0.
    static LOSS("nll_loss") = |[p, w, counts], []| E::select(counts.ne(E::lit(0.0)), -(w * p), E::lit(0.0));
}

/// Class weights, the ignored class and the reduction of an [`nll_loss`](Tensor::nll_loss_with).
///
/// ```
/// use stridegrad_autograd::{NllLossOptions, Reduction};
/// let sum = NllLossOptions::new().reduction(Reduction::Sum).ignore_index(0);
/// assert_eq!(sum.ignore_index, 0);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct NllLossOptions {
    /// A weight for each class, of the input's dtype.
    pub weight: Option<Tensor>,
    /// Targets of this class count for nothing: -100 unless told otherwise.
    pub ignore_index: i64,
    /// How the samples' losses are reduced; the mean is weighted.
    pub reduction: Reduction,
}

impl Default for NllLossOptions {
    fn default() -> NllLossOptions {
        NllLossOptions { weight: None, ignore_index: -100, reduction: Reduction::Mean }
    }
}

impl NllLossOptions {
    /// No weights, -100 ignored, the mean.
    pub fn new() -> NllLossOptions {
        NllLossOptions::default()
    }

    /// With a weight for each class.
    #[must_use]
    pub fn weight(mut self, weight: &Tensor) -> Self {
        self.weight = Some(weight.clone());
        self
    }

    /// With another class to ignore.
    #[must_use]
    pub fn ignore_index(mut self, class: i64) -> Self {
        self.ignore_index = class;
        self
    }

    /// With another reduction.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }
}

/// Log probabilities (N, C, d..) and targets (N, d..), checked; one sample (C) is a batch of one.
pub(crate) struct Classes {
    op: &'static str,
    log_p: Tensor,
    target: Tensor,
    weight: Option<Tensor>,
    ignored: i64,
    unbatched: bool,
}

/// The weight of each class, if there is one, checked.
pub(crate) fn check_weight(
    op: &'static str,
    x: &Tensor,
    weight: Option<&Tensor>,
    classes: usize,
) -> Result<()> {
    let Some(w) = weight else { return Ok(()) };
    if w.sizes() != [classes] {
        bail!(
            Shape,
            op,
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
            w.sizes()
        );
    }
    if w.dtype() != x.dtype() {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("expected weights of the input's dtype {}, but got {}", x.dtype(), w.dtype()),
        )
        .hint("convert them with to_dtype()"));
    }
    Ok(())
}

impl Classes {
    pub(crate) fn new(
        op: &'static str,
        log_p: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        ignored: i64,
    ) -> Result<Classes> {
        want_float(op, log_p)?;
        let (x, t) = (log_p.sizes(), target.sizes());
        let class_dim = usize::from(x.len() > 1);
        let Some(&classes) = x.get(class_dim) else {
            bail!(Shape, op, "expected an input of sizes (classes) or (batch, classes, ..), got {x:?}");
        };
        let mut wanted = x.to_vec();
        wanted.remove(class_dim);
        if t != wanted {
            if x.len() > 1 && t.first().is_some_and(|&n| n != x[0]) {
                bail!(
                    Shape,
                    op,
                    "expected input batch_size ({}) to match target batch_size ({}): input {x:?}, target {t:?}",
                    x[0],
                    t[0]
                );
            }
            bail!(Shape, op, "an input of sizes {x:?} wants targets of sizes {wanted:?}, got {t:?}");
        }
        let target = match target.dtype() {
            DType::I64 => target.detach(),
            DType::I32 | DType::U8 => target.try_to_dtype(DType::I64)?,
            other => {
                return Err(Error::new(
                    ErrorKind::DType,
                    op,
                    format!("expected target dtype to be i64, i32 or u8, but got {other}"),
                )
                .hint("class numbers are integers; probabilities have the input's sizes"));
            }
        };
        check_weight(op, log_p, weight, classes)?;
        let unbatched = x.len() == 1;
        let batch = |t: &Tensor| if unbatched { t.try_unsqueeze(0) } else { Ok(t.clone()) };
        let (log_p, target) = (batch(log_p)?, batch(&target)?);
        Ok(Classes { op, log_p, target, weight: weight.map(Tensor::detach), ignored, unbatched })
    }

    /// The reduced loss: `1 - smoothing` parts of the target class and `smoothing` parts of all.
    pub(crate) fn loss(&self, smoothing: f64, reduction: Reduction) -> Result<Tensor> {
        let (x, target) = (&self.log_p, self.target.array());
        let (classes, ignored) = (x.sizes()[1], [self.ignored.into()]);
        let index = exec::map(&CLASS, DType::I64, &ignored, DType::I64, &[target])?;
        let counts = exec::map(&COUNTS, DType::I64, &ignored, DType::Bool, &[target])?;
        // The look-up is what refuses a target that is no class.
        let at = Tensor::from_array(index.clone()).try_unsqueeze(1)?;
        let picked = x.try_gather(1, &at).map_err(|e| self.out_of_bounds(e))?.try_squeeze_dims(1)?;
        let weights = Tensor::from_array(self.weights(&index, &counts)?);
        let counts = Tensor::from_array(counts);
        let mut losses = linear(&LOSS, &[], &picked, &[&weights, &counts])?;
        if smoothing > 0.0 {
            let all = match &self.weight {
                Some(w) => x.try_mul(along_classes(w, x.dim())?)?.try_sum_dims(1, false)?,
                None => x.try_sum_dims(1, false)?,
            };
            let ones = Tensor::from_array(exec::full(Layout::scalar(), 1.0.into(), x.dtype(), x.device())?);
            let all = linear(&LOSS, &[], &all, &[&ones, &counts])?;
            losses = losses.try_mul(1.0 - smoothing)?.try_add(all.try_mul(smoothing / classes as f64)?)?;
        }
        match reduction {
            Reduction::None if self.unbatched => losses.try_squeeze_dims(0),
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.try_sum(),
            Reduction::Mean => losses.try_sum()?.try_div(weights.try_sum()?),
        }
    }

    /// The weight of each sample's class: 0 for what is ignored.
    fn weights(&self, index: &Array, counts: &Array) -> Result<Array> {
        let dtype = self.log_p.dtype();
        let Some(w) = &self.weight else { return exec::copy_to(counts, counts.layout().dense_like(), dtype) };
        let line = exec::copy_to(index, Layout::contiguous(index.sizes())?, DType::I64)?;
        let n = line.layout().numel();
        let line = line.with_layout(Layout::contiguous(&[n])?)?;
        let picked = exec::index(self.op, IndexPass::Select, 0, &[n], w.array(), &line)?;
        let picked = picked.with_layout(Layout::contiguous(index.sizes())?)?;
        exec::map(&WEIGHT, dtype, &[], dtype, &[&picked, counts])
    }

    /// Names the first target that is no class.
    fn out_of_bounds(&self, e: Error) -> Error {
        let classes = self.log_p.sizes()[1] as i64;
        let values = match self.target.try_to_vec::<i64>() {
            Ok(values) if e.kind() == ErrorKind::Index => values,
            _ => return e,
        };
        match values.into_iter().find(|t| *t != self.ignored && !(0..classes).contains(t)) {
            Some(t) => Error::new(
                ErrorKind::Index,
                self.op,
                format!("target {t} is out of bounds of {classes} classes"),
            )
            .hint(format!("targets lie in 0..{classes}; {} is ignored", self.ignored)),
            None => e,
        }
    }
}

/// A vector over the classes, as an operand of something (N, C, d..).
pub(crate) fn along_classes(w: &Tensor, rank: usize) -> Result<Tensor> {
    let mut sizes = vec![1; rank];
    sizes[1] = w.numel();
    w.try_reshape(sizes)
}

faces! {
    /// The mean negative log likelihood of the classes `target`, for log probabilities (N, C, d..) and targets
    /// (N, d..), or (C) and a 0-dim target: what [`Tensor::cross_entropy`] gives after a `log_softmax`.
    ///
    /// Panics if a target is no class (and not the ignored -100).
    pub fn nll_loss | try_nll_loss(&self, target: &Tensor) -> Tensor {
        self.try_nll_loss_with(target, NllLossOptions::default())
    }

    /// As [`Tensor::nll_loss`], with class weights, another class to ignore, or another reduction.
    pub fn nll_loss_with | try_nll_loss_with(&self, target: &Tensor, options: NllLossOptions) -> Tensor {
        let o = options;
        Classes::new("nll_loss", self, target, o.weight.as_ref(), o.ignore_index)?.loss(0.0, o.reduction)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    OpSpec::new("nll_loss", || {
        let mut all = Vec::new();
        let shapes: [&[usize]; 4] = [&[4, 3], &[3], &[2, 3, 2, 4], &[70, 30]];
        for sizes in shapes {
            for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
                for weighted in [false, true] {
                    let s = Sample::new(
                        format!("{sizes:?} {reduction:?} weighted {weighted}"),
                        class_inputs(sizes),
                        move |t| {
                            let mut o = NllLossOptions::new().reduction(reduction);
                            // One sample that is ignored has no mean.
                            o.ignore_index = if sizes.len() > 1 { 0 } else { -100 };
                            o.weight = weighted.then(|| sample_weight(&t[0])).transpose()?;
                            t[0].try_nll_loss_with(&t[1], o)
                        },
                        move |r| {
                            let ignored = (sizes.len() > 1).then_some(0);
                            reference(&r[0], &r[1], weighted, ignored, 0.0, reduction)
                        },
                    );
                    all.push(if sizes == [70, 30] { s.no_grad().tolerance(4.0) } else { s });
                }
            }
        }
        all
    })
    .refusal("a target that is no class", ErrorKind::Index, || {
        Tensor::try_ones([2, 3])?.try_nll_loss(&Tensor::try_full([2], 3)?)
    })
    .refusal("another batch", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_nll_loss(&Tensor::try_full([3], 0)?)
    })
    .refusal("targets of floats", ErrorKind::DType, || {
        Tensor::try_ones([2, 3])?.try_nll_loss(&Tensor::try_ones([2])?)
    })
    .refusal("weights for other classes", ErrorKind::Shape, || {
        let o = NllLossOptions::new().weight(&Tensor::try_ones([2])?);
        Tensor::try_ones([2, 3])?.try_nll_loss_with(&Tensor::try_full([2], 0)?, o)
    })
}

/// Scores and class numbers.
#[cfg(feature = "testkit")]
pub(crate) fn class_inputs(sizes: &[usize]) -> Vec<crate::spec::Input> {
    use crate::spec::*;
    let class_dim = usize::from(sizes.len() > 1);
    let mut lead = sizes.to_vec();
    let classes = lead.remove(class_dim);
    vec![Input::new(sizes, Domain::Any), Input::new(&lead, Domain::Index(0, classes as i64))]
}

/// The samples' weight of a class.
#[cfg(feature = "testkit")]
fn class_weight(class: usize) -> f64 {
    1.0 + 0.5 * class as f64
}

/// The samples' weights, in the dtype of the scores.
#[cfg(feature = "testkit")]
pub(crate) fn sample_weight(x: &Tensor) -> Result<Tensor> {
    let classes = x.sizes().get(usize::from(x.dim() > 1)).map_or(0, |n| *n);
    let weights: Vec<f64> = (0..classes).map(class_weight).collect();
    Tensor::try_from_slice(&weights, [weights.len()])?.try_to_dtype(x.dtype())
}

/// The loss from log probabilities, sample by sample.
#[cfg(feature = "testkit")]
pub(crate) fn reference(
    log_p: &crate::spec::Ref,
    target: &crate::spec::Ref,
    weighted: bool,
    ignored: Option<i64>,
    smoothing: f64,
    reduction: Reduction,
) -> crate::spec::Ref {
    use crate::spec::Ref;
    let class_dim = usize::from(log_p.sizes.len() > 1);
    let classes = log_p.sizes[class_dim];
    let weight = |class: usize| if weighted { class_weight(class) } else { 1.0 };
    let mut total = 0.0;
    let losses = Ref::from_fn(&target.sizes, |i| {
        let class = target.at(i) as usize;
        if Some(class as i64) == ignored {
            return 0.0;
        }
        let value = |c: usize| {
            let mut at = i.to_vec();
            at.insert(class_dim, c);
            -weight(c) * log_p.at(&at)
        };
        total += weight(class);
        (1.0 - smoothing) * value(class) + smoothing / classes as f64 * (0..classes).map(value).sum::<f64>()
    });
    let sum: f64 = losses.data.iter().sum();
    match reduction {
        Reduction::None => losses,
        Reduction::Sum => Ref::new(&[], vec![sum]),
        Reduction::Mean => Ref::new(&[], vec![sum / total]),
    }
}
