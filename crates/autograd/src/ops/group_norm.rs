//! Normalisation over groups of channels: `group_norm`, and `instance_norm` with a group for each channel.

use stridegrad_core::{Result, bail};

use super::mean::want_float;
use crate::Tensor;
use crate::faces::faces;

fn group_norm(
    op: &'static str,
    x: &Tensor,
    groups: usize,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    want_float(op, x)?;
    let (n, c) = match x.sizes() {
        &[n, c, ..] => (n, c),
        other => bail!(Shape, op, "expected at least 2 dims (batch, channels, ..), got sizes {other:?}"),
    };
    if groups == 0 || c % groups != 0 {
        bail!(Argument, op, "expected the {c} channels to be divisible by {groups} groups");
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        let Some(t) = t else { continue };
        want_float(op, t)?;
        if t.sizes() != [c] {
            bail!(Shape, op, "expected {name} to be a vector of {c} channels, but got sizes {:?}", t.sizes());
        }
    }
    let pixels: usize = x.sizes()[2..].iter().product();
    // Each group of an image is a row, normalised in the wider dtype.
    let wide = x.dtype().compute_float();
    let row = c / groups * pixels;
    let rows = x.try_to_dtype(wide)?.try_reshape([n * groups, row])?;
    let mut y = rows.try_layer_norm([row], None, None, eps)?.try_view(x.sizes())?;
    let mut channels = vec![1; x.dim()];
    channels[1] = c;
    if let Some(w) = weight {
        y = y.try_mul(w.try_reshape(&channels)?)?;
    }
    if let Some(b) = bias {
        y = y.try_add(b.try_reshape(&channels)?)?;
    }
    let y = y.try_to_dtype(x.dtype())?;
    if x.dim() == 4 { y.try_to_format(x.suggested_format()) } else { Ok(y) }
}

faces! {
    /// `(self - mean) / sqrt(var + eps) * weight + bias` with the statistics of each image's `groups` groups of channels, over
    /// (N, C, ..); `weight` and `bias` have C elements. Channels-last images give a channels-last result.
    ///
    /// Source: Wu and He, "Group Normalization", 2018.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 5.0, 9.0], [1, 4]);
    /// assert_eq!(x.group_norm(2, None, None, 0.0).to_vec::<f32>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn group_norm | try_group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64
    ) -> Tensor {
        group_norm("group_norm", self, groups, weight, bias, eps)
    }

    /// As [`Tensor::group_norm`] with a group for each channel, of images that have pixels.
    ///
    /// Source: Ulyanov, Vedaldi and Lempitsky, "Instance Normalization", 2016.
    pub fn instance_norm | try_instance_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64
    ) -> Tensor {
        let op = "instance_norm";
        if self.dim() < 3 || self.sizes()[2..].iter().product::<usize>() == 1 {
            bail!(Shape, op, "expected more than 1 spatial element, got input sizes {:?}", self.sizes());
        }
        if self.sizes()[1] == 0 {
            bail!(Shape, op, "expected channels, got input sizes {:?}", self.sizes());
        }
        group_norm(op, self, self.sizes()[1], weight, bias, eps)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::ErrorKind;

    use crate::spec::*;
    // Group by group.
    fn reference(r: &[Ref], groups: usize) -> Ref {
        let x = &r[0];
        let (c, pixels) = (x.sizes[1], x.sizes[2..].iter().product::<usize>());
        let mut data = Vec::new();
        for row in x.data.chunks(c / groups * pixels) {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / row.len() as f64;
            data.extend(row.iter().map(|v| (v - mean) / (var + 1e-5).sqrt()));
        }
        for (i, v) in data.iter_mut().enumerate() {
            let channel = i / pixels % c;
            *v *= r.get(1).map_or(1.0, |w| w.data[channel]);
            *v += r.get(2).map_or(0.0, |b| b.data[channel]);
        }
        Ref::new(&x.sizes, data)
    }
    OpSpec::new("group_norm", || {
        let mut all = Vec::new();
        let cases: [(&[usize], usize); 5] =
            [(&[2, 4, 3, 2], 2), (&[3, 6], 2), (&[2, 3, 5], 1), (&[1, 4, 2, 3], 4), (&[2, 1, 2, 3], 1)];
        for (sizes, groups) in cases {
            for affine in 0..3 {
                let mut inputs = vec![Input::new(sizes, Domain::Any)];
                inputs.extend((0..affine).map(|_| Input::new(&sizes[1..2], Domain::Any)));
                let run = move |t: &[Tensor]| match groups == sizes[1] {
                    true => t[0].try_instance_norm(t.get(1), t.get(2), 1e-5),
                    false => t[0].try_group_norm(groups, t.get(1), t.get(2), 1e-5),
                };
                all.push(
                    Sample::new(
                        format!("{sizes:?} groups {groups} affine {affine}"),
                        inputs,
                        run,
                        move |r| reference(r, groups),
                    )
                    .channels_last_if(&[0])
                    .tolerance(4.0),
                );
            }
        }
        all
    })
    .refusal("groups that do not divide", ErrorKind::Argument, || {
        Tensor::try_ones([2, 3])?.try_group_norm(2, None, None, 1e-5)
    })
    .refusal("a weight of other sizes", ErrorKind::Shape, || {
        Tensor::try_ones([2, 4])?.try_group_norm(2, Some(&Tensor::try_ones([3])?), None, 1e-5)
    })
    .refusal("no batch", ErrorKind::Shape, || Tensor::try_ones([4])?.try_group_norm(2, None, None, 1e-5))
    .refusal("one pixel", ErrorKind::Shape, || {
        Tensor::try_ones([2, 4, 1])?.try_instance_norm(None, None, 1e-5)
    })
}
