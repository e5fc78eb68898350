//! Conversion to another dtype or device.

use stridegrad_core::{DType, Device, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::Recorder;

faces! {
    /// The values converted to `dtype`; the tensor itself if it has that dtype already. Strides are kept if they
    /// are dense. Floats convert to integers as Rust's `as` does (saturating, NaN to 0); integers wrap.
    pub fn to_dtype | try_to_dtype(&self, dtype: DType) -> Tensor {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let rec = Recorder::new("to_dtype", &[self]);
        let from = self.dtype();
        let out = exec::copy_to(self.array(), self.layout().dense_like(), dtype)?;
        rec.finish(out, move |_, g| Ok(vec![Some(g.try_to_dtype(from)?)]))
    }

    /// The values on `device`; the tensor itself if it is there already.
    pub fn to_device | try_to_device(&self, device: Device) -> Tensor {
        if device == self.device() {
            return Ok(self.clone());
        }
        let rec = Recorder::new("to_device", &[self]);
        let from = self.device();
        let out = exec::to_device(self.array(), device)?;
        rec.finish(out, move |_, g| Ok(vec![Some(g.try_to_device(from)?)]))
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let sample = |sizes: &[usize], to: DType, f: fn(f64) -> f64| {
        let s = Sample::new(
            format!("{sizes:?} to {to}"),
            vec![Input::new(sizes, Domain::Any)],
            move |t| t[0].try_to_dtype(to),
            move |r| Ref::new(&r[0].sizes, r[0].data.iter().map(|&v| f(v)).collect()),
        )
        .numbers()
        .may_alias()
        .result(to);
        // Differences of less than an f64 are rounding.
        if to == DType::F64 { s } else { s.no_grad() }
    };
    let mut all = Vec::new();
    let shapes: [&[usize]; 5] = [&[2, 3, 4, 5], &[3, 4], &[], &[2, 0, 3], &[131, 1031]];
    for sizes in shapes {
        for to in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let s = sample(sizes, to, |v| v);
            all.push(if sizes.len() == 2 && sizes[0] > 100 { s.no_grad() } else { s });
        }
        for to in [DType::I64, DType::I32, DType::I16, DType::I8] {
            all.push(sample(sizes, to, f64::trunc));
        }
        all.push(sample(sizes, DType::Bool, |v| f64::from(v != 0.0)));
    }
    all.push(
        Sample::new(
            "to the device it is on",
            vec![Input::new(&[3, 4], Domain::Any)],
            |t| t[0].try_to_device(t[0].device()),
            |r| r[0].clone(),
        )
        .numbers()
        .may_alias(),
    );
    OpSpec::new("cast", || all)
}
