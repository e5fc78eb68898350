//! Elements or channels left out at random.

use stridegrad_core::kernel::Distribution;
use stridegrad_core::{DType, Generator, Layout, Result, bail, exec};

use super::elementwise::linear;
use super::mean::want_float;
use crate::Tensor;
use crate::faces::faces;

stridegrad_cpu::map_kernel! {
    static DROPOUT("dropout") = |[x, mask], [scale]| x * mask * scale;
}

/// `x` times a mask of `sizes`, which broadcasts to it, over `1 - p`.
fn drop(
    op: &'static str,
    x: &Tensor,
    sizes: &[usize],
    p: f64,
    training: bool,
    g: &Generator,
) -> Result<Tensor> {
    want_float(op, x)?;
    if !(0.0..=1.0).contains(&p) {
        bail!(Argument, op, "dropout probability has to be between 0 and 1, but got {p}");
    }
    if !training || p == 0.0 || x.numel() == 0 {
        return Ok(x.clone());
    }
    let layout = if sizes == x.sizes() { x.layout().dense_like() } else { Layout::contiguous(sizes)? };
    // Drawn as f32 whatever the dtype: the same seed leaves out the same elements.
    let stream = g.stream(layout.numel(), false);
    let mask = exec::random(Distribution::Bernoulli { p: 1.0 - p }, &stream, layout, DType::F32, x.device())?;
    // With p = 1 everything is left out: 0 times x, where an infinity becomes NaN, as in PyTorch.
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    linear(&DROPOUT, &[scale.into()], x, &[&Tensor::from_array(mask)])
}

faces! {
    /// In training, each element is replaced by 0 with probability `p`, the others are divided by `1 - p`; otherwise, and for
    /// `p` = 0, the tensor itself. Which elements are left out depends on the generator's state and their row-major
    /// position alone, not on dtype, layout, device or threads.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// use stridegrad_core::Generator;
    /// let y = Tensor::ones([1000]).dropout(0.5, true, &Generator::new(7));
    /// assert!(y.to_vec::<f32>().iter().all(|&v| v == 0.0 || v == 2.0));
    /// ```
    pub fn dropout | try_dropout(&self, p: f64, training: bool, generator: &Generator) -> Tensor {
        drop("dropout", self, self.sizes(), p, training, generator)
    }

    /// As [`Tensor::dropout`], but a channel (N, C, ..) is left out or kept as a whole. Wants rank 2 and more.
    pub fn dropout2d | try_dropout2d(&self, p: f64, training: bool, generator: &Generator) -> Tensor {
        let op = "dropout2d";
        if self.dim() < 2 {
            bail!(Shape, op, "feature dropout requires at least 2 dimensions in the input, got sizes {:?}", self.sizes());
        }
        let mut sizes = vec![1; self.dim()];
        sizes[..2].copy_from_slice(&self.sizes()[..2]);
        drop(op, self, &sizes, p, training, generator)
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    use stridegrad_core::ErrorKind;
    // Uniform numbers below 1 - p keep their element.
    fn reference(x: &Ref, group: usize, p: f64) -> Ref {
        let mut u = vec![0.0f32; x.data.len() / group.max(1)];
        Generator::new(7).stream(u.len(), false).uniform_f32(0, &mut u);
        let kept = |i: usize| f64::from(u[i / group]) < 1.0 - p;
        let data = x.data.iter().enumerate().map(|(i, &v)| if kept(i) { v / (1.0 - p) } else { 0.0 });
        Ref::new(&x.sizes, data.collect())
    }
    OpSpec::new("dropout", || {
        let mut all = Vec::new();
        let shapes: [&[usize]; 5] = [&[2, 3, 4, 5], &[3, 4], &[7], &[2, 0, 3], &[131, 1031]];
        for sizes in shapes {
            let input = || vec![Input::new(sizes, Domain::Any)];
            for p in [0.25, 0.5] {
                let s = Sample::new(
                    format!("dropout {sizes:?} p {p}"),
                    input(),
                    move |t| t[0].try_dropout(p, true, &Generator::new(7)),
                    move |r| reference(&r[0], 1, p),
                );
                all.push(if sizes[0] == 131 { s.no_grad() } else { s });
            }
            if sizes.len() > 1 {
                let group = sizes[2..].iter().product();
                let s = Sample::new(
                    format!("dropout2d {sizes:?}"),
                    input(),
                    |t| t[0].try_dropout2d(0.25, true, &Generator::new(7)),
                    move |r| reference(&r[0], group, 0.25),
                );
                all.push(if sizes[0] == 131 { s.no_grad() } else { s });
            }
        }
        // An empty tensor is returned as it is.
        all.into_iter().map(|s| if s.name.contains("0, 3") { s.may_alias() } else { s }).collect()
    })
    .refusal("a negative probability", ErrorKind::Argument, || {
        Tensor::try_ones([2])?.try_dropout(-0.1, true, &Generator::new(0))
    })
    .refusal("a probability above 1", ErrorKind::Argument, || {
        Tensor::try_ones([2])?.try_dropout(1.5, false, &Generator::new(0))
    })
    .refusal("integers", ErrorKind::DType, || {
        Tensor::try_full([2], 1)?.try_dropout(0.5, true, &Generator::new(0))
    })
    .refusal("rank 1", ErrorKind::Shape, || {
        Tensor::try_ones([2])?.try_dropout2d(0.5, true, &Generator::new(0))
    })
}
