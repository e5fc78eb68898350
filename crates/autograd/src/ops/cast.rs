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
