//! Reproducible values of the domains that ops declare.

use stridegrad_autograd::Tensor;
use stridegrad_autograd::spec::{Domain, Input, Ref};
use stridegrad_core::{DType, Result};

/// A small generator of reproducible numbers: 64-bit multiplicative hashing of a counter.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Starts from a text, so that each check has values of its own.
    pub fn from_name(name: &str) -> Numbers {
        Numbers(
            name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3)),
        )
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (((self.word() >> 32) * n as u64) >> 32) as usize
    }

    /// Values in ±[0.25, 1]: weights that no element can hide behind.
    pub fn weights(&mut self, n: usize) -> Vec<f64> {
        (0..n)
            .map(|_| {
                let size = 0.25 + 0.75 * self.unit();
                if self.word() & 1 == 0 { size } else { -size }
            })
            .collect()
    }
}

/// Row-major values of an input, exact in every floating dtype where the domain allows it.
pub fn draw(input: &Input, numbers: &mut Numbers) -> Vec<f64> {
    let n: usize = input.sizes.iter().product();
    if input.domain == Domain::Distinct {
        let mut v: Vec<f64> = (0..n).map(|i| coarse(-2.0 + 4.0 * (i as f64 + 0.5) / n as f64)).collect();
        if n > 200 {
            v = (0..n).map(|i| -2.0 + 4.0 * (i as f64 + 0.5) / n as f64).collect();
        }
        for i in (1..n).rev() {
            v.swap(i, numbers.below(i + 1));
        }
        return v;
    }
    (0..n).map(|_| one(input.domain, numbers)).collect()
}

fn one(domain: Domain, numbers: &mut Numbers) -> f64 {
    let mut between = |low: f64, high: f64| {
        let v = low + (high - low) * numbers.unit();
        let c = coarse(v);
        if (low..=high).contains(&c) { c } else { v }
    };
    match domain {
        Domain::AwayFromZero => {
            let v = between(0.25, 2.0);
            if numbers.word() & 1 == 0 { v } else { -v }
        }
        Domain::Positive => between(0.25, 2.0),
        Domain::Between(low, high) => between(low, high),
        Domain::Index(low, high) => (low + numbers.below((high - low).max(1) as usize) as i64) as f64,
        Domain::Mask => (numbers.word() & 1) as f64,
        _ => between(-2.0, 2.0),
    }
}

/// Cut to 8 significant bits: the same number in `f64`, `f32`, `f16` and `bf16`.
fn coarse(v: f64) -> f64 {
    f64::from(f32::from_bits((v as f32).to_bits() & 0xFFFF_0000))
}

/// Whether an input of this domain has a gradient.
pub fn differentiable(domain: Domain) -> bool {
    !matches!(domain, Domain::Index(..) | Domain::Mask)
}

/// The dtype an input has when the op runs in `dtype`.
pub fn input_dtype(domain: Domain, dtype: DType) -> DType {
    match domain {
        Domain::Index(..) => DType::I64,
        Domain::Mask => DType::Bool,
        _ => dtype,
    }
}

/// The values as an input of that dtype holds them.
pub fn as_held(values: &[f64], domain: Domain, dtype: DType) -> Result<Vec<f64>> {
    let dtype = input_dtype(domain, dtype);
    if dtype == DType::F64 {
        return Ok(values.to_vec());
    }
    let whole = |v: f64| match domain {
        // Rounded away from zero: an integer divisor must not become 0.
        Domain::AwayFromZero | Domain::Positive => v.signum() * v.abs().round().max(1.0),
        Domain::Between(low, high) if low.ceil() <= high.floor() => v.round().clamp(low.ceil(), high.floor()),
        _ => v.round(),
    };
    let values: Vec<f64> = values.iter().map(|&v| if dtype.is_floating() { v } else { whole(v) }).collect();
    Tensor::try_from_slice(&values, [values.len()])?.try_to_dtype(dtype)?.try_to_vec_f64()
}

/// Values as the reference computation takes them.
pub fn reference(input: &Input, values: Vec<f64>) -> Ref {
    Ref::new(&input.sizes, values)
}
