//! Copies: `contiguous`, `copy` (PyTorch's clone) and memory formats.

use stridegrad_core::{Layout, MemoryFormat, Result, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

/// A copy in a given fresh layout.
pub(crate) fn copy_in(op: &'static str, x: &Tensor, layout: Layout) -> Result<Tensor> {
    let rec = Recorder::new(op, &[x]);
    let out = exec::copy_to(x.array(), layout, x.dtype())?;
    rec.finish(out, |_, g| Ok(vec![Some(g.clone())]))
}

/// A copy that the user did not ask for: counted by the audit.
pub(crate) fn materialize(
    x: &Tensor,
    layout: Layout,
    op: &'static str,
    reason: &'static str,
) -> Result<Tensor> {
    let rec = Recorder::new(op, &[x]);
    let out = exec::materialize(x.array(), layout, op, reason)?;
    rec.finish(out, |_, g| Ok(vec![Some(g.clone())]))
}

faces! {
    /// This tensor if it is row-major contiguous, else a row-major copy.
    pub fn contiguous | try_contiguous(&self) -> Tensor {
        self.try_contiguous_in(MemoryFormat::Contiguous)
    }

    /// This tensor if it is contiguous in `format`, else a copy in that format. Channels-last wants rank 4.
    pub fn contiguous_in | try_contiguous_in(&self, format: MemoryFormat) -> Tensor {
        let fresh = self.layout().in_format(format)?;
        if self.layout().is_contiguous_in(format) {
            return Ok(self.clone());
        }
        copy_in("contiguous", self, fresh)
    }

    /// This tensor with the strides of `format`, sizes of 1 included, so that ops take it to be in that format.
    /// Where only the strides of such dims differ, the result is a view.
    pub fn to_format | try_to_format(&self, format: MemoryFormat) -> Tensor {
        let fresh = self.layout().in_format(format)?;
        if self.strides() == fresh.strides() {
            return Ok(self.clone());
        }
        if self.layout().is_contiguous_in(format) {
            let strides = *self.layout();
            return self.make_view("to_format", &move |l| {
                // Only strides of dims of size 1 change, and only where this tensor itself is meant.
                if l.sizes() == strides.sizes() && l.is_contiguous_in(format) {
                    Layout::new(l.sizes(), fresh.strides(), l.offset())
                } else {
                    Ok(*l)
                }
            });
        }
        copy_in("to_format", self, fresh)
    }

    /// A copy of the values in new storage (PyTorch's `clone`): the same strides if they are dense, else row-major in
    /// the order of the strides. Gradients flow through.
    pub fn copy | try_copy(&self) -> Tensor {
        copy_in("copy", self, self.layout().dense_like())
    }

    /// A copy of the values in new storage, in the strides of `format`.
    pub fn copy_in_format | try_copy_in_format(&self, format: MemoryFormat) -> Tensor {
        copy_in("copy", self, self.layout().in_format(format)?)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    let sample = |name: &str, sizes: &[usize], run: fn(&Tensor) -> Result<Tensor>| {
        Sample::new(
            format!("{name} of {sizes:?}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| run(&t[0]),
            |r| r[0].clone(),
        )
        .numbers()
    };
    let mut all = Vec::new();
    let shapes: [&[usize]; 5] = [&[2, 3, 4, 5], &[2, 1, 3, 1], &[3, 4], &[], &[2, 0, 3]];
    for sizes in shapes {
        all.push(sample("contiguous", sizes, Tensor::try_contiguous).may_alias().row_major());
        all.push(sample("copy", sizes, Tensor::try_copy).layout_like(0));
        all.push(
            sample("copy row-major", sizes, |x| x.try_copy_in_format(MemoryFormat::Contiguous)).row_major(),
        );
        all.push(
            sample("to row-major", sizes, |x| x.try_to_format(MemoryFormat::Contiguous))
                .may_alias()
                .row_major(),
        );
        if sizes.len() == 4 {
            let last = |_: &[Layout], sizes: &[usize]| {
                Layout::contiguous(sizes)?.in_format(MemoryFormat::ChannelsLast)
            };
            all.push(
                sample("contiguous channels-last", sizes, |x| {
                    x.try_contiguous_in(MemoryFormat::ChannelsLast)
                })
                .may_alias()
                .layout_by(last),
            );
            all.push(
                sample("to channels-last", sizes, |x| x.try_to_format(MemoryFormat::ChannelsLast))
                    .may_alias()
                    .layout_by(last),
            );
            all.push(
                sample("copy channels-last", sizes, |x| x.try_copy_in_format(MemoryFormat::ChannelsLast))
                    .layout_by(last),
            );
        }
    }
    OpSpec::new("contiguous", || all).refusal("channels-last of rank 3", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3, 4])?.try_to_format(MemoryFormat::ChannelsLast)
    })
}
