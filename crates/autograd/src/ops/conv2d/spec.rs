//! Samples and the naive reference of convolutions.

use stridegrad_core::{ErrorKind, Layout, MemoryFormat, Result};

use super::{Conv2dOptions, Padding};
use crate::Tensor;
use crate::spec::*;

/// The sum over the window, element by element; zeros stand around the image.
fn reference(
    r: &[Ref],
    stride: [usize; 2],
    before: [usize; 2],
    after: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
) -> Ref {
    let (x, w) = (&r[0], &r[1]);
    let size = |i: usize| {
        let padded = x.sizes[2 + i] + before[i] + after[i];
        (padded - dilation[i] * (w.sizes[2 + i] - 1) - 1) / stride[i] + 1
    };
    let (channels, per_group) = (w.sizes[1], w.sizes[0] / groups);
    Ref::from_fn(&[x.sizes[0], w.sizes[0], size(0), size(1)], |i| {
        let mut sum = r.get(2).map_or(0.0, |b| b.data[i[1]]);
        for c in 0..channels {
            for a in 0..w.sizes[2] {
                for b in 0..w.sizes[3] {
                    let row = (i[2] * stride[0] + a * dilation[0]).checked_sub(before[0]);
                    let column = (i[3] * stride[1] + b * dilation[1]).checked_sub(before[1]);
                    if let (Some(y), Some(z)) = (row, column)
                        && y < x.sizes[2]
                        && z < x.sizes[3]
                    {
                        let channel = i[1] / per_group * channels + c;
                        sum += x.at(&[i[0], channel, y, z]) * w.at(&[i[1], c, a, b]);
                    }
                }
            }
        }
        sum
    })
}

/// The numbers of a padding, before and after.
fn padding(options: &Conv2dOptions, kernel: [usize; 2]) -> [[usize; 2]; 2] {
    match options.padding {
        Padding::Explicit(p) => [p, p],
        Padding::Valid => [[0; 2]; 2],
        Padding::Same => {
            let total = [0, 1].map(|i| options.dilation[i] * (kernel[i] - 1));
            [total.map(|t| t / 2), total.map(|t| t.div_ceil(2))]
        }
    }
}

fn sample(x: &[usize], w: &[usize], bias: bool, options: Conv2dOptions) -> Sample {
    let mut inputs = vec![Input::new(x, Domain::Any), Input::new(w, Domain::Any)];
    if bias {
        inputs.push(Input::new(&w[..1], Domain::Any));
    }
    let [before, after] = padding(&options, [w[2], w[3]]);
    Sample::new(
        format!("{x:?} {w:?} bias {bias} {options:?}"),
        inputs,
        move |t| t[0].try_conv2d(&t[1], t.get(2), options),
        move |r| reference(r, options.stride, before, after, options.dilation, options.groups),
    )
    .numbers()
    .channels_last_if(if x[0] == 0 { &[] } else { &[0, 1] })
    .tolerance(4.0)
    .layout_by(layout)
}

/// Channels-last as soon as the image or the weight asks for it, but for an empty batch.
fn layout(inputs: &[Layout], sizes: &[usize]) -> Result<Layout> {
    let marked = inputs[..2].iter().any(|l| l.suggested_format() == MemoryFormat::ChannelsLast);
    let format = if marked && sizes[0] > 0 { MemoryFormat::ChannelsLast } else { MemoryFormat::Contiguous };
    Layout::contiguous(sizes)?.in_format(format)
}

/// What `conv2d` promises.
pub(crate) fn spec() -> OpSpec {
    let o = Conv2dOptions::new;
    OpSpec::new("conv2d", || {
        let mut all = vec![
            sample(&[2, 3, 5, 5], &[4, 3, 3, 3], true, o()),
            sample(&[2, 3, 5, 6], &[4, 3, 3, 3], false, o().stride(2).padding(1)),
            sample(&[1, 2, 7, 7], &[3, 2, 3, 3], true, o().dilation(2).padding(2)),
            sample(&[2, 4, 5, 5], &[6, 2, 3, 3], true, o().groups(2).padding(1)),
            sample(&[2, 4, 5, 6], &[4, 2, 3, 2], true, o().stride([2, 1]).padding([0, 1]).groups(2)),
            sample(&[2, 4, 6, 5], &[4, 1, 3, 3], true, o().groups(4).stride(2).padding(1)),
            sample(&[1, 2, 4, 4], &[6, 1, 2, 2], false, o().groups(2)),
            sample(&[2, 3, 4, 4], &[5, 3, 1, 1], true, o()),
            sample(&[2, 3, 5, 5], &[2, 3, 1, 1], false, o().stride(2)),
            sample(&[2, 1, 6, 6], &[3, 1, 5, 5], true, o()),
            sample(&[1, 2, 4, 5], &[2, 2, 2, 4], true, o().padding(Padding::Same)),
            sample(&[1, 2, 5, 5], &[2, 2, 2, 3], false, o().padding(Padding::Same).dilation([2, 1])),
            sample(&[1, 1, 1, 7], &[1, 1, 1, 4], false, o().stride(4)),
            sample(&[2, 3, 3, 3], &[4, 3, 3, 3], true, o()),
            sample(&[0, 2, 4, 4], &[3, 2, 3, 3], true, o()),
            sample(&[2, 0, 4, 4], &[3, 0, 3, 3], true, o()),
        ];
        // Wider than a register tile and a block of channels: values only.
        for (x, w, options) in [
            ([3, 17, 19, 35], [37, 17, 3, 3], o().padding(1)),
            ([2, 64, 9, 9], [33, 64, 3, 3], o().stride(2).padding(1)),
            ([2, 40, 8, 8], [50, 40, 1, 1], o()),
            ([2, 33, 12, 12], [33, 1, 3, 3], o().groups(33).padding(1)),
        ] {
            all.push(sample(&x, &w, true, options).no_grad().tolerance(16.0));
        }
        let one = sample(&[1, 2, 4, 4], &[3, 2, 3, 3], true, o());
        let inputs = vec![
            Input::new(&[2, 4, 4], Domain::Any),
            Input::new(&[3, 2, 3, 3], Domain::Any),
            Input::new(&[3], Domain::Any),
        ];
        let in_one = one.reference;
        let batched = |l: &[Layout]| Ok::<_, stridegrad_core::Error>([l[0].unsqueeze(0)?, l[1]]);
        all.push(
            Sample::new(
                "one image",
                inputs,
                |t| t[0].try_conv2d(&t[1], Some(&t[2]), Conv2dOptions::new()),
                move |r| {
                    let x = Ref::new(&[1, 2, 4, 4], r[0].data.clone());
                    let y = in_one(&[x, r[1].clone(), r[2].clone()]).remove(0);
                    Ref::new(&y.sizes[1..], y.data)
                },
            )
            .layout_by(move |l, sizes| {
                layout(&batched(l)?, &[1, sizes[0], sizes[1], sizes[2]])?.select(0, 0)
            }),
        );
        all
    })
    .refusal("rank 2", ErrorKind::Shape, || refused(&[5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new()))
    .refusal("rank 5", ErrorKind::Shape, || {
        refused(&[1, 1, 1, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new())
    })
    .refusal("a weight of rank 3", ErrorKind::Shape, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3], None, Conv2dOptions::new())
    })
    .refusal("stride 0", ErrorKind::Argument, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().stride(0))
    })
    .refusal("dilation 0", ErrorKind::Argument, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().dilation(0))
    })
    .refusal("groups 0", ErrorKind::Argument, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().groups(0))
    })
    .refusal("groups that do not divide", ErrorKind::Shape, || {
        refused(&[1, 4, 5, 5], &[3, 2, 3, 3], None, Conv2dOptions::new().groups(2))
    })
    .refusal("other channels", ErrorKind::Shape, || {
        refused(&[2, 4, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new())
    })
    .refusal("a kernel larger than the image", ErrorKind::Shape, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().dilation(3))
    })
    .refusal("a kernel of size 0", ErrorKind::Argument, || {
        refused(&[1, 3, 5, 5], &[6, 3, 0, 3], None, Conv2dOptions::new())
    })
    .refusal("no output channels", ErrorKind::Shape, || {
        refused(&[1, 3, 5, 5], &[0, 3, 3, 3], None, Conv2dOptions::new())
    })
    .refusal("no pixels", ErrorKind::Shape, || {
        refused(&[1, 3, 0, 5], &[6, 3, 1, 1], None, Conv2dOptions::new().padding(1))
    })
    .refusal("a bias of another length", ErrorKind::Shape, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], Some(5), Conv2dOptions::new())
    })
    .refusal("padding 'same' with a stride", ErrorKind::Argument, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().padding(Padding::Same).stride(2))
    })
    .refusal("padding beyond the machine word", ErrorKind::Shape, || {
        refused(&[1, 3, 5, 5], &[6, 3, 3, 3], None, Conv2dOptions::new().padding(usize::MAX))
    })
    .refusal("two dtypes", ErrorKind::DType, || {
        Tensor::try_ones([1, 1, 3, 3])?.try_conv2d(
            &Tensor::try_full([1, 1, 2, 2], 1)?,
            None,
            Conv2dOptions::new(),
        )
    })
}

fn refused(x: &[usize], w: &[usize], bias: Option<usize>, options: Conv2dOptions) -> Result<Tensor> {
    let bias = bias.map(|n| Tensor::try_ones(n)).transpose()?;
    Tensor::try_ones(x)?.try_conv2d(&Tensor::try_ones(w)?, bias.as_ref(), options)
}

/// What `conv1d` promises.
pub(crate) fn spec_conv1d() -> OpSpec {
    OpSpec::new("conv1d", || {
        let o = Conv2dOptions::new;
        [
            ([2, 3, 9], [4, 3, 3], o().padding(1)),
            ([2, 4, 9], [4, 2, 2], o().stride(2).groups(2)),
            ([1, 2, 8], [3, 2, 4], o().padding(Padding::Same)),
            ([2, 2, 9], [2, 2, 3], o().dilation(2)),
        ]
        .into_iter()
        .map(|(x, w, options)| {
            Sample::new(
                format!("{x:?} {w:?} {options:?}"),
                vec![
                    Input::new(&x, Domain::Any),
                    Input::new(&w, Domain::Any),
                    Input::new(&w[..1], Domain::Any),
                ],
                move |t| t[0].try_conv1d(&t[1], Some(&t[2]), options),
                move |r| {
                    let row = |r: &Ref| Ref::new(&[r.sizes[0], r.sizes[1], 1, r.sizes[2]], r.data.clone());
                    let [before, after] = padding(&options, [1, w[2]]).map(|p| [0, p[1]]);
                    let operands = [row(&r[0]), row(&r[1]), r[2].clone()];
                    let y = reference(
                        &operands,
                        [1, options.stride[1]],
                        before,
                        after,
                        [1, options.dilation[1]],
                        options.groups,
                    );
                    Ref::new(&[y.sizes[0], y.sizes[1], y.sizes[3]], y.data)
                },
            )
            .tolerance(4.0)
            .layout_by(|inputs, sizes| {
                let rows = inputs[..2].iter().map(|l| l.unsqueeze(2)).collect::<Result<Vec<_>>>()?;
                layout(&rows, &[sizes[0], sizes[1], 1, sizes[2]])?.squeeze(Some(&[2]))
            })
        })
        .collect()
    })
    .refusal("rank 4", ErrorKind::Shape, || {
        Tensor::try_ones([1, 1, 3, 3])?.try_conv1d(&Tensor::try_ones([1, 1, 2])?, None, Conv2dOptions::new())
    })
}
