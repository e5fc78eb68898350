//! How an op describes itself to the harness: samples, an independent `f64` reference, refusals.

use stridegrad_core::{DType, ErrorKind, Layout, Result};

use crate::Tensor;

/// An op's entry in the registry.
pub struct OpSpec {
    /// The op's public name.
    pub name: &'static str,
    /// The samples; sizes straddle tile, chunk and thread thresholds where it matters.
    pub samples: Vec<Sample>,
    /// Calls that must be refused, with the kind of error.
    pub refusals: Vec<Refusal>,
}

impl OpSpec {
    /// An entry with its samples.
    pub fn new(name: &'static str, samples: impl FnOnce() -> Vec<Sample>) -> OpSpec {
        OpSpec { name, samples: samples(), refusals: Vec::new() }
    }

    /// Adds a call that must be refused.
    #[must_use]
    pub fn refusal(
        mut self,
        name: &'static str,
        kind: ErrorKind,
        run: impl Fn() -> Result<Tensor> + Send + Sync + 'static,
    ) -> OpSpec {
        self.refusals.push(Refusal { name, kind, run: Box::new(run) });
        self
    }
}

/// A call that must be refused.
pub struct Refusal {
    /// What is wrong with it.
    pub name: &'static str,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The call.
    pub run: Box<dyn Fn() -> Result<Tensor> + Send + Sync>,
}

/// Which values an input may take.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Domain {
    /// In [-2, 2].
    Any,
    /// In [-2, 2] but at least 0.25 away from 0: for kinks and poles there.
    AwayFromZero,
    /// In [0.25, 2].
    Positive,
    /// In the given interval.
    Between(f64, f64),
    /// A permutation of evenly spaced values: no two are close, for ops with ties.
    Distinct,
    /// Integers in `[low, high)`, as an `i64` input that is never differentiated.
    Index(i64, i64),
    /// Zeros and ones, as a `bool` input that is never differentiated.
    Mask,
}

/// One input of a sample.
#[derive(Clone, Debug)]
pub struct Input {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// The values.
    pub domain: Domain,
}

impl Input {
    /// An input of these sizes and values.
    pub fn new(sizes: &[usize], domain: Domain) -> Input {
        Input { sizes: sizes.to_vec(), domain }
    }
}

/// A dense row-major array of the reference computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Ref {
    /// The sizes.
    pub sizes: Vec<usize>,
    /// The values, row-major.
    pub data: Vec<f64>,
}

impl Ref {
    /// An array of these sizes and values.
    pub fn new(sizes: &[usize], data: Vec<f64>) -> Ref {
        assert_eq!(sizes.iter().product::<usize>(), data.len(), "reference of sizes {sizes:?}");
        Ref { sizes: sizes.to_vec(), data }
    }

    /// The value at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[self.flat(index)]
    }

    /// The row-major position of an index.
    pub fn flat(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.sizes.len());
        index.iter().zip(&self.sizes).fold(0, |p, (&i, &n)| {
            assert!(i < n, "index {index:?} of sizes {:?}", self.sizes);
            p * n + i
        })
    }

    /// The value at an index of a bigger shape that this one broadcasts to.
    pub fn broadcast_at(&self, index: &[usize]) -> f64 {
        let skip = index.len() - self.sizes.len();
        let own: Vec<usize> =
            index[skip..].iter().zip(&self.sizes).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        self.at(&own)
    }

    /// The array of these sizes whose value at each index is this one's at `from(index)`.
    pub fn rearranged(&self, sizes: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Ref {
        Ref::from_fn(sizes, |i| self.at(&from(i)))
    }

    /// The array whose value at each index is `f(index)`.
    pub fn from_fn(sizes: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Ref {
        let n = sizes.iter().product();
        let mut index = vec![0; sizes.len()];
        let mut data = Vec::with_capacity(n);
        for _ in 0..n {
            data.push(f(&index));
            for d in (0..sizes.len()).rev() {
                index[d] += 1;
                if index[d] < sizes[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Ref::new(sizes, data)
    }
}

/// Which dtypes a sample runs in, besides `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtypes {
    /// The floating ones.
    Floats,
    /// The floating ones and the signed integers (values are rounded first); the result keeps the dtype.
    Numbers,
}

/// What the layout of a fresh result must be, in every layout of the inputs.
pub enum ResultLayout {
    /// Where the result has the sizes that the inputs broadcast to: that of an elementwise op on them
    /// ([`Layout::result_of`]); otherwise row-major.
    Elementwise,
    /// Row-major.
    RowMajor,
    /// That of a copy of input `k`: [`Layout::dense_like`].
    Like(usize),
    /// Channels-last if one of these inputs suggests it ([`Layout::suggested_format`]), else row-major.
    ChannelsLastIf(&'static [usize]),
    /// Computed from the inputs' layouts and the result's sizes.
    By(Box<LayoutRule>),
}

type LayoutRule = dyn Fn(&[Layout], &[usize]) -> Result<Layout> + Send + Sync;
type DTypeRule = dyn Fn(usize, DType) -> DType + Send + Sync;
type Run = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;
type Reference = dyn Fn(&[Ref]) -> Vec<Ref> + Send + Sync;
type InPlace = dyn Fn(&Tensor, &[Tensor]) -> Result<()> + Send + Sync;

/// One call of an op, on inputs that the harness makes in every layout and dtype.
pub struct Sample {
    /// The arguments, for messages.
    pub name: String,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The call.
    pub run: Box<Run>,
    /// An independent computation in `f64`, over dense row-major arrays.
    pub reference: Box<Reference>,
    /// The in-place form: writes into the first argument (the first input), given the others.
    pub in_place: Option<Box<InPlace>>,
    /// The dtypes.
    pub dtypes: Dtypes,
    /// Whether gradients are checked (inputs of `Index` and `Mask` domains never are).
    pub grad: bool,
    /// A factor on the default tolerances, for long sums and the like.
    pub tolerance: f64,
    /// Whether `reference` also holds for a result that is a view (then storage is compared as well).
    pub is_view: bool,
    /// Whether the result may be the input or a view of it where the layout allows, as `reshape`'s is.
    pub may_alias: bool,
    /// The layout of the results.
    pub layout: ResultLayout,
    /// The dtype of result `k` from the dtype the inputs have; the same where there is none.
    pub result_dtype: Option<Box<DTypeRule>>,
}

impl Sample {
    /// A sample with one result.
    pub fn new(
        name: impl Into<String>,
        inputs: Vec<Input>,
        run: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
        reference: impl Fn(&[Ref]) -> Ref + Send + Sync + 'static,
    ) -> Sample {
        Sample {
            name: name.into(),
            inputs,
            run: Box::new(move |t| Ok(vec![run(t)?])),
            reference: Box::new(move |r| vec![reference(r)]),
            in_place: None,
            dtypes: Dtypes::Floats,
            grad: true,
            tolerance: 1.0,
            is_view: false,
            may_alias: false,
            layout: ResultLayout::Elementwise,
            result_dtype: None,
        }
    }

    /// A sample with several results.
    pub fn many(
        name: impl Into<String>,
        inputs: Vec<Input>,
        run: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
        reference: impl Fn(&[Ref]) -> Vec<Ref> + Send + Sync + 'static,
    ) -> Sample {
        let one = Sample::new(name, inputs, |t| Ok(t[0].clone()), |r| r[0].clone());
        Sample { run: Box::new(run), reference: Box::new(reference), ..one }
    }

    /// With an in-place form.
    #[must_use]
    pub fn in_place(
        mut self,
        f: impl Fn(&Tensor, &[Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> Sample {
        self.in_place = Some(Box::new(f));
        self
    }

    /// Also in integer dtypes.
    #[must_use]
    pub fn numbers(mut self) -> Sample {
        self.dtypes = Dtypes::Numbers;
        self
    }

    /// Without gradients.
    #[must_use]
    pub fn no_grad(mut self) -> Sample {
        self.grad = false;
        self
    }

    /// With a factor on the tolerances.
    #[must_use]
    pub fn tolerance(mut self, factor: f64) -> Sample {
        self.tolerance = factor;
        self
    }

    /// The result is a view of the first input.
    #[must_use]
    pub fn view(mut self) -> Sample {
        self.is_view = true;
        self
    }

    /// The result may be the first input or a view of it, where its layout allows.
    #[must_use]
    pub fn may_alias(mut self) -> Sample {
        self.may_alias = true;
        self
    }

    /// The results are row-major, whatever the inputs.
    #[must_use]
    pub fn row_major(mut self) -> Sample {
        self.layout = ResultLayout::RowMajor;
        self
    }

    /// The results have the layout of a copy of input `k`.
    #[must_use]
    pub fn layout_like(mut self, k: usize) -> Sample {
        self.layout = ResultLayout::Like(k);
        self
    }

    /// The results are channels-last if one of these inputs suggests it, else row-major.
    #[must_use]
    pub fn channels_last_if(mut self, inputs: &'static [usize]) -> Sample {
        self.layout = ResultLayout::ChannelsLastIf(inputs);
        self
    }

    /// The results' layout by a rule of its own, from the inputs' layouts and the result's sizes.
    #[must_use]
    pub fn layout_by(
        mut self,
        rule: impl Fn(&[Layout], &[usize]) -> Result<Layout> + Send + Sync + 'static,
    ) -> Sample {
        self.layout = ResultLayout::By(Box::new(rule));
        self
    }

    /// The results are of this dtype, whatever the inputs.
    #[must_use]
    pub fn result(self, dtype: DType) -> Sample {
        self.result_dtype(move |_, _| dtype)
    }

    /// The dtype of result `k` from the dtype of the inputs.
    #[must_use]
    pub fn result_dtype(mut self, rule: impl Fn(usize, DType) -> DType + Send + Sync + 'static) -> Sample {
        self.result_dtype = Some(Box::new(rule));
        self
    }
}

/// Samples of an elementwise function of one operand.
pub fn unary_samples(
    domain: Domain,
    run: impl Fn(&Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static,
    f: impl Fn(f64) -> f64 + Clone + Send + Sync + 'static,
) -> Vec<Sample> {
    let shapes: [&[usize]; 6] = [&[2, 3, 4, 5], &[3, 4], &[7], &[], &[2, 0, 3], &[1, 3, 1]];
    let mut all: Vec<Sample> = shapes
        .into_iter()
        .map(|sizes| {
            let (run, f) = (run.clone(), f.clone());
            Sample::new(
                format!("{sizes:?}"),
                vec![Input::new(sizes, domain)],
                move |t| run(&t[0]),
                move |r| Ref::new(&r[0].sizes, r[0].data.iter().map(|&x| f(x)).collect()),
            )
        })
        .collect();
    // Beyond a tile, a chunk and the thread threshold: values only, the gradients are those of the small ones.
    let (run, f) = (run.clone(), f.clone());
    all.push(
        Sample::new(
            "[131, 1031]",
            vec![Input::new(&[131, 1031], domain)],
            move |t| run(&t[0]),
            move |r| Ref::new(&r[0].sizes, r[0].data.iter().map(|&x| f(x)).collect()),
        )
        .no_grad(),
    );
    all
}

/// Samples of an elementwise function of two operands, broadcasting included.
pub fn binary_samples(
    first: Domain,
    second: Domain,
    run: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static,
    f: impl Fn(f64, f64) -> f64 + Clone + Send + Sync + 'static,
) -> Vec<Sample> {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[2, 3, 4, 5], &[2, 3, 4, 5]),
        (&[2, 3, 4], &[3, 1]),
        (&[3, 4], &[]),
        (&[5], &[5]),
        (&[2, 3, 4, 4], &[1, 3, 1, 1]),
        (&[2, 0, 3], &[1, 3]),
        (&[], &[]),
        (&[131, 1031], &[1031]),
    ];
    shapes
        .into_iter()
        .map(|(a, b)| {
            let (run, f) = (run.clone(), f.clone());
            let s = Sample::new(
                format!("{a:?} {b:?}"),
                vec![Input::new(a, first), Input::new(b, second)],
                move |t| run(&t[0], &t[1]),
                move |r| Ref::from_fn(&r[0].sizes, |i| f(r[0].at(i), r[1].broadcast_at(i))),
            );
            if a == [131, 1031] { s.no_grad() } else { s }
        })
        .collect()
}

/// Samples of a reduction over dims: `f` gets the values of one group in row-major order.
pub fn reduction_samples(
    domain: Domain,
    run: impl Fn(&Tensor, &[i64], bool) -> Result<Tensor> + Clone + Send + Sync + 'static,
    f: impl Fn(&[f64]) -> f64 + Clone + Send + Sync + 'static,
) -> Vec<Sample> {
    let cases: [(&[usize], &[i64]); 9] = [
        (&[2, 3, 4, 5], &[2, 3]),
        (&[2, 3, 4, 5], &[0, 2, 3]),
        (&[2, 3, 4, 5], &[1]),
        (&[3, 4], &[0]),
        (&[3, 4], &[-1]),
        (&[3, 4], &[0, 1]),
        (&[6], &[0]),
        (&[300, 70], &[0]),
        (&[70, 300], &[1]),
    ];
    let mut all = Vec::new();
    for (sizes, dims) in cases {
        for keepdim in [false, true] {
            let (run, f) = (run.clone(), f.clone());
            let reduced: Vec<usize> = dims
                .iter()
                .map(|&d| if d < 0 { (d + sizes.len() as i64) as usize } else { d as usize })
                .collect();
            let s = Sample::new(
                format!("{sizes:?} dims {dims:?} keepdim {keepdim}"),
                vec![Input::new(sizes, domain)],
                move |t| run(&t[0], dims, keepdim),
                move |r| reduce_ref(&r[0], &reduced, keepdim, &f),
            );
            all.push(if sizes.iter().product::<usize>() > 1000 { s.no_grad().tolerance(4.0) } else { s });
        }
    }
    all
}

/// A reduction of a reference array: `f` gets the values of one group in row-major order.
pub fn reduce_ref(x: &Ref, dims: &[usize], keepdim: bool, f: &dyn Fn(&[f64]) -> f64) -> Ref {
    let kept: Vec<usize> =
        x.sizes.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { 1 } else { n }).collect();
    let group: Vec<usize> =
        x.sizes.iter().enumerate().map(|(i, &n)| if dims.contains(&i) { n } else { 1 }).collect();
    let full = Ref::from_fn(&kept, |outer| {
        let mut values = Vec::new();
        Ref::from_fn(&group, |inner| {
            let index: Vec<usize> = outer.iter().zip(inner).map(|(a, b)| a + b).collect();
            values.push(x.at(&index));
            0.0
        });
        f(&values)
    });
    if keepdim {
        return full;
    }
    let sizes: Vec<usize> = (0..kept.len()).filter(|i| !dims.contains(i)).map(|i| kept[i]).collect();
    Ref::new(&sizes, full.data)
}
