//! The faults.

use std::sync::{Arc, Mutex};

use stridegrad_autograd::spec::{Domain, OpSpec, Ref, Sample};
use stridegrad_autograd::tamper::{HiddenBumps, hide_bumps, misread, tampered};
use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{DType, ErrorKind, Layout, MemoryFormat, Result};

use crate::harness::has_layout;
use crate::jacobian::Point;
use crate::values::{Numbers, differentiable, draw, reference};

/// A fault, and where it must show.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// Whether there is one for each input.
    pub(super) per_input: bool,
    /// Whether the fault must show in this sample, in input `k`.
    pub(super) shows: fn(&Sample, &Facts, usize) -> bool,
    /// The sample with the fault.
    pub(super) make: fn(Sample, &Facts, usize) -> Sample,
}

/// What a sample's reference says about it.
pub(super) struct Facts {
    outputs: Vec<Ref>,
    inputs: Vec<Ref>,
    /// For each input: whether zeros in its place change the result.
    counts: Vec<bool>,
    /// For each input: whether its elements in the opposite order change the result.
    directed: Vec<bool>,
    /// For each input: its gradient for some gradients of the outputs, unless it has none or that is zero.
    slopes: Vec<Option<Ref>>,
    /// Whether two inputs can be exchanged, and it matters.
    swap: Option<(usize, usize)>,
}

impl Facts {
    pub(super) fn new(op: &str, sample: &Sample) -> Facts {
        let mut numbers = Numbers::from_name(&format!("{op} {}", sample.name));
        let inputs: Vec<Ref> = sample.inputs.iter().map(|i| reference(i, draw(i, &mut numbers))).collect();
        let mut point = Point::new(sample, &inputs);
        let changed = |inputs: &[Ref]| differ(&(sample.reference)(inputs), &point.outputs);
        let (mut counts, mut directed) = (Vec::new(), Vec::new());
        for k in 0..inputs.len() {
            let mut other = inputs.clone();
            other[k].data.reverse();
            directed.push(changed(&other));
            other[k].data.iter_mut().for_each(|v| *v = 0.0);
            counts.push(changed(&other));
        }
        let pairs = (0..inputs.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
        let swap = pairs.into_iter().find(|&(a, b)| {
            let (x, y) = (&sample.inputs[a], &sample.inputs[b]);
            let mut other = inputs.clone();
            other.swap(a, b);
            x.sizes == y.sizes && x.domain == y.domain && changed(&other)
        });
        let mut slopes = Vec::new();
        for (k, input) in sample.inputs.iter().enumerate() {
            if !sample.grad || !differentiable(input.domain) {
                slopes.push(None);
                continue;
            }
            point.differentiate(sample, &inputs, k);
            let mut weights = Numbers::from_name("slopes");
            let seeds: Vec<_> = point.outputs.iter().map(|o| Some(weights.weights(o.data.len()))).collect();
            let slope = Ref::new(&input.sizes, point.gradient(k, &seeds).0);
            slopes.push(Some(slope).filter(|s| s.data.iter().any(|g| g.abs() > 1e-3)));
        }
        Facts { outputs: point.outputs, inputs, counts, directed, slopes, swap }
    }

    fn counts(&self, k: usize) -> bool {
        self.counts.get(k).is_some_and(|&c| c)
    }

    fn slopes(&self, k: usize) -> bool {
        self.slopes.get(k).is_some_and(Option::is_some)
    }

    fn elements(&self) -> usize {
        self.inputs.iter().map(|r| r.data.len()).sum()
    }

    fn first(&self) -> &Ref {
        &self.outputs[0]
    }
}

fn differ(a: &[Ref], b: &[Ref]) -> bool {
    let near =
        |a: f64, b: f64| a == b || (a - b).abs() <= 1e-2 * (1.0 + b.abs()) || (a.is_nan() && b.is_nan());
    let far = |a: &f64, b: &f64| !near(*a, *b);
    a.iter().zip(b).any(|(a, b)| a.sizes == b.sizes && a.data.iter().zip(&b.data).any(|(a, b)| far(a, b)))
}

/// At least two dims that have a direction.
fn is_matrix(sizes: &[usize]) -> bool {
    sizes.iter().filter(|&&n| n > 1).count() >= 2 && !sizes.contains(&0)
}

/// Whether the values, dense and row-major, are others when read column-major.
fn is_asymmetric(r: &Ref) -> bool {
    let turned: Vec<usize> = r.sizes.iter().rev().copied().collect();
    let misread = Ref::new(&turned, r.data.clone());
    let read = |i: &[usize]| misread.at(&i.iter().rev().copied().collect::<Vec<_>>());
    is_matrix(&r.sizes) && differ(&[Ref::from_fn(&r.sizes, read)], std::slice::from_ref(r))
}

/// Changes the results.
fn results(sample: Sample, change: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Sample {
    let run = sample.run;
    Sample { run: Box::new(move |t| run(t)?.into_iter().map(&change).collect()), ..sample }
}

/// Changes one of the arguments.
fn argument(
    sample: Sample,
    k: usize,
    change: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Sample {
    let run = sample.run;
    let changed = move |t: &[Tensor]| {
        let mut t = t.to_vec();
        t[k] = change(&t[k])?;
        run(&t)
    };
    Sample { run: Box::new(changed), ..sample }
}

type Form = dyn Fn(&Tensor, &[Tensor]) -> Result<()> + Send + Sync;

/// Changes the in-place form: `change` gets the form, its target and its operands.
fn form(
    sample: Sample,
    change: impl Fn(&dyn Fn(&Tensor, &[Tensor]) -> Result<()>, &Tensor, &[Tensor]) -> Result<()>
    + Send
    + Sync
    + 'static,
) -> Sample {
    let Sample { in_place, .. } = sample;
    let in_place = in_place.map(|own| -> Box<Form> { Box::new(move |x, others| change(&*own, x, others)) });
    Sample { in_place, ..sample }
}

/// Other values in the same layout, without a graph.
fn with_values(t: &Tensor, values: &[f64]) -> Result<Tensor> {
    let line = Tensor::try_from_slice(values, t.sizes())?.try_to_dtype(t.dtype())?;
    let out = t.detach().try_copy()?;
    no_grad(|| out.try_copy_(&line))
}

/// The tensor read through another layout, if it is another.
fn relaid(t: &Tensor, strides: impl Fn(&Layout) -> Result<Layout>) -> Result<Tensor> {
    let layout = strides(t.layout())?;
    Ok(if layout == *t.layout() { t.clone() } else { misread(t, layout) })
}

fn written(_: &Sample, f: &Facts) -> bool {
    f.inputs.first().is_some_and(|x| differ(&f.outputs[..1], std::slice::from_ref(x)))
}

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "result negated",
        per_input: false,
        shows: |_, f, _| f.outputs.iter().any(|o| o.data.iter().any(|v| v.abs() > 1e-3)),
        make: |s, _, _| {
            results(s, |y| if y.dtype() == DType::Bool { y.try_logical_not() } else { y.try_neg() })
        },
    },
    Fault {
        name: "result off by one element",
        per_input: false,
        shows: |_, f, _| {
            let turned: Vec<Ref> = f.outputs.iter().map(|o| Ref::new(&o.sizes, rotated(&o.data))).collect();
            differ(&turned, &f.outputs)
        },
        make: |s, _, _| results(s, |y| with_values(&y, &rotated(&y.try_to_vec_f64()?))),
    },
    Fault {
        name: "result in wrong strides",
        per_input: false,
        shows: |s, f, _| has_layout(s) && f.outputs.iter().any(|o| is_matrix(&o.sizes)),
        make: |s, _, _| {
            results(s, |y| {
                // Column-major, or row-major where it is that already.
                let back: Vec<i64> = (0..y.dim() as i64).rev().collect();
                let turned = y.try_permute(&back[..])?;
                match turned.is_contiguous() {
                    false => turned.try_copy_in_format(MemoryFormat::Contiguous)?.try_permute(&back[..]),
                    true => y.try_copy_in_format(MemoryFormat::Contiguous),
                }
            })
        },
    },
    Fault {
        name: "result in another dtype",
        per_input: false,
        shows: |_, f, _| !f.outputs.is_empty(),
        make: |s, _, _| {
            results(s, |y| y.try_to_dtype(if y.dtype() == DType::F32 { DType::F64 } else { DType::F32 }))
        },
    },
    Fault {
        name: "result written into an input",
        per_input: false,
        shows: |s, f, _| {
            !s.is_view
                && !s.may_alias
                && f.inputs.first().is_some_and(|x| x.sizes == f.first().sizes && !x.data.is_empty())
                && written(s, f)
        },
        make: |s, _, _| {
            let run = s.run;
            let faulty = move |t: &[Tensor]| {
                let mut y = run(t)?;
                if y[0].sizes() == t[0].sizes() && !stridegrad_core::self_overlaps(t[0].layout()) {
                    no_grad(|| t[0].detach().try_copy_(&y[0]))?;
                    y[0] = t[0].detach();
                }
                Ok(y)
            };
            Sample { run: Box::new(faulty), ..s }
        },
    },
    Fault {
        name: "argument written to",
        per_input: true,
        shows: |_, f, k| f.inputs.get(k).is_some_and(|x| !x.data.is_empty()),
        make: |s, _, k| {
            let run = s.run;
            let faulty = move |t: &[Tensor]| {
                let y = run(t)?;
                no_grad(|| t[k].detach().try_fill_(0.0))?;
                Ok(y)
            };
            Sample { run: Box::new(faulty), ..s }
        },
    },
    Fault {
        name: "results that differ from run to run",
        per_input: false,
        shows: |s, f, _| {
            let rule = |k: usize| s.result_dtype.as_ref().map_or(DType::F64, |r| r(k, DType::F64));
            let floating = |k: &usize| rule(*k).is_floating();
            let fixed = |i: &stridegrad_autograd::spec::Input| !differentiable(i.domain);
            let some = |k: usize| f.outputs[k].data.iter().any(|v| v.abs() > 1e-3 && v.is_finite());
            !s.inputs.iter().all(fixed) && (0..f.outputs.len()).filter(floating).any(some)
        },
        make: |s, _, _| {
            let calls = Mutex::new(0u32);
            results(s, move |y| {
                if !y.dtype().is_floating() {
                    return Ok(y);
                }
                let mut n = calls.lock().unwrap_or_else(|e| e.into_inner());
                *n += 1;
                y.try_mul(1.0 + f64::from(*n % 2) * f64::powi(2.0, -50))
            })
        },
    },
    Fault {
        name: "a term dropped",
        per_input: true,
        shows: |_, f, k| f.counts(k),
        make: |s, _, k| {
            argument(s, k, |x| if x.dtype() == DType::Bool { x.try_zeros_like() } else { x.try_mul(0) })
        },
    },
    Fault {
        name: "operands swapped",
        per_input: false,
        shows: |_, f, _| f.swap.is_some(),
        make: |s, f, _| {
            let (run, swap) = (s.run, f.swap);
            let faulty = move |t: &[Tensor]| {
                let mut t = t.to_vec();
                if let Some((a, b)) = swap {
                    t.swap(a, b);
                }
                run(&t)
            };
            Sample { run: Box::new(faulty), ..s }
        },
    },
    Fault {
        name: "strides ignored",
        per_input: true,
        shows: |_, f, k| f.counts(k) && f.inputs[k].data.len() > 1,
        make: |s, _, k| {
            argument(s, k, |x| relaid(x, |l| Layout::contiguous(l.sizes())?.with_offset(l.offset())))
        },
    },
    Fault {
        name: "offset ignored",
        per_input: true,
        shows: |_, f, k| f.counts(k),
        make: |s, _, k| argument(s, k, |x| relaid(x, |l| l.with_offset(0))),
    },
    Fault {
        name: "direction ignored",
        per_input: true,
        shows: |_, f, k| f.directed.get(k).is_some_and(|&d| d),
        make: |s, _, k| {
            argument(s, k, |x| {
                relaid(x, |l| {
                    let strides: Vec<isize> = l.strides().iter().map(|s| s.abs()).collect();
                    Layout::new(l.sizes(), &strides, l.span().map_or(l.offset(), |(lowest, _)| lowest))
                })
            })
        },
    },
    Fault {
        name: "gradient negated",
        per_input: true,
        shows: |_, f, k| f.slopes(k),
        make: |s, _, k| argument(s, k, |x| tampered(x, |g| Ok(Some(g.try_neg()?)))),
    },
    Fault {
        name: "gradient doubled",
        per_input: true,
        shows: |_, f, k| f.slopes(k),
        make: |s, _, k| argument(s, k, |x| tampered(x, |g| Ok(Some(g.try_mul(2.0)?)))),
    },
    Fault {
        name: "gradient zero",
        per_input: true,
        shows: |_, f, k| f.slopes(k),
        make: |s, _, k| argument(s, k, |x| tampered(x, |g| Ok(Some(g.try_zeros_like()?)))),
    },
    Fault {
        name: "gradient in wrong strides",
        per_input: true,
        shows: |_, f, k| f.slopes.get(k).and_then(Option::as_ref).is_some_and(is_asymmetric),
        make: |s, _, k| {
            argument(s, k, |x| {
                tampered(x, |g| {
                    let dense = g.try_copy_in_format(MemoryFormat::Contiguous)?;
                    let back: Vec<usize> = g.sizes().iter().rev().copied().collect();
                    let dims: Vec<i64> = (0..g.dim() as i64).rev().collect();
                    Ok(Some(misread(&dense, Layout::contiguous(&back)?.permute(&dims)?)))
                })
            })
        },
    },
    Fault {
        name: "graph edge left out",
        per_input: true,
        shows: |_, f, k| f.slopes(k),
        make: |s, _, k| argument(s, k, |x| Ok(x.detach())),
    },
    Fault {
        name: "backward gives nothing",
        per_input: true,
        shows: |_, f, k| f.slopes(k),
        make: |s, _, k| argument(s, k, |x| tampered(x, |_| Ok(None))),
    },
    Fault {
        name: "second derivative left out",
        per_input: true,
        shows: |_, f, k| f.slopes(k) && f.elements() <= 600,
        make: |s, _, k| argument(s, k, |x| tampered(x, |g| Ok(Some(g.detach())))),
    },
    Fault {
        name: "strides of the output's gradient ignored",
        per_input: false,
        shows: |s, f, _| {
            let floating = f.outputs.iter().any(|o| o.data.len() > 1);
            floating && (0..s.inputs.len()).any(|k| f.slopes(k))
        },
        make: |s, _, _| {
            results(s, |y| {
                if !y.requires_grad() {
                    return Ok(y);
                }
                tampered(&y, |g| {
                    let blind = |l: &Layout| Layout::contiguous(l.sizes())?.with_offset(l.offset());
                    Ok(Some(relaid(g, blind)?))
                })
            })
        },
    },
    Fault {
        name: "in place: version bump left out",
        per_input: false,
        shows: |s, f, _| s.in_place.is_some() && !f.inputs[0].data.is_empty(),
        make: |s, _, _| {
            let hidden: Arc<Mutex<Vec<HiddenBumps>>> = Arc::default();
            form(s, move |own, x, others| {
                own(x, others)?;
                hidden.lock().unwrap_or_else(|e| e.into_inner()).push(hide_bumps(x));
                Ok(())
            })
        },
    },
    Fault {
        name: "in place: nothing written",
        per_input: false,
        shows: |s, f, _| s.in_place.is_some() && written(s, f),
        make: |s, _, _| form(s, |_, _, _| Ok(())),
    },
    Fault {
        name: "in place: result negated",
        per_input: false,
        shows: |s, f, _| s.in_place.is_some() && f.first().data.iter().any(|v| v.abs() > 1e-3),
        make: |s, _, _| {
            form(s, |own, x, others| {
                own(x, others)?;
                no_grad(|| x.try_copy_(&x.try_copy()?.try_neg()?)).map(drop)
            })
        },
    },
    Fault {
        name: "in place: strides ignored",
        per_input: false,
        shows: |s, f, _| s.in_place.is_some() && f.inputs[0].data.len() > 1 && written(s, f),
        make: |s, _, _| {
            form(s, |own, x, others| {
                let blind = |l: &Layout| Layout::contiguous(l.sizes())?.with_offset(l.offset());
                own(&relaid(x, blind)?, others)
            })
        },
    },
    Fault {
        name: "in place: graph edge left out",
        per_input: false,
        shows: |s, f, _| {
            s.in_place.is_some()
                && s.grad
                && !f.inputs[0].data.is_empty()
                && s.inputs[0].domain != Domain::Mask
        },
        make: |s, _, _| form(s, |own, x, others| no_grad(|| own(x, others))),
    },
    Fault {
        name: "in place: gradient negated",
        per_input: false,
        shows: |s, f, _| s.in_place.is_some() && (0..s.inputs.len()).any(|k| f.slopes(k)),
        make: |s, _, _| {
            form(s, |own, x, others| {
                own(x, others)?;
                if !x.requires_grad() {
                    return Ok(());
                }
                // The same values once more, by a node that turns the gradient round.
                x.try_copy_(&tampered(&x.try_copy()?, |g| Ok(Some(g.try_neg()?)))?).map(drop)
            })
        },
    },
];

fn rotated(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    if !v.is_empty() {
        v.rotate_left(1);
    }
    v
}

/// Refusals that do not happen, or with another kind of error.
pub(super) fn refusal_faults(make: &dyn Fn() -> OpSpec) -> Vec<(String, OpSpec)> {
    let mut all = Vec::new();
    for i in 0..make().refusals.len() {
        for left_out in [true, false] {
            let mut op = make();
            op.samples.clear();
            op.refusals = vec![op.refusals.swap_remove(i)];
            let r = &mut op.refusals[0];
            let what = if left_out { "left out" } else { "of another kind" };
            let name = format!("refusal {what}: {}", r.name);
            let other = if r.kind == ErrorKind::Format { ErrorKind::Io } else { ErrorKind::Format };
            r.run = Box::new(move || match left_out {
                true => Tensor::try_scalar(0.0),
                false => Err(stridegrad_core::Error::new(other, "mutant", "another kind of error")),
            });
            all.push((name, op));
        }
    }
    all
}

/// A panic where arguments have other sizes than they should.
pub(super) fn fuzz_faults(make: &dyn Fn() -> OpSpec) -> Vec<(String, OpSpec)> {
    let mut op = make();
    if op.samples.iter().all(|s| s.inputs.is_empty()) {
        return Vec::new();
    }
    op.refusals.clear();
    for s in &mut op.samples {
        let run = std::mem::replace(&mut s.run, Box::new(|_| Ok(Vec::new())));
        let sizes: Vec<Vec<usize>> = s.inputs.iter().map(|i| i.sizes.clone()).collect();
        s.run = Box::new(move |t| {
            assert!(t.iter().zip(&sizes).all(|(t, s)| t.sizes() == s), "sizes that nobody thought of");
            run(t)
        });
    }
    vec![("panic on other sizes".to_owned(), op)]
}
