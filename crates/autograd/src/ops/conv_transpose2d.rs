//! Transposed convolution of images: the convolution's input gradient as an op of its own.

use stridegrad_core::{MemoryFormat, Result, bail};

use super::conv2d::passes::input_grad;
use super::conv2d::{Conv2dOptions, Padding};
use super::pair::IntoPair;
use crate::Tensor;
use crate::faces::faces;

fn conv_transpose(
    op: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    more: [usize; 2],
    options: &Conv2dOptions,
) -> Result<Tensor> {
    if x.dim() == 3 {
        let batch = conv_transpose(op, &x.try_unsqueeze(0)?, weight, bias, more, options)?;
        return batch.try_squeeze_dims(0);
    }
    let (&[n, c, h, w], &[k, per_group, r, s]) = (x.sizes(), weight.sizes()) else {
        bail!(
            Shape,
            op,
            "expected images (N, C, H, W) and a weight (C, K / groups, R, S), but got sizes {:?} and {:?}",
            x.sizes(),
            weight.sizes()
        );
    };
    if options.padding == Padding::Same {
        bail!(Argument, op, "padding 'same' is for convolutions alone: give numbers");
    }
    let params = options.resolve(op, [r, s])?;
    if c != k || c % params.groups != 0 || c == 0 {
        bail!(
            Shape,
            op,
            "given transposed weight of size {:?}, expected input{:?} to have {k} channels, divisible by {} groups",
            weight.sizes(),
            x.sizes(),
            params.groups
        );
    }
    if h == 0 || w == 0 || per_group == 0 {
        bail!(
            Shape,
            op,
            "expected an input with pixels and a weight, but got sizes {:?} and {:?}",
            x.sizes(),
            weight.sizes()
        );
    }
    let channels = per_group * params.groups;
    if x.dtype() != weight.dtype() {
        bail!(
            DType,
            op,
            "input type ({}) and weight type ({}) should be the same",
            x.dtype(),
            weight.dtype()
        );
    }
    if let Some(b) = bias
        && (b.sizes() != [channels] || b.dtype() != x.dtype())
    {
        bail!(
            Shape,
            op,
            "expected a bias of {channels} elements of dtype {}, but got sizes {:?} of {}",
            x.dtype(),
            b.sizes(),
            b.dtype()
        );
    }
    let mut sizes = [n, channels, 0, 0];
    for i in 0..2 {
        let (stride, dilation) = (params.stride[i], params.dilation[i]);
        if more[i] >= stride.max(dilation) {
            bail!(
                Argument,
                op,
                "output padding must be smaller than either stride or dilation, but got output_padding {more:?}, stride {:?}, dilation {:?}",
                params.stride,
                params.dilation
            );
        }
        if more[i] >= stride {
            bail!(
                Unsupported,
                op,
                "output padding {more:?} that is not smaller than the stride {:?}",
                params.stride
            );
        }
        let full = ([h, w][i] - 1)
            .checked_mul(stride)
            .and_then(|v| v.checked_add(([r, s][i] - 1).checked_mul(dilation)?)?.checked_add(more[i] + 1));
        let cut = params.padding[i][0].saturating_add(params.padding[i][1]);
        match full.map(|f| f.checked_sub(cut)) {
            Some(Some(size)) if size > 0 => sizes[2 + i] = size,
            Some(_) => bail!(Shape, op, "the padding {:?} leaves nothing of the output", params.padding),
            None => bail!(Overflow, op, "the output is too large"),
        }
    }
    let marked = [x, weight].iter().any(|t| t.suggested_format() == MemoryFormat::ChannelsLast);
    let format = if marked && n > 0 { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
    let y = input_grad(x, weight, params, sizes, format)?;
    match bias {
        Some(b) => y.try_add(b.try_view([channels, 1, 1])?),
        None => Ok(y),
    }
}

faces! {
    /// The transposed convolution of images (N, C, H, W), or one image (C, H, W), with `weight` of sizes (C, K / groups, R, S),
    /// plus a bias (K): the gradient of a convolution with that weight, stride, padding and dilation with respect to its
    /// input. The result has `(H - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1` rows, columns likewise; it is
    /// channels-last if the images or the weight are.
    ///
    /// ```
    /// use stridegrad_autograd::{Conv2dOptions, Tensor};
    /// let y = Tensor::ones([1, 1, 2, 2]).conv_transpose2d(&Tensor::ones([1, 3, 2, 2]), None, 0, Conv2dOptions::new().stride(2));
    /// assert_eq!(y.sizes(), [1, 3, 4, 4]);
    /// ```
    pub fn conv_transpose2d | try_conv_transpose2d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        output_padding: impl IntoPair,
        options: Conv2dOptions
    ) -> Tensor {
        conv_transpose("conv_transpose2d", self, weight, bias, output_padding.into_pair(), &options)
    }

    /// The transposed convolution of sequences (N, C, L) or (C, L) with `weight` of sizes (C, K / groups, S); of the options, the
    /// numbers for the width count.
    pub fn conv_transpose1d | try_conv_transpose1d(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        output_padding: usize,
        options: Conv2dOptions
    ) -> Tensor {
        let op = "conv_transpose1d";
        if !(2..=3).contains(&self.dim()) || weight.dim() != 3 {
            bail!(Shape, op, "expected 2D or 3D input and a 3D weight, but got sizes {:?} and {:?}", self.sizes(), weight.sizes());
        }
        // Sequences are images of one row.
        let (x, w) = (self.try_unsqueeze(-2)?, weight.try_unsqueeze(-2)?);
        conv_transpose(op, &x, &w, bias, [0, output_padding], &options.of_width())?.try_squeeze_dims(-2)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::{ErrorKind, Layout};

    use crate::spec::*;
    /// Each input element spread over the output.
    fn reference(r: &[Ref], o: Conv2dOptions, more: [usize; 2]) -> Ref {
        let (x, w) = (&r[0], &r[1]);
        let Padding::Explicit(p) = o.padding else { unreachable!("explicit padding") };
        let size = |i: usize| {
            (x.sizes[2 + i] - 1) * o.stride[i] + (w.sizes[2 + i] - 1) * o.dilation[i] + more[i] + 1 - 2 * p[i]
        };
        let (per_group, inputs) = (w.sizes[1], x.sizes[1] / o.groups);
        let sizes = [x.sizes[0], per_group * o.groups, size(0), size(1)];
        let mut out = Ref::from_fn(&sizes, |i| r.get(2).map_or(0.0, |b| b.data[i[1]]));
        Ref::from_fn(&x.sizes, |i| {
            Ref::from_fn(&w.sizes[1..], |k| {
                let y =
                    (i[2] * o.stride[0] + k[1] * o.dilation[0]).checked_sub(p[0]).filter(|&y| y < sizes[2]);
                let z =
                    (i[3] * o.stride[1] + k[2] * o.dilation[1]).checked_sub(p[1]).filter(|&z| z < sizes[3]);
                if let (Some(y), Some(z)) = (y, z) {
                    let place = out.flat(&[i[0], i[1] / inputs * per_group + k[0], y, z]);
                    out.data[place] += x.at(i) * w.at(&[i[1], k[0], k[1], k[2]]);
                }
                0.0
            });
            0.0
        });
        out
    }
    fn layout(inputs: &[Layout], sizes: &[usize]) -> Result<Layout> {
        let marked = inputs[..2].iter().any(|l| l.suggested_format() == MemoryFormat::ChannelsLast);
        let format = if marked { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
        Layout::contiguous(sizes)?.in_format(format)
    }
    let base = || Conv2dOptions::new().padding(0);
    OpSpec::new("conv_transpose2d", || {
        type Case = (&'static [usize], &'static [usize], Conv2dOptions, [usize; 2]);
        let cases: [Case; 5] = [
            (&[2, 3, 4, 5], &[3, 2, 3, 3], base().padding(1), [0, 0]),
            (&[2, 4, 3, 4], &[4, 1, 2, 3], base().stride([2, 3]).groups(2), [1, 2]),
            (&[1, 2, 4, 3], &[2, 3, 2, 2], base().dilation([2, 1]).padding([1, 0]), [0, 0]),
            (&[1, 4, 3, 3], &[4, 1, 3, 3], base().stride(2).padding(1).groups(4), [1, 0]),
            (&[2, 2, 3, 3], &[2, 5, 1, 1], base(), [0, 0]),
        ];
        let mut all = Vec::new();
        for (x, w, options, more) in cases {
            for bias in [false, true] {
                let mut inputs = vec![Input::new(x, Domain::Any), Input::new(w, Domain::Any)];
                inputs.extend(bias.then(|| Input::new(&[w[1] * options.groups], Domain::Any)));
                all.push(
                    Sample::new(
                        format!("{x:?} {w:?} bias {bias} {options:?} more {more:?}"),
                        inputs,
                        move |t| t[0].try_conv_transpose2d(&t[1], t.get(2), more, options),
                        move |r| reference(r, options, more),
                    )
                    .tolerance(4.0)
                    .layout_by(layout),
                );
            }
        }
        let line = base().stride(2).padding([0, 1]);
        all.push(
            Sample::new(
                "one-dimensional",
                vec![Input::new(&[2, 3, 5], Domain::Any), Input::new(&[3, 2, 3], Domain::Any)],
                move |t| t[0].try_conv_transpose1d(&t[1], None, 1, line),
                move |r| {
                    let two = |r: &Ref| Ref::new(&[r.sizes[0], r.sizes[1], 1, r.sizes[2]], r.data.clone());
                    let y = reference(&[two(&r[0]), two(&r[1])], line.of_width(), [0, 1]);
                    Ref::new(&[y.sizes[0], y.sizes[1], y.sizes[3]], y.data)
                },
            )
            .tolerance(4.0)
            .layout_by(|inputs, sizes| {
                let rows = inputs.iter().map(|l| l.unsqueeze(2)).collect::<Result<Vec<_>>>()?;
                layout(&rows, &[sizes[0], sizes[1], 1, sizes[2]])?.squeeze(Some(&[2]))
            }),
        );
        all
    })
    .refusal("other channels", ErrorKind::Shape, || {
        Tensor::try_ones([1, 2, 3, 3])?.try_conv_transpose2d(
            &Tensor::try_ones([3, 2, 2, 2])?,
            None,
            0,
            Conv2dOptions::new(),
        )
    })
    .refusal("an output padding of the stride", ErrorKind::Argument, || {
        Tensor::try_ones([1, 2, 3, 3])?.try_conv_transpose2d(
            &Tensor::try_ones([2, 2, 2, 2])?,
            None,
            1,
            Conv2dOptions::new(),
        )
    })
    .refusal("padding that leaves nothing", ErrorKind::Shape, || {
        let options = Conv2dOptions::new().padding(2);
        Tensor::try_ones([1, 2, 3, 3])?.try_conv_transpose2d(
            &Tensor::try_ones([2, 2, 2, 2])?,
            None,
            0,
            options,
        )
    })
}
