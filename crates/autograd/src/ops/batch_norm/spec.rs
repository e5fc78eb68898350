//! Samples and the naive reference of batch normalisation.

use stridegrad_core::{ErrorKind, Result};

use super::{BatchNormOptions, OP};
use crate::Tensor;
use crate::spec::*;

/// What `batch_norm` promises.
pub(crate) fn spec() -> OpSpec {
    // In two loops a channel; fixed running statistics otherwise.
    fn reference(r: &[Ref], affine: bool, training: bool) -> Ref {
        let x = &r[0];
        let c = x.sizes[1];
        let inner: usize = x.sizes[2..].iter().product();
        let of = |i: usize| i / inner.max(1) % c;
        let values =
            |k: usize| -> Vec<f64> { (0..x.data.len()).filter(|&i| of(i) == k).map(|i| x.data[i]).collect() };
        let stats: Vec<(f64, f64)> = (0..c)
            .map(|k| {
                if !training {
                    return (0.5 * k as f64, 1.0 + k as f64);
                }
                let v = values(k);
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                (mean, v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / v.len() as f64)
            })
            .collect();
        let data = x.data.iter().enumerate().map(|(i, &v)| {
            let (mean, var) = stats[of(i)];
            let y = (v - mean) / (var + 1e-5).sqrt();
            if affine { y * r[1].data[of(i)] + r[2].data[of(i)] } else { y }
        });
        Ref::new(&x.sizes, data.collect())
    }
    OpSpec::new(OP, || {
        let mut all = Vec::new();
        let shapes: [&[usize]; 7] =
            [&[2, 3, 4, 5], &[4, 3], &[2, 3, 5], &[3, 1, 2, 2], &[2, 3, 1, 1], &[0, 3, 2, 2], &[5, 70, 9, 7]];
        for sizes in shapes {
            for training in [true, false] {
                for affine in [true, false] {
                    let mut inputs = vec![Input::new(sizes, Domain::Any)];
                    if affine {
                        inputs.extend([
                            Input::new(&sizes[1..2], Domain::Any),
                            Input::new(&sizes[1..2], Domain::Any),
                        ]);
                    }
                    let s = Sample::new(
                        format!("{sizes:?} training {training} affine {affine}"),
                        inputs,
                        move |t| {
                            let channels: Vec<f64> = (0..sizes[1]).map(|k| k as f64).collect();
                            let channels = Tensor::try_from_slice(&channels, [sizes[1]])?
                                .try_to_dtype(t[0].dtype())?
                                .try_to_device(t[0].device())?;
                            let (mean, var) = (channels.try_mul(0.5)?, channels.try_add(1.0)?);
                            let o = if training {
                                BatchNormOptions::training()
                            } else {
                                BatchNormOptions::eval()
                            };
                            t[0].try_batch_norm(Some(&mean), Some(&var), t.get(1), t.get(2), o)
                        },
                        move |r| reference(r, affine, training),
                    )
                    .channels_last_if(&[0])
                    // Two values lie a standard deviation from their mean, whatever they are: derivatives are near 0.
                    .tolerance(8.0);
                    all.push(if sizes[1] == 70 { s.no_grad() } else { s });
                }
            }
        }
        all
    })
    .refusal("one value a channel", ErrorKind::Shape, || refused(&[1, 2], None, BatchNormOptions::training()))
    .refusal("one pixel of one image", ErrorKind::Shape, || {
        refused(&[1, 2, 1, 1], None, BatchNormOptions::training())
    })
    .refusal("rank 1", ErrorKind::Shape, || refused(&[3], None, BatchNormOptions::training()))
    .refusal("no statistics", ErrorKind::Argument, || refused(&[3, 2], None, BatchNormOptions::eval()))
    .refusal("statistics of other channels", ErrorKind::Shape, || {
        refused(&[3, 2], Some(3), BatchNormOptions::training())
    })
    .refusal("a weight of other channels", ErrorKind::Shape, || {
        Tensor::try_ones([3, 2])?.try_batch_norm(
            None,
            None,
            Some(&Tensor::try_ones([3])?),
            None,
            BatchNormOptions::training(),
        )
    })
    .refusal("integers", ErrorKind::DType, || {
        Tensor::try_full([3, 2], 1)?.try_batch_norm(None, None, None, None, BatchNormOptions::training())
    })
}

fn refused(sizes: &[usize], channels: Option<usize>, o: BatchNormOptions) -> Result<Tensor> {
    let running = channels.map(|c| Tensor::try_ones([c])).transpose()?;
    Tensor::try_ones(sizes)?.try_batch_norm(running.as_ref(), running.as_ref(), None, None, o)
}
