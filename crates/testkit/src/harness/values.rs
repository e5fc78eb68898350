//! The checks of results: values, dtypes, layouts, aliasing, and what must not change.

use std::sync::Mutex;

use stridegrad_autograd::spec::{Domain, Ref, ResultLayout, Sample};
use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{Category, DType, Layout, MemoryFormat, broadcast_sizes};
use stridegrad_cpu::team;

use super::inputs::{Assignment, Inputs, Points, assignments, dtypes, is_big};
use super::{Outcome, Runner, guarded, wrong};
use crate::compare::{Tolerance, difference};
use crate::values::{Numbers, input_dtype};

/// The number of threads is everybody's: one test of it at a time.
static THREADS: Mutex<()> = Mutex::new(());

impl Runner<'_> {
    pub(super) fn values(&mut self, sample: &Sample) {
        let mut points = Points::new(self.op, sample);
        for at in assignments(sample) {
            for dtype in dtypes(sample) {
                if self.ended() || (is_big(sample) && at.name != "contiguous" && dtype.size() == 2) {
                    continue;
                }
                self.results(sample, &mut points, &at, dtype);
            }
        }
        let (first, name) = (&assignments(sample)[0], sample.name.as_str());
        for dtype in [DType::F64, DType::F32] {
            let device = self.options.device;
            self.check("threads", &first.name, dtype, name, || {
                threads(sample, &points, first, dtype, device)
            });
        }
    }

    fn results(&mut self, sample: &Sample, points: &mut Points<'_>, at: &Assignment, dtype: DType) {
        const CHECKS: [&str; 5] = ["value", "dtype", "layout", "alias", "unmodified"];
        if !CHECKS.iter().any(|c| self.wanted(c, &at.name)) {
            return;
        }
        let device = self.options.device;
        let ran = guarded(|| {
            let inputs = points.inputs(at, dtype, device)?;
            let results = (sample.run)(&inputs.tensors())?;
            Ok((inputs, results))
        });
        let (inputs, results) = match ran {
            Ok(ran) => ran,
            Err(fault) => return self.record("value", &at.name, dtype, &sample.name, Err(fault)),
        };
        let name = sample.name.as_str();
        let wanted = guarded(|| Ok(points.at(&inputs.refs).outputs.clone()));
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(fault) => return self.record("value", &at.name, dtype, name, Err(fault)),
        };
        let tolerance = |k: usize| Tolerance::of(result_dtype(sample, k, dtype)).times(sample.tolerance);
        self.check("value", &at.name, dtype, name, || values(&results, &wanted, tolerance));
        self.check("dtype", &at.name, dtype, name, || result_dtypes(sample, &results, dtype));
        if has_layout(sample) {
            self.check("layout", &at.name, dtype, name, || layouts(sample, &inputs, &results));
        }
        self.check("unmodified", &at.name, dtype, name, || inputs.unmodified(0));
        self.check("alias", &at.name, dtype, name, || aliases(sample, &inputs, &results));
    }
}

/// The dtype that result `k` must have.
fn result_dtype(sample: &Sample, k: usize, dtype: DType) -> DType {
    // Of ops on masks or indices alone, theirs is the inputs'.
    let held = sample.inputs.iter().map(|i| input_dtype(i.domain, dtype)).reduce(DType::promote);
    let fixed = sample.inputs.iter().all(|i| matches!(i.domain, Domain::Index(..) | Domain::Mask));
    let dtype = held.filter(|_| fixed).unwrap_or(dtype);
    sample.result_dtype.as_ref().map_or(dtype, |rule| rule(k, dtype))
}

fn result_dtypes(sample: &Sample, results: &[Tensor], dtype: DType) -> Outcome {
    for (k, r) in results.iter().enumerate() {
        let want = result_dtype(sample, k, dtype);
        if r.dtype() != want {
            wrong!("result {k} is {} instead of {want}", r.dtype());
        }
    }
    Ok(())
}

pub(super) fn values(results: &[Tensor], wanted: &[Ref], tolerance: impl Fn(usize) -> Tolerance) -> Outcome {
    if results.len() != wanted.len() {
        wrong!("{} results instead of {}", results.len(), wanted.len());
    }
    for (k, (r, want)) in results.iter().zip(wanted).enumerate() {
        if r.sizes() != want.sizes {
            wrong!("result {k} has sizes {:?} instead of {:?}", r.sizes(), want.sizes);
        }
        let exact;
        let want = if r.dtype().category() == Category::Integral {
            exact = want.data.iter().map(|&v| wrapped(v, r.dtype())).collect();
            &exact
        } else if let Some(largest) = largest(r.dtype()) {
            let held = |v: f64| if v.abs() >= largest { v.signum() * f64::INFINITY } else { v };
            exact = want.data.iter().map(|&v| held(v)).collect();
            &exact
        } else {
            &want.data
        };
        if let Some(text) = difference(r.sizes(), &r.try_to_vec_f64()?, want, tolerance(k)) {
            wrong!("result {k} {text}");
        }
    }
    Ok(())
}

/// From where on a float is infinite when rounded to a narrower dtype.
fn largest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F16 => Some(65520.0),
        DType::F32 | DType::BF16 => Some(f64::from(f32::MAX)),
        _ => None,
    }
}

/// An integer as its dtype holds it: they wrap.
fn wrapped(v: f64, dtype: DType) -> f64 {
    let bits = 8 * dtype.size() as i32;
    if bits == 64 || !v.is_finite() {
        return v;
    }
    let low = if dtype == DType::U8 { 0.0 } else { -f64::powi(2.0, bits - 1) };
    (v - low).rem_euclid(f64::powi(2.0, bits)) + low
}

/// Whether the layout of the results is laid down.
pub(crate) fn has_layout(sample: &Sample) -> bool {
    let open = sample.may_alias && matches!(sample.layout, ResultLayout::Elementwise);
    !sample.is_view && !open
}

fn layouts(sample: &Sample, inputs: &Inputs, results: &[Tensor]) -> Outcome {
    let again = (sample.run)(&inputs.tensors())?;
    for (k, (r, second)) in results.iter().zip(&again).enumerate() {
        if r.strides() != second.strides() {
            wrong!("result {k} has strides {:?}, in a second run {:?}", r.strides(), second.strides());
        }
        if r.numel() == 0 {
            continue; // no element, no order
        }
        let want = result_layout(sample, &inputs.layouts(), r.sizes())?;
        // What may be the input itself keeps the strides of its dims of size 1.
        let free = |d: usize| sample.may_alias && r.sizes()[d] == 1;
        if (0..r.dim()).any(|d| r.strides()[d] != want.strides()[d] && !free(d)) {
            wrong!(
                "result {k} of sizes {:?} has strides {:?} instead of {:?}",
                r.sizes(),
                r.strides(),
                want.strides()
            );
        }
    }
    Ok(())
}

/// The layout that a result must have.
fn result_layout(sample: &Sample, inputs: &[Layout], sizes: &[usize]) -> Outcome<Layout> {
    let row_major = Layout::contiguous(sizes)?;
    Ok(match &sample.layout {
        ResultLayout::RowMajor => row_major,
        ResultLayout::Like(k) => inputs[*k].dense_like(),
        ResultLayout::ChannelsLastIf(which) => {
            let marked = |k: &usize| inputs[*k].suggested_format() == MemoryFormat::ChannelsLast;
            if which.iter().any(marked) {
                row_major.in_format(MemoryFormat::ChannelsLast)?
            } else {
                row_major
            }
        }
        ResultLayout::By(rule) => rule(inputs, sizes)?,
        ResultLayout::Elementwise => {
            let operands: Vec<&Layout> = inputs.iter().collect();
            let shapes: Vec<&[usize]> = operands.iter().map(|l| l.sizes()).collect();
            match broadcast_sizes("harness", &shapes) {
                Ok(all) if *all == *sizes && !operands.is_empty() => Layout::result_of(&operands, sizes)?,
                _ => row_major,
            }
        }
    })
}

fn aliases(sample: &Sample, inputs: &Inputs, results: &[Tensor]) -> Outcome {
    if sample.is_view {
        return writes_show(sample, inputs, results);
    }
    for (k, r) in results.iter().enumerate() {
        for (i, p) in inputs.placed.iter().enumerate() {
            if r.shares_storage(&p.line) && !sample.may_alias {
                wrong!("result {k} shares the storage of input {i}");
            }
        }
        if let Some(other) = results[..k].iter().position(|o| o.shares_storage(r))
            && !sample.may_alias
        {
            wrong!("results {other} and {k} share a storage");
        }
    }
    Ok(())
}

/// A write into a view shows in the base, where the reference says that its elements come from.
fn writes_show(sample: &Sample, inputs: &Inputs, results: &[Tensor]) -> Outcome {
    let x = &inputs.placed[0];
    for (k, r) in results.iter().enumerate() {
        if !r.shares_storage(&x.tensor) {
            wrong!("result {k} does not share the storage of the input");
        }
        // Where each element comes from: the reference of the positions themselves.
        let mut refs = inputs.refs.clone();
        refs[0].data = (0..refs[0].data.len()).map(|i| i as f64).collect();
        let origins = (sample.reference)(&refs).swap_remove(k);
        let mut want = x.tensor.try_to_vec_f64()?;
        let position = x.tensor.layout().offsets().collect::<Vec<_>>();
        let hit: Vec<usize> = origins.data.iter().map(|&i| position[i as usize]).collect();
        for (w, at) in want.iter_mut().zip(&position) {
            if hit.contains(at) {
                *w = 1.0;
            }
        }
        let before = x.bits()?;
        no_grad(|| r.try_fill_(1.0))?;
        if let Some(text) =
            difference(x.tensor.sizes(), &x.tensor.try_to_vec_f64()?, &want, Tolerance::of(DType::I64))
        {
            wrong!("after writing into result {k}, the input {text}");
        }
        for (at, (was, is)) in before.iter().zip(&x.bits()?).enumerate() {
            if was != is && !hit.contains(&at) {
                wrong!("writing into result {k} changed the storage at {at}, outside the view");
            }
        }
    }
    Ok(())
}

/// The same bits for any number of threads.
fn threads(
    sample: &Sample,
    points: &Points<'_>,
    at: &Assignment,
    dtype: DType,
    device: stridegrad_core::Device,
) -> Outcome {
    let _one = THREADS.lock().unwrap_or_else(|e| e.into_inner());
    let before = team::num_threads();
    let mut seen: Option<Vec<Vec<u64>>> = None;
    for n in [1, 2, 5] {
        team::set_num_threads(n);
        let run = bits_of_run(sample, points, at, dtype, device);
        team::set_num_threads(before);
        let run = run?;
        match &seen {
            Some(first) if *first != run => wrong!("{n} threads give other bits than 1"),
            _ => seen = Some(run),
        }
    }
    Ok(())
}

fn bits_of_run(
    sample: &Sample,
    points: &Points<'_>,
    at: &Assignment,
    dtype: DType,
    device: stridegrad_core::Device,
) -> Outcome<Vec<Vec<u64>>> {
    let inputs = points.inputs(at, dtype, device)?;
    let mut tensors = inputs.tensors();
    if sample.grad {
        for (t, i) in tensors.iter_mut().zip(&sample.inputs) {
            if crate::values::differentiable(i.domain) {
                *t = t.try_requires_grad_(true)?;
            }
        }
    }
    let results = (sample.run)(&tensors)?;
    let bits =
        |t: &Tensor| -> Outcome<Vec<u64>> { Ok(t.try_to_vec_f64()?.into_iter().map(f64::to_bits).collect()) };
    let mut all = results.iter().map(bits).collect::<Outcome<Vec<_>>>()?;
    let mut numbers = Numbers::from_name("threads");
    for r in results.iter().filter(|r| r.requires_grad()) {
        let seed = Tensor::try_from_slice(&numbers.weights(r.numel()), r.sizes())?
            .try_to_dtype(r.dtype())?
            .try_to_device(device)?;
        let keep = stridegrad_autograd::BackwardOptions { retain_graph: true, ..Default::default() };
        r.try_backward_with(Some(&seed), keep)?;
    }
    for t in &tensors {
        if let Some(g) = t.grad() {
            all.push(bits(&g)?);
        }
    }
    Ok(all)
}
