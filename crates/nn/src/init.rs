//! Initial values, as `torch.nn.init` computes them (Glorot and Bengio, 2010; He et al., 2015).

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, Device, Generator, Result, bail};

const OP: &str = "init";

/// Where parameters are made and what their values are drawn from.
///
/// The numbers depend on the seed and on the order of the draws, never on the device or the threads.
///
/// ```
/// use stridegrad_core::Device;
/// use stridegrad_nn::{Init, Linear};
/// let make = || Linear::builder(3, 2).build(&mut Init::on(&Device::cpu()).seed(7));
/// assert_eq!(make().weight.to_vec::<f32>(), make().weight.to_vec::<f32>());
/// ```
#[derive(Clone, Debug)]
pub struct Init {
    device: Device,
    dtype: DType,
    generator: Generator,
}

impl Init {
    /// On `device`, in f32, from seed 0.
    pub fn on(device: &Device) -> Init {
        Init { device: *device, dtype: DType::F32, generator: Generator::new(0) }
    }

    /// On the CPU, in f32, from seed 0.
    pub fn cpu() -> Init {
        Init::on(&Device::CPU)
    }

    /// From another seed.
    pub fn seed(self, seed: u64) -> Init {
        self.generator(Generator::new(seed))
    }

    /// From another generator, which is shared: its clones see the draws.
    pub fn generator(self, generator: Generator) -> Init {
        Init { generator, ..self }
    }

    /// In another floating dtype.
    pub fn dtype(self, dtype: DType) -> Init {
        Init { dtype, ..self }
    }

    /// Where parameters are made.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Values drawn evenly from [low, high), as a parameter.
    ///
    /// # Errors
    /// `DType` unless it is a floating one; `OutOfMemory`, `Overflow`, or the device's.
    pub fn uniform(&mut self, sizes: &[usize], low: f64, high: f64) -> Result<Tensor> {
        let drawn = Tensor::try_uniform(sizes, low, high, self.dtype, &self.generator)?;
        drawn.try_to_device(self.device)?.try_requires_grad_(true)
    }

    /// Values of the normal distribution, as a parameter.
    ///
    /// # Errors
    /// `DType` unless it is a floating one; `OutOfMemory`, `Overflow`, or the device's.
    pub fn normal(&mut self, sizes: &[usize], mean: f64, std: f64) -> Result<Tensor> {
        let drawn = Tensor::try_normal(sizes, mean, std, self.dtype, &self.generator)?;
        drawn.try_to_device(self.device)?.try_requires_grad_(true)
    }

    /// One value everywhere, as a parameter.
    ///
    /// # Errors
    /// `OutOfMemory`, `Overflow`, or the device's.
    pub fn constant(&mut self, sizes: &[usize], value: f64) -> Result<Tensor> {
        self.buffer(sizes, value)?.try_requires_grad_(true)
    }

    /// One value everywhere, as a buffer: without gradient.
    ///
    /// # Errors
    /// `OutOfMemory`, `Overflow`, or the device's.
    pub fn buffer(&mut self, sizes: &[usize], value: f64) -> Result<Tensor> {
        Tensor::try_full_on(sizes, value, self.dtype, self.device)
    }

    /// He's uniform distribution: within `gain * sqrt(3 / fan_in)` of 0.
    ///
    /// # Errors
    /// `Shape` below two dims; `OutOfMemory`, `Overflow`, or the device's.
    pub fn kaiming_uniform(&mut self, sizes: &[usize], gain: f64) -> Result<Tensor> {
        let bound = spread(gain, 3.0, fans(sizes)?.fan_in);
        self.uniform(sizes, -bound, bound)
    }

    /// He's normal distribution: of deviation `gain / sqrt(fan_in)`.
    ///
    /// # Errors
    /// `Shape` below two dims; `OutOfMemory`, `Overflow`, or the device's.
    pub fn kaiming_normal(&mut self, sizes: &[usize], gain: f64) -> Result<Tensor> {
        let std = spread(gain, 1.0, fans(sizes)?.fan_in);
        self.normal(sizes, 0.0, std)
    }

    /// Glorot's uniform distribution: within `gain * sqrt(6 / (fan_in + fan_out))` of 0.
    ///
    /// # Errors
    /// `Shape` below two dims; `OutOfMemory`, `Overflow`, or the device's.
    pub fn xavier_uniform(&mut self, sizes: &[usize], gain: f64) -> Result<Tensor> {
        let Fans { fan_in, fan_out } = fans(sizes)?;
        let bound = spread(gain, 6.0, fan_in + fan_out);
        self.uniform(sizes, -bound, bound)
    }

    /// Glorot's normal distribution: of deviation `gain * sqrt(2 / (fan_in + fan_out))`.
    ///
    /// # Errors
    /// `Shape` below two dims; `OutOfMemory`, `Overflow`, or the device's.
    pub fn xavier_normal(&mut self, sizes: &[usize], gain: f64) -> Result<Tensor> {
        let Fans { fan_in, fan_out } = fans(sizes)?;
        let std = spread(gain, 2.0, fan_in + fan_out);
        self.normal(sizes, 0.0, std)
    }

    /// PyTorch's default for weights and biases of linear and convolution layers: within `1 / sqrt(fan_in)` of 0.
    pub(crate) fn within_fan_in(&mut self, sizes: &[usize], fan_in: usize) -> Result<Tensor> {
        let bound = spread(1.0, 1.0, fan_in);
        self.uniform(sizes, -bound, bound)
    }
}

/// `gain * sqrt(a / fan)`; 0 for a fan of 0, which has no values to initialise.
fn spread(gain: f64, a: f64, fan: usize) -> f64 {
    if fan == 0 { 0.0 } else { gain * (a / fan as f64).sqrt() }
}

/// The numbers of inputs and outputs that one value of a weight connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fans {
    /// Inputs of an output: the second size times the window.
    pub fan_in: usize,
    /// Outputs of an input: the first size times the window.
    pub fan_out: usize,
}

/// The fans of a weight of these sizes.
///
/// ```
/// use stridegrad_nn::init::fans;
/// let f = fans(&[8, 4, 3, 3])?;
/// assert_eq!((f.fan_in, f.fan_out), (36, 72));
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
///
/// # Errors
/// `Shape` below two dims; `Overflow`.
pub fn fans(sizes: &[usize]) -> Result<Fans> {
    let [outputs, inputs, window @ ..] = sizes else {
        bail!(Shape, OP, "fan in and fan out of sizes {sizes:?}: a weight has at least two dims")
    };
    let window = window.iter().try_fold(1usize, |a, &n| a.checked_mul(n));
    let fans = window.and_then(|w| {
        let (fan_in, fan_out) = (inputs.checked_mul(w)?, outputs.checked_mul(w)?);
        fan_in.checked_add(fan_out).map(|_| Fans { fan_in, fan_out })
    });
    let Some(fans) = fans else { bail!(Overflow, OP, "the fans of sizes {sizes:?} overflow") };
    Ok(fans)
}

/// What follows a layer, for the gain that keeps variances (PyTorch's `calculate_gain`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Nonlinearity {
    /// Nothing, a linear layer or a convolution.
    Linear,
    /// The logistic function.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// max(x, 0).
    Relu,
    /// x, or the slope times x below 0.
    LeakyRelu(f64),
    /// The scaled exponential linear unit.
    Selu,
}

impl Nonlinearity {
    /// The gain.
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear | Nonlinearity::Sigmoid => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::Relu => 2f64.sqrt(),
            Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::Selu => 0.75,
        }
    }
}
