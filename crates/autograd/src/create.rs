//! Making tensors from numbers.

use stridegrad_core::{
    Array, DType, Device, Element, Error, ErrorKind, IntoDims, Layout, Result, Scalar, exec,
};

use crate::Tensor;
use crate::faces::{faces, static_faces};

/// Sizes as given by the user: non-negative, of a supported rank.
pub(crate) fn sizes_arg(op: &'static str, sizes: impl IntoDims) -> Result<Vec<usize>> {
    sizes
        .into_dims()
        .into_iter()
        .map(|s| {
            usize::try_from(s)
                .map_err(|_| Error::new(ErrorKind::Shape, op, format!("negative dimension {s} in the sizes")))
        })
        .collect()
}

/// An empty list with room for `n` elements.
pub(crate) fn reserved<T>(op: &'static str, n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n).map_err(|e| {
        Error::new(ErrorKind::OutOfMemory, op, format!("{n} elements do not fit in memory")).because(e)
    })?;
    Ok(v)
}

fn default_device() -> Device {
    stridegrad_cpu::register();
    Device::CPU
}

fn full(
    op: &'static str,
    sizes: impl IntoDims,
    value: Scalar,
    dtype: DType,
    device: Device,
) -> Result<Tensor> {
    let layout = Layout::contiguous(&sizes_arg(op, sizes)?)?;
    // Zeroed memory is 0.0, not -0.0.
    let zeros = matches!(value, Scalar::Float(v) if v.to_bits() == 0);
    Ok(Tensor::from_array(if zeros {
        Array::zeros(layout, dtype, device)?
    } else {
        exec::full(layout, value, dtype, device)?
    }))
}

static_faces! {
    /// Zeros, `f32`.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3]).strides(), [3, 1]);
    /// ```
    pub fn zeros | try_zeros(sizes: impl IntoDims) -> Tensor {
        full("zeros", sizes, 0.0.into(), DType::F32, default_device())
    }

    /// Ones, `f32`.
    pub fn ones | try_ones(sizes: impl IntoDims) -> Tensor {
        full("ones", sizes, 1.0.into(), DType::F32, default_device())
    }

    /// `value` everywhere: `f32` for a float, `i64` for an integer, `bool` for a bool.
    pub fn full | try_full(sizes: impl IntoDims, value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        full("full", sizes, value, value.default_dtype(), default_device())
    }

    /// `value` everywhere, of a given dtype, on a given device.
    pub fn full_on | try_full_on(sizes: impl IntoDims, value: impl Into<Scalar>, dtype: DType, device: Device) -> Tensor {
        default_device();
        full("full", sizes, value.into(), dtype, device)
    }

    /// A 0-dim tensor of a number: `f32`, `i64` or `bool`.
    pub fn scalar | try_scalar(value: impl Into<Scalar>) -> Tensor {
        let value = value.into();
        full("scalar", (), value, value.default_dtype(), default_device())
    }

    /// The values of a slice in row-major order, in the slice's dtype. Panics if they do not fill the sizes.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2]);
    /// assert_eq!(x.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    /// ```
    pub fn from_slice | try_from_slice(data: &[impl Element], sizes: impl IntoDims) -> Tensor {
        let sizes = sizes_arg("from_slice", sizes)?;
        Ok(Tensor::from_array(Array::from_slice(data, &sizes, default_device())?))
    }

    /// Little-endian bytes of row-major values of `dtype`.
    pub fn from_le_bytes | try_from_le_bytes(bytes: &[u8], dtype: DType, sizes: impl IntoDims) -> Tensor {
        let sizes = sizes_arg("from_le_bytes", sizes)?;
        Ok(Tensor::from_array(Array::from_le_bytes(bytes, dtype, &sizes, default_device())?))
    }

    /// `0, 1, ..., ceil(end) - 1`: `f32` for a float, `i64` for an integer.
    pub fn arange | try_arange(end: impl Into<Scalar>) -> Tensor {
        let end = end.into();
        let start = if let Scalar::Float(_) = end { Scalar::Float(0.0) } else { Scalar::Int(0) };
        let step = if let Scalar::Float(_) = end { Scalar::Float(1.0) } else { Scalar::Int(1) };
        arange(start, end, step)
    }

    /// `start, start + step, ...` up to but without `end`. `f32` if any argument is a float, else `i64`.
    ///
    /// Panics if `step` is zero or points away from `end`.
    pub fn arange_step | try_arange_step(start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) -> Tensor {
        arange(start.into(), end.into(), step.into())
    }

    /// `steps` evenly spaced values from `start` to `end`, both included, `f32`.
    pub fn linspace | try_linspace(start: f64, end: f64, steps: usize) -> Tensor {
        let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
        // From both ends, as PyTorch does: the last value is `end` itself.
        let at = |i: usize| if i < steps / 2 || steps == 1 { start + step * i as f64 } else { end - step * (steps - 1 - i) as f64 };
        let mut values: Vec<f32> = reserved("linspace", steps)?;
        values.extend((0..steps).map(|i| at(i) as f32));
        Tensor::try_from_slice(&values, [steps])
    }

    /// The `n` x `m` matrix with ones on its diagonal, `f32`.
    pub fn eye | try_eye(n: usize, m: usize) -> Tensor {
        let out = full("eye", [n, m], 0.0.into(), DType::F32, default_device())?;
        exec::fill(&out.array().with_layout(out.layout().diagonal(0, 0, 1)?)?, 1.0.into())?;
        // The version starts at 0 as for any new tensor: read the values back through a fresh storage.
        Ok(Tensor::from_array(exec::copy_to(out.array(), *out.layout(), DType::F32)?))
    }
}

fn arange(start: Scalar, end: Scalar, step: Scalar) -> Result<Tensor> {
    let err = |m: String| Err(Error::new(ErrorKind::Argument, "arange", m));
    if let (Scalar::Int(a), Scalar::Int(b), Scalar::Int(s)) = (start, end, step) {
        if s == 0 || (b as i128 - a as i128).signum() * i128::from(s.signum()) < 0 {
            return err(format!("step {s} does not lead from {a} to {b}"));
        }
        let n = (b as i128 - a as i128).unsigned_abs().div_ceil(s.unsigned_abs() as u128);
        let n = usize::try_from(n).ok().filter(|&n| n <= isize::MAX as usize / 8);
        let Some(n) = n else { return err(format!("{a}..{b} by {s} has too many elements")) };
        let mut v: Vec<i64> = reserved("arange", n)?;
        v.extend((0..n).map(|i| a.wrapping_add(s.wrapping_mul(i as i64))));
        return Tensor::try_from_slice(&v, [n]);
    }
    let (a, b, s) = (start.to_f64(), end.to_f64(), step.to_f64());
    let n = ((b - a) / s).ceil();
    if s == 0.0 || !a.is_finite() || !b.is_finite() || n.is_nan() || (b - a) * s < 0.0 {
        return err(format!("step {s} does not lead from {a} to {b}"));
    }
    if n > isize::MAX as f64 / 8.0 {
        return err(format!("{a}..{b} by {s} has too many elements"));
    }
    let mut v: Vec<f32> = reserved("arange", n as usize)?;
    v.extend((0..n as usize).map(|i| (a + s * i as f64) as f32));
    Tensor::try_from_slice(&v, [v.len()])
}

faces! {
    /// Zeros of this tensor's sizes, dtype and device, with its strides if they are dense, else in their order.
    pub fn zeros_like | try_zeros_like(&self) -> Tensor {
        Ok(Tensor::from_array(Array::zeros(self.layout().dense_like(), self.dtype(), self.device())?))
    }

    /// Ones of this tensor's sizes, dtype, device and stride order.
    pub fn ones_like | try_ones_like(&self) -> Tensor {
        self.try_full_like(1.0)
    }

    /// `value` everywhere, of this tensor's sizes, dtype, device and stride order.
    pub fn full_like | try_full_like(&self, value: impl Into<Scalar>) -> Tensor {
        Ok(Tensor::from_array(exec::full(self.layout().dense_like(), value.into(), self.dtype(), self.device())?))
    }
}
