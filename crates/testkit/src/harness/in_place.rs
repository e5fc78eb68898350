//! The checks of in-place forms.

use stridegrad_autograd::spec::{Ref, Sample};
use stridegrad_autograd::{BackwardOptions, Tensor, grad};
use stridegrad_core::{DType, Device, ErrorKind, Layout};

use super::gradients::{Seeds, checked, compare};
use super::inputs::{Assignment, Inputs, Points, assignments, dtypes, is_big};
use super::{Outcome, Runner, values, wrong};
use crate::compare::Tolerance;
use crate::values::Numbers;

type Form = dyn Fn(&Tensor, &[Tensor]) -> stridegrad_core::Result<()> + Send + Sync;

impl Runner<'_> {
    pub(super) fn in_place(&mut self, sample: &Sample) {
        let Some(form) = &sample.in_place else { return };
        let (name, device) = (sample.name.as_str(), self.options.device);
        let mut points = Points::new(self.op, sample);
        for at in assignments(sample) {
            for dtype in dtypes(sample) {
                if is_big(sample) && at.name != "contiguous" && dtype.size() == 2 {
                    continue;
                }
                self.check("in_place", &at.name, dtype, name, || {
                    if at.variants[0].overlapping {
                        return shared_places(form, sample, &mut points, &at, dtype, device);
                    }
                    written(form, sample, &mut points, &at, dtype, device)
                });
            }
        }
        if !sample.grad || checked(sample).first() != Some(&0) {
            return;
        }
        for (kind, make) in VIEWS {
            self.check("in_place_grad", kind, DType::F64, name, || {
                through_view(form, sample, &mut points, *make, device)
            });
        }
        self.check("in_place_grad", "leaf", DType::F64, name, || {
            leaf_is_refused(form, sample, &points, device)
        });
        self.check("in_place_grad", "stale", DType::F64, name, || {
            stale_is_refused(form, sample, &points, device)
        });
    }
}

/// The values of the out-of-place form, in the window alone.
fn written(
    form: &Form,
    sample: &Sample,
    points: &mut Points<'_>,
    at: &Assignment,
    dtype: DType,
    device: Device,
) -> Outcome {
    let inputs = points.inputs(at, dtype, device)?;
    let x = &inputs.placed[0];
    let before = x.bits()?;
    form(&x.tensor, &inputs.tensors()[1..])?;
    let want = points.at(&inputs.refs).outputs.clone();
    let tolerance = Tolerance::of(dtype).times(sample.tolerance);
    values::values(std::slice::from_ref(&x.tensor), &want[..1], |_| tolerance)?;
    if x.tensor.dtype() != dtype {
        wrong!("the target has become {}", x.tensor.dtype());
    }
    if x.tensor.version() == 0 {
        wrong!("the version was not bumped");
    }
    outside(x.tensor.layout(), &before, &x.bits()?)?;
    inputs.unmodified(1)
}

/// The storage around the window holds what it held.
fn outside(window: &Layout, before: &[u64], after: &[u64]) -> Outcome {
    let mut inside = vec![false; before.len()];
    window.offsets().for_each(|at| inside[at] = true);
    match (0..before.len()).find(|&at| !inside[at] && before[at] != after[at]) {
        Some(at) => wrong!("the storage has changed at {at}, outside the written tensor"),
        None => Ok(()),
    }
}

/// A target whose elements share places is refused, or every element holds what was written (as after `fill_`).
fn shared_places(
    form: &Form,
    sample: &Sample,
    points: &mut Points<'_>,
    at: &Assignment,
    dtype: DType,
    device: Device,
) -> Outcome {
    let inputs = points.inputs(at, dtype, device)?;
    let x = &inputs.placed[0];
    match form(&x.tensor, &inputs.tensors()[1..]) {
        Err(e) if e.kind() == ErrorKind::Overlap => inputs.unmodified(0),
        Err(e) => Err(e.into()),
        Ok(()) => {
            let want = points.at(&inputs.refs).outputs.clone();
            let tolerance = Tolerance::of(dtype).times(sample.tolerance);
            values::values(std::slice::from_ref(&x.tensor), &want[..1], |_| tolerance)
        }
    }
}

type MakeView = fn(&Layout) -> stridegrad_core::Result<(Vec<usize>, Layout)>;

/// Kinds of views: for a target of a layout's sizes, the sizes of a dense base and the window on it.
const VIEWS: &[(&str, MakeView)] = &[
    ("whole", |l| Ok((l.sizes().to_vec(), *l))),
    ("transposed", |l| {
        let sizes: Vec<usize> = l.sizes().iter().rev().copied().collect();
        let back: Vec<i64> = (0..l.rank() as i64).rev().collect();
        Ok((sizes.clone(), Layout::contiguous(&sizes)?.permute(&back)?))
    }),
    ("stepped", |l| {
        let sizes: Vec<usize> = l.sizes().iter().map(|&n| 2 * n + 1).collect();
        let mut window = Layout::contiguous(&sizes)?;
        for d in 0..l.rank() as i64 {
            window = window.slice(d, Some(1), None, 2)?;
        }
        Ok((sizes, window))
    }),
    ("reversed", |l| {
        let dims: Vec<i64> = (0..l.rank() as i64).collect();
        Ok((l.sizes().to_vec(), l.reversed(&dims)?))
    }),
    ("selected", |l| {
        let sizes: Vec<usize> = l.sizes().iter().copied().chain([3]).collect();
        Ok((sizes.clone(), Layout::contiguous(&sizes)?.select(-1, 1)?))
    }),
];

/// A write through a view of `base * 1`: values and gradients of the base, of its leaf and of the other operands.
fn through_view(
    form: &Form,
    sample: &Sample,
    points: &mut Points<'_>,
    make: MakeView,
    device: Device,
) -> Outcome {
    let inputs = points.inputs(&assignments(sample)[0], DType::F64, device)?;
    let target = &inputs.refs[0];
    let (sizes, window) = make(&Layout::contiguous(&target.sizes)?)?;
    let n: usize = sizes.iter().product();
    let mut numbers = Numbers::from_name("base");
    let mut base_values = numbers.weights(n);
    for (at, &v) in window.offsets().zip(&target.data) {
        base_values[at] = v;
    }
    let leaf =
        Tensor::try_from_slice(&base_values, &sizes[..])?.try_to_device(device)?.try_requires_grad_(true)?;
    let mut others = inputs.tensors().split_off(1);
    for k in checked(sample).into_iter().filter(|&k| k > 0) {
        others[k - 1] = others[k - 1].try_requires_grad_(true)?;
    }
    let base = leaf.try_mul(1.0)?;
    // Of views taken earlier, one must see the write too.
    let flat = base.try_view([-1])?;
    form(&view_of(&base, &window)?, &others)?;
    let point = points.at(&inputs.refs);
    let mut want = base_values.clone();
    for (at, &v) in window.offsets().zip(&point.outputs[0].data) {
        want[at] = v;
    }
    let tolerance = Tolerance::of(DType::F64).times(sample.tolerance);
    values::values(std::slice::from_ref(&base), &[Ref::new(&sizes, want)], |_| tolerance)?;

    let u = numbers.weights(n);
    let seed = Tensor::try_from_slice(&u, [n])?.try_to_device(device)?;
    let mut wanted = vec![&leaf];
    wanted.extend(checked(sample).into_iter().filter(|&k| k > 0).map(|k| &others[k - 1]));
    let found = grad(&[&flat], &wanted, Some(&[&seed]), BackwardOptions::default())?;
    let inside: Vec<f64> = window.offsets().map(|at| u[at]).collect();
    let seeds = Seeds { values: vec![Some(inside)], tensors: Vec::new() };
    for (g, k) in found.iter().zip(checked(sample)) {
        point.differentiate(sample, &inputs.refs, k);
        let (mut want, mut magnitude) = point.gradient(k, &seeds.values);
        let mut what = format!("operand {k}");
        let input = if k == 0 {
            // Outside the window the base's gradient passes through.
            let (mut whole, mut sizes_of) = (u.clone(), vec![1.0; n]);
            for (at, (&w, &m)) in window.offsets().zip(want.iter().zip(&magnitude)) {
                (whole[at], sizes_of[at]) = (w, m);
            }
            (want, magnitude, what) = (whole, sizes_of, "the base".to_owned());
            &leaf
        } else {
            &others[k - 1]
        };
        compare(&what, g.as_ref(), input, &want, &magnitude, sample.tolerance)?;
    }
    Ok(())
}

/// The window on a dense base, by views that autograd follows.
fn view_of(base: &Tensor, window: &Layout) -> stridegrad_core::Result<Tensor> {
    let forwards: Vec<isize> = window.strides().iter().map(|s| s.abs()).collect();
    let start = window.span().map_or(0, |(low, _)| low);
    let turned: Vec<i64> =
        (0..window.rank()).filter(|&d| window.strides()[d] < 0).map(|d| d as i64).collect();
    let view = base.try_as_strided(window.sizes(), &forwards[..], Some(start))?;
    if turned.is_empty() { Ok(view) } else { view.try_reversed(&turned[..]) }
}

fn first(sample: &Sample, points: &Points<'_>, device: Device) -> Outcome<Inputs> {
    points.inputs(&assignments(sample)[0], DType::F64, device)
}

/// A leaf that requires grad is not written to, nor is a view of it.
fn leaf_is_refused(form: &Form, sample: &Sample, points: &Points<'_>, device: Device) -> Outcome {
    for view in [false, true] {
        let inputs = first(sample, points, device)?;
        let leaf = inputs.placed[0].tensor.try_requires_grad_(true)?;
        let target = if view { leaf.try_unsqueeze(0)?.try_select(0, 0)? } else { leaf };
        match form(&target, &inputs.tensors()[1..]) {
            Err(e) if e.kind() == ErrorKind::InPlace => inputs.unmodified(0)?,
            Err(e) => return Err(e.into()),
            Ok(()) => wrong!("a leaf that requires grad was written to (through a view: {view})"),
        }
    }
    Ok(())
}

/// What a node saved before the write is stale afterwards: backward says so.
fn stale_is_refused(form: &Form, sample: &Sample, points: &Points<'_>, device: Device) -> Outcome {
    let inputs = first(sample, points, device)?;
    let leaf = inputs.placed[0].tensor.try_requires_grad_(true)?;
    let x = leaf.try_mul(1.0)?;
    let square = x.try_mul(&x)?.try_sum()?;
    form(&x, &inputs.tensors()[1..])?;
    match square.try_backward() {
        Err(e) if e.kind() == ErrorKind::Autograd => Ok(()),
        Err(e) => Err(e.into()),
        Ok(()) => wrong!("backward used a saved value that the write had changed"),
    }
}
