//! How a loss becomes one number.

use stridegrad_core::{Error, ErrorKind, Result};

use crate::Tensor;

/// What a loss does with the losses of the elements or samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Returns them all.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    /// Reduces element losses; the mean of none is NaN.
    pub(crate) fn apply(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses),
            Reduction::Mean => losses.try_mean(),
            Reduction::Sum => losses.try_sum(),
        }
    }
}

/// Refuses a target of other sizes: losses do not broadcast.
pub(crate) fn check_target(op: &'static str, x: &Tensor, target: &Tensor) -> Result<()> {
    super::mean::want_float(op, x)?;
    super::mean::want_float(op, target)?;
    if x.sizes() == target.sizes() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Shape,
        op,
        format!(
            "input of sizes {:?} and target of sizes {:?} must have the same sizes",
            x.sizes(),
            target.sizes()
        ),
    )
    .hint("losses do not broadcast, which hides mistakes: reshape or expand() one of them"))
}

/// The reductions of a reference's element losses.
#[cfg(feature = "testkit")]
pub(crate) fn reference(losses: crate::spec::Ref, reduction: Reduction) -> crate::spec::Ref {
    use crate::spec::Ref;
    let sum: f64 = losses.data.iter().sum();
    match reduction {
        Reduction::None => losses,
        Reduction::Mean => Ref::new(&[], vec![sum / losses.data.len() as f64]),
        Reduction::Sum => Ref::new(&[], vec![sum]),
    }
}

/// Samples of a loss over elements.
#[cfg(feature = "testkit")]
pub(crate) fn loss_samples(
    inputs: [crate::spec::Domain; 2],
    run: impl Fn(&Tensor, &Tensor, Reduction) -> Result<Tensor> + Clone + Send + Sync + 'static,
    f: impl Fn(f64, f64) -> f64 + Clone + Send + Sync + 'static,
) -> Vec<crate::spec::Sample> {
    use crate::spec::*;
    let shapes: [&[usize]; 6] = [&[2, 3, 4, 5], &[3, 4], &[7], &[], &[2, 0, 3], &[131, 1031]];
    let mut all = Vec::new();
    for sizes in shapes {
        for reduction in [Reduction::None, Reduction::Mean, Reduction::Sum] {
            if sizes.contains(&0) && reduction == Reduction::Mean {
                continue; // NaN
            }
            let (run, f) = (run.clone(), f.clone());
            let s = Sample::new(
                format!("{sizes:?} {reduction:?}"),
                inputs.map(|domain| Input::new(sizes, domain)).to_vec(),
                move |t| run(&t[0], &t[1], reduction),
                move |r| {
                    let data = r[0].data.iter().zip(&r[1].data).map(|(&x, &t)| f(x, t)).collect();
                    reference(Ref::new(&r[0].sizes, data), reduction)
                },
            );
            all.push(if sizes == [131, 1031] { s.no_grad().tolerance(8.0) } else { s });
        }
    }
    all
}
