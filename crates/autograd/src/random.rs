//! Tensors of random numbers, and the default generator.

use std::sync::OnceLock;

use stridegrad_core::kernel::Distribution;
use stridegrad_core::{DType, Device, Error, ErrorKind, Generator, IntoDims, Layout, Result, exec};

use crate::Tensor;
use crate::create::{reserved, sizes_arg};
use crate::faces::static_faces;

/// The generator that random ops without one of their own draw from. Seed 0 until [`manual_seed`].
pub fn default_generator() -> Generator {
    static DEFAULT: OnceLock<Generator> = OnceLock::new();
    DEFAULT.get_or_init(|| Generator::new(0)).clone()
}

/// Starts the default generator over from `seed`.
pub fn manual_seed(seed: u64) {
    default_generator().manual_seed(seed);
}

/// Random numbers in a fresh row-major tensor.
pub(crate) fn draw(
    dist: Distribution,
    sizes: &[usize],
    dtype: DType,
    device: Device,
    g: &Generator,
) -> Result<Tensor> {
    stridegrad_cpu::register();
    let layout = Layout::contiguous(sizes)?;
    let stream = g.stream(layout.numel(), dtype.size() == 8 || !dtype.is_floating());
    Ok(Tensor::from_array(exec::random(dist, &stream, layout, dtype, device)?))
}

static_faces! {
    /// Uniform numbers in [0, 1), `f32`. Equal for equal generator states, whatever the threads or device.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// use stridegrad_core::Generator;
    /// let a = Tensor::rand([4], &Generator::new(7));
    /// assert_eq!(a.to_vec::<f32>(), Tensor::rand([4], &Generator::new(7)).to_vec::<f32>());
    /// ```
    pub fn rand | try_rand(sizes: impl IntoDims, generator: &Generator) -> Tensor {
        Tensor::try_uniform(sizes, 0.0, 1.0, DType::F32, generator)
    }

    /// Uniform numbers in [low, high) of a floating dtype.
    pub fn uniform | try_uniform(sizes: impl IntoDims, low: f64, high: f64, dtype: DType, generator: &Generator) -> Tensor {
        check_float("uniform", dtype)?;
        if !(low <= high && (high - low).is_finite()) {
            return Err(Error::new(ErrorKind::Argument, "uniform", format!("the interval [{low}, {high}) is not one")));
        }
        draw(Distribution::Uniform { low, high }, &sizes_arg("uniform", sizes)?, dtype, Device::CPU, generator)
    }

    /// Standard normal numbers, `f32`.
    pub fn randn | try_randn(sizes: impl IntoDims, generator: &Generator) -> Tensor {
        Tensor::try_normal(sizes, 0.0, 1.0, DType::F32, generator)
    }

    /// Normal numbers of a floating dtype.
    pub fn normal | try_normal(sizes: impl IntoDims, mean: f64, std: f64, dtype: DType, generator: &Generator) -> Tensor {
        check_float("normal", dtype)?;
        if std < 0.0 || std.is_nan() {
            return Err(Error::new(ErrorKind::Argument, "normal", format!("standard deviation {std} is negative")));
        }
        draw(Distribution::Normal { mean, std }, &sizes_arg("normal", sizes)?, dtype, Device::CPU, generator)
    }

    /// Integers in [low, high), `i64`.
    pub fn randint | try_randint(low: i64, high: i64, sizes: impl IntoDims, generator: &Generator) -> Tensor {
        if low >= high {
            return Err(Error::new(ErrorKind::Argument, "randint", format!("expects low < high, got {low} and {high}")));
        }
        draw(Distribution::Integer { low, high }, &sizes_arg("randint", sizes)?, DType::I64, Device::CPU, generator)
    }

    /// 1 with probability `p`, else 0, of a given dtype.
    pub fn bernoulli | try_bernoulli(sizes: impl IntoDims, p: f64, dtype: DType, generator: &Generator) -> Tensor {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::new(ErrorKind::Argument, "bernoulli", format!("{p} is not a probability")));
        }
        draw(Distribution::Bernoulli { p }, &sizes_arg("bernoulli", sizes)?, dtype, Device::CPU, generator)
    }

    /// A random permutation of `0..n`, `i64`.
    pub fn randperm | try_randperm(n: usize, generator: &Generator) -> Tensor {
        let mut v: Vec<i64> = reserved("randperm", n)?;
        v.extend(0..n as i64);
        let mut words = vec![0u64; 1];
        let stream = generator.stream(n, true);
        // Fisher-Yates; step i draws from its own counter.
        for i in (1..n).rev() {
            stream.below(i as u64 + 1, i as u64, &mut words);
            v.swap(i, words[0] as usize);
        }
        Tensor::try_from_slice(&v, [n])
    }
}

fn check_float(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_floating() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, op, format!("{dtype} is not a floating-point dtype")))
}
