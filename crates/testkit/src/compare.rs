//! Comparing tensors with `f64` references.
//!
//! | dtype | relative | absolute | why |
//! |-------|----------|----------|-----|
//! | `f64` | 1e-12 | 1e-12 | a few thousand roundings of 1.1e-16; math functions of 1 ulp |
//! | `f32` | 4e-6 | 4e-6 | some tens of roundings of 6e-8 |
//! | `f16` | 2e-3 | 1e-3 | computed in `f32`, rounded once to 4.9e-4; a few ops in a row |
//! | `bf16` | 1.6e-2 | 8e-3 | computed in `f32`, rounded once to 3.9e-3; a few ops in a row |
//! | others | 0 | 0 | integers are exact |
//!
//! An op widens them by its sample's `tolerance`. NaN equals NaN, infinities equal themselves.

use stridegrad_autograd::Tensor;
use stridegrad_core::DType;

/// A relative and an absolute tolerance; a value may differ by their sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// A factor of the expected value.
    pub relative: f64,
    /// Added to it.
    pub absolute: f64,
}

impl Tolerance {
    /// The tolerance of a dtype.
    pub fn of(dtype: DType) -> Tolerance {
        let (relative, absolute) = match dtype {
            DType::F64 => (1e-12, 1e-12),
            DType::F32 => (4e-6, 4e-6),
            DType::F16 => (2e-3, 1e-3),
            DType::BF16 => (1.6e-2, 8e-3),
            _ => (0.0, 0.0),
        };
        Tolerance { relative, absolute }
    }

    /// Widened by a factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Tolerance {
        Tolerance { relative: self.relative * factor, absolute: self.absolute * factor }
    }

    /// Whether `got` is close to `want`.
    pub fn close(self, got: f64, want: f64) -> bool {
        self.close_at(got, want, want.abs())
    }

    /// Whether `got` is close to `want`, which is the sum of terms of this total magnitude.
    pub fn close_at(self, got: f64, want: f64, magnitude: f64) -> bool {
        got == want
            || (got.is_nan() && want.is_nan())
            || (want.is_finite() && (got - want).abs() <= self.absolute + self.relative * magnitude)
    }
}

/// The first place where the values differ, as a message.
pub fn difference(sizes: &[usize], got: &[f64], want: &[f64], tolerance: Tolerance) -> Option<String> {
    if got.len() != want.len() {
        return Some(format!("{} values instead of {}", got.len(), want.len()));
    }
    let k = got.iter().zip(want).position(|(&g, &w)| !tolerance.close(g, w))?;
    Some(format!("at {:?}: {} instead of {}", index_of(sizes, k), got[k], want[k]))
}

/// The logical index of row-major position `flat`.
pub fn index_of(sizes: &[usize], mut flat: usize) -> Vec<usize> {
    let mut index = vec![0; sizes.len()];
    for (i, &n) in index.iter_mut().zip(sizes).rev() {
        (*i, flat) = (flat % n.max(1), flat / n.max(1));
    }
    index
}

/// A tensor's sizes and values, for `approx`'s comparisons (`assert_relative_eq!` and kin).
///
/// ```
/// use approx::assert_relative_eq;
/// use stridegrad_autograd::Tensor;
/// use stridegrad_testkit::compare::Approx;
/// let x = Tensor::from_slice(&[1.0f64, 2.0], [2]);
/// assert_relative_eq!(Approx::of(&x), Approx::new([2], [1.0, 2.0 + 1e-12]), max_relative = 1e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Approx {
    sizes: Vec<usize>,
    values: Vec<f64>,
}

impl Approx {
    /// Of a tensor. Panics if it cannot be read.
    #[track_caller]
    pub fn of(t: &Tensor) -> Approx {
        match t.try_to_vec_f64() {
            Ok(values) => Approx { sizes: t.sizes().to_vec(), values },
            Err(e) => e.raise(),
        }
    }

    /// Of sizes and row-major values.
    pub fn new(sizes: impl Into<Vec<usize>>, values: impl Into<Vec<f64>>) -> Approx {
        Approx { sizes: sizes.into(), values: values.into() }
    }

    fn all(&self, other: &Approx, close: impl Fn(&f64, &f64) -> bool) -> bool {
        self.sizes == other.sizes && self.values.iter().zip(&other.values).all(|(a, b)| close(a, b))
    }
}

impl approx::AbsDiffEq for Approx {
    type Epsilon = f64;
    fn default_epsilon() -> f64 {
        f64::default_epsilon()
    }
    fn abs_diff_eq(&self, other: &Approx, epsilon: f64) -> bool {
        self.all(other, |a, b| a.abs_diff_eq(b, epsilon))
    }
}

impl approx::RelativeEq for Approx {
    fn default_max_relative() -> f64 {
        f64::default_max_relative()
    }
    fn relative_eq(&self, other: &Approx, epsilon: f64, max_relative: f64) -> bool {
        self.all(other, |a, b| a.relative_eq(b, epsilon, max_relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values_and_tolerances() {
        let t = Tolerance::of(DType::F32);
        assert!(t.close(1.0 + 3e-6, 1.0) && !t.close(1.0 + 1e-5, 1.0));
        assert!(t.close(f64::NAN, f64::NAN) && t.close(f64::INFINITY, f64::INFINITY));
        assert!(
            !t.close(f64::NAN, 1.0) && !t.close(1.0, f64::NAN) && !t.close(f64::INFINITY, f64::NEG_INFINITY)
        );
        assert!(!t.close(f64::INFINITY, 1.0) && !t.close(1e300, f64::INFINITY));
        assert!(!Tolerance::of(DType::I32).close(1.0, 2.0) && Tolerance::of(DType::Bool).close(1.0, 1.0));
        assert_eq!(
            difference(&[2, 2], &[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 0.0, 4.0], t).unwrap(),
            "at [1, 0]: 3 instead of 0"
        );
        assert!(difference(&[2], &[1.0], &[1.0, 2.0], t).is_some());
    }

    #[test]
    fn approx_compares_sizes_too() {
        let x = Approx::new([2, 1], [1.0, 2.0]);
        approx::assert_abs_diff_eq!(x, Approx::new([2, 1], [1.0, 2.0]));
        approx::assert_abs_diff_ne!(x, Approx::new([1, 2], [1.0, 2.0]));
        approx::assert_relative_ne!(x, Approx::new([2, 1], [1.0, 2.1]));
    }
}
