//! The cross entropy of scores and classes, or of scores and probabilities.

use stridegrad_core::{Error, ErrorKind, Result, bail};

use super::mean::want_float;
use super::nll_loss::{Classes, along_classes, check_weight};
use super::reduction::Reduction;
use crate::Tensor;
use crate::faces::faces;

const OP: &str = "cross_entropy";

/// Class weights, the ignored class, label smoothing and the reduction of a
/// [`cross_entropy`](Tensor::cross_entropy_with).
///
/// ```
/// use stridegrad_autograd::{CrossEntropyOptions, Reduction};
/// let soft = CrossEntropyOptions::new().label_smoothing(0.1).reduction(Reduction::Sum);
/// assert_eq!(soft.label_smoothing, 0.1);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CrossEntropyOptions {
    /// A weight for each class, of the input's dtype.
    pub weight: Option<Tensor>,
    /// Targets of this class count for nothing: -100 unless told otherwise.
    pub ignore_index: i64,
    /// The part of each target that is spread evenly over all classes, in [0, 1].
    pub label_smoothing: f64,
    /// How the samples' losses are reduced. The mean is weighted for class targets, that of samples for probabilities.
    pub reduction: Reduction,
}

impl Default for CrossEntropyOptions {
    fn default() -> CrossEntropyOptions {
        CrossEntropyOptions {
            weight: None,
            ignore_index: -100,
            label_smoothing: 0.0,
            reduction: Reduction::Mean,
        }
    }
}

impl CrossEntropyOptions {
    /// No weights, -100 ignored, no smoothing, the mean.
    pub fn new() -> CrossEntropyOptions {
        CrossEntropyOptions::default()
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

    /// With a part of each target spread over all classes.
    #[must_use]
    pub fn label_smoothing(mut self, part: f64) -> Self {
        self.label_smoothing = part;
        self
    }

    /// With another reduction.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }
}

fn cross_entropy(x: &Tensor, target: &Tensor, o: &CrossEntropyOptions) -> Result<Tensor> {
    want_float(OP, x)?;
    if !(0.0..=1.0).contains(&o.label_smoothing) {
        bail!(Argument, OP, "label_smoothing must be between 0.0 and 1.0. Got: {}", o.label_smoothing);
    }
    if x.dim() > 0 && x.sizes() == target.sizes() {
        return of_probabilities(x, target, o);
    }
    // Everything is checked before the first pass over the scores.
    Classes::new(OP, x, target, o.weight.as_ref(), o.ignore_index)?;
    let log_p = x.try_log_softmax(i64::from(x.dim() > 1))?;
    Classes::new(OP, &log_p, target, o.weight.as_ref(), o.ignore_index)?.loss(o.label_smoothing, o.reduction)
}

fn of_probabilities(x: &Tensor, target: &Tensor, o: &CrossEntropyOptions) -> Result<Tensor> {
    if !target.dtype().is_floating() {
        return Err(Error::new(
            ErrorKind::DType,
            OP,
            format!(
                "expected floating point type for target with class probabilities, got {}",
                target.dtype()
            ),
        )
        .hint("class numbers have the input's sizes without the class dim"));
    }
    if o.ignore_index >= 0 {
        bail!(Argument, OP, "ignore_index is not supported for floating point target");
    }
    if x.dim() == 1 {
        let (x, target) = (x.try_unsqueeze(0)?, target.try_unsqueeze(0)?);
        let loss = of_probabilities(&x, &target, o)?;
        return if o.reduction == Reduction::None { loss.try_squeeze_dims(0) } else { Ok(loss) };
    }
    let classes = x.sizes()[1];
    check_weight(OP, x, o.weight.as_ref(), classes)?;
    let mut target = target.clone();
    if o.label_smoothing > 0.0 {
        target = target.try_mul(1.0 - o.label_smoothing)?.try_add(o.label_smoothing / classes as f64)?;
    }
    let mut terms = x.try_log_softmax(1)?.try_mul(&target)?;
    if let Some(w) = &o.weight {
        terms = terms.try_mul(along_classes(&w.detach(), x.dim())?)?;
    }
    let losses = terms.try_sum_dims(1, false)?.try_neg()?;
    o.reduction.apply(losses)
}

faces! {
    /// The mean cross entropy of scores (N, C, d..) and targets: classes (N, d..) of `i64`, or probabilities of the scores'
    /// sizes. One sample, (C) with a 0-dim class, is taken as well.
    ///
    /// `-ln softmax(scores)[class]` a sample, computed through [`Tensor::log_softmax`]. Targets of class -100 are
    /// ignored; if all are, the mean is NaN. Panics if a target is no class, before anything is written.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let scores = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 1.0, 1.0, 1.0], [2, 3]);
    /// let loss = scores.cross_entropy(&Tensor::from_slice(&[2i64, 0], [2]));
    /// assert!((loss.item::<f32>() - 0.7531).abs() < 1e-4);
    /// ```
    pub fn cross_entropy | try_cross_entropy(&self, target: &Tensor) -> Tensor {
        cross_entropy(self, target, &CrossEntropyOptions::default())
    }

    /// As [`Tensor::cross_entropy`], with class weights, another class to ignore, label smoothing or another reduction.
    pub fn cross_entropy_with | try_cross_entropy_with(&self, target: &Tensor, options: CrossEntropyOptions) -> Tensor {
        cross_entropy(self, target, &options)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use super::nll_loss::{class_inputs, reference, sample_weight};
    use crate::spec::*;
    // Logarithms of ratios, without the shift.
    fn log_softmax(x: &Ref) -> Ref {
        let d = usize::from(x.sizes.len() > 1);
        Ref::from_fn(&x.sizes, |i| {
            let mut at = i.to_vec();
            let ratios = (0..x.sizes[d]).map(|c| {
                at[d] = c;
                (x.at(&at) - x.at(i)).exp()
            });
            -ratios.sum::<f64>().ln()
        })
    }
    OpSpec::new(OP, || {
        let mut all = Vec::new();
        let shapes: [&[usize]; 4] = [&[4, 3], &[3], &[2, 3, 2, 4], &[70, 30]];
        for sizes in shapes {
            for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
                for (weighted, smoothing) in [(false, 0.0), (true, 0.0), (false, 0.1), (true, 0.25)] {
                    let options = move |weight: Option<Tensor>| CrossEntropyOptions {
                        weight,
                        label_smoothing: smoothing,
                        reduction,
                        ..Default::default()
                    };
                    let name = format!("{sizes:?} {reduction:?} weighted {weighted} smoothing {smoothing}");
                    let classes = Sample::new(
                        format!("{name} classes"),
                        class_inputs(sizes),
                        move |t| {
                            let weight = weighted.then(|| sample_weight(&t[0])).transpose()?;
                            t[0].try_cross_entropy_with(&t[1], options(weight))
                        },
                        move |r| reference(&log_softmax(&r[0]), &r[1], weighted, None, smoothing, reduction),
                    );
                    let large = sizes == [70, 30];
                    all.push(if large { classes.no_grad().tolerance(4.0) } else { classes });
                    if weighted {
                        continue;
                    }
                    let inputs =
                        vec![Input::new(sizes, Domain::Any), Input::new(sizes, Domain::Between(0.0, 1.0))];
                    let probabilities = Sample::new(
                        format!("{name} probabilities"),
                        inputs,
                        move |t| t[0].try_cross_entropy_with(&t[1], options(None)),
                        move |r| {
                            let (p, d) = (log_softmax(&r[0]), usize::from(r[0].sizes.len() > 1));
                            let c = p.sizes[d] as f64;
                            let terms = p
                                .data
                                .iter()
                                .zip(&r[1].data)
                                .map(|(p, t)| -p * (t * (1.0 - smoothing) + smoothing / c));
                            let terms = Ref::new(&p.sizes, terms.collect());
                            super::reduction::reference(
                                reduce_ref(&terms, &[d], false, &|v| v.iter().sum()),
                                reduction,
                            )
                        },
                    );
                    all.push(if large { probabilities.no_grad().tolerance(4.0) } else { probabilities });
                }
            }
        }
        all.push(Sample::new(
            "default",
            class_inputs(&[4, 3]),
            |t| t[0].try_cross_entropy(&t[1]),
            |r| reference(&log_softmax(&r[0]), &r[1], false, None, 0.0, Reduction::Mean),
        ));
        all
    })
    .refusal("a class too large", ErrorKind::Index, || {
        Tensor::try_ones([2, 3])?.try_cross_entropy(&Tensor::try_full([2], 3)?)
    })
    .refusal("a negative class", ErrorKind::Index, || {
        refused(&[2, 3], Tensor::try_full([2], -1)?, CrossEntropyOptions::new())
    })
    .refusal("another batch", ErrorKind::Shape, || {
        refused(&[2, 3], Tensor::try_full([3], 0)?, CrossEntropyOptions::new())
    })
    .refusal("classes as floats", ErrorKind::DType, || {
        refused(&[2, 3], Tensor::try_ones([2])?, CrossEntropyOptions::new())
    })
    .refusal("probabilities as integers", ErrorKind::DType, || {
        refused(&[2, 3], Tensor::try_full([2, 3], 1)?, CrossEntropyOptions::new())
    })
    .refusal("smoothing above 1", ErrorKind::Argument, || {
        refused(&[2, 3], Tensor::try_full([2], 1)?, CrossEntropyOptions::new().label_smoothing(2.0))
    })
    .refusal("weights for other classes", ErrorKind::Shape, || {
        refused(
            &[2, 3],
            Tensor::try_full([2], 1)?,
            CrossEntropyOptions::new().weight(&Tensor::try_ones([2])?),
        )
    })
    .refusal("probabilities with a class to ignore", ErrorKind::Argument, || {
        refused(&[2, 3], Tensor::try_ones([2, 3])?, CrossEntropyOptions::new().ignore_index(0))
    })
    .refusal("a 0-dim input", ErrorKind::Shape, || {
        refused(&[], Tensor::try_full((), 0)?, CrossEntropyOptions::new())
    })
}

#[cfg(feature = "testkit")]
fn refused(sizes: &[usize], target: Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    Tensor::try_ones(sizes)?.try_cross_entropy_with(&target, options)
}
