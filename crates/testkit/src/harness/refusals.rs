//! The checks of what must be refused.

use stridegrad_autograd::Tensor;
use stridegrad_autograd::spec::{OpSpec, Sample};
use stridegrad_core::{DType, Device, DeviceKind};

use super::{Outcome, Runner, wrong};
use crate::values::Numbers;

impl Runner<'_> {
    pub(super) fn refusals(&mut self, op: &OpSpec) {
        if self.options.device.kind() == DeviceKind::Cpu {
            for r in &op.refusals {
                self.check("refusal", r.name, DType::F32, r.name, || match (r.run)() {
                    Ok(_) => wrong!("it was not refused"),
                    Err(e) if e.kind() != r.kind => {
                        wrong!("refused as {:?} instead of {:?}: {e}", e.kind(), r.kind)
                    }
                    Err(e) if e.message().is_empty() || e.op().is_empty() => {
                        wrong!("the error says nothing: {e:?}")
                    }
                    Err(_) => Ok(()),
                });
            }
        }
        let mut numbers = Numbers::from_name(op.name);
        for sample in op.samples.iter().take(6) {
            for _ in 0..12 {
                let device = self.options.device;
                self.check("fuzz", "any", DType::F32, &sample.name, || fuzz(sample, &mut numbers, device));
            }
        }
    }
}

/// Arguments that the op was not made for: whatever comes, no panic, and no argument is written to.
fn fuzz(sample: &Sample, numbers: &mut Numbers, device: Device) -> Outcome {
    const SIZES: [&[usize]; 12] = [
        &[],
        &[0],
        &[1],
        &[5],
        &[2, 3],
        &[3, 2],
        &[2, 0, 3],
        &[0, 3, 4, 4],
        &[2, 3, 4],
        &[1, 3, 4, 4],
        &[2, 4, 5, 5],
        &[1, 2, 1, 2, 1, 2, 1, 1],
    ];
    let mut arguments = Vec::new();
    for own in &sample.inputs {
        let sizes = if numbers.below(3) == 0 { &own.sizes[..] } else { SIZES[numbers.below(SIZES.len())] };
        let dtype = DType::ALL[numbers.below(DType::ALL.len())];
        let n = sizes.iter().product::<usize>();
        if n > 4096 {
            return Ok(());
        }
        let values: Vec<f64> = (0..n).map(|_| numbers.below(7) as f64 - 2.0).collect();
        arguments.push(Tensor::try_from_slice(&values, sizes)?.try_to_dtype(dtype)?.try_to_device(device)?);
    }
    let before = arguments.iter().map(Tensor::try_to_vec_f64).collect::<Result<Vec<_>, _>>()?;
    let shapes =
        || arguments.iter().map(|t| format!("{} {:?}", t.dtype(), t.sizes())).collect::<Vec<_>>().join(", ");
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (sample.run)(&arguments)));
    let Ok(result) = run else { wrong!("panicked on {}", shapes()) };
    let after = arguments.iter().map(Tensor::try_to_vec_f64).collect::<Result<Vec<_>, _>>()?;
    if before != after || arguments.iter().any(|t| t.version() != 0) {
        wrong!("an argument was written to: {}", shapes());
    }
    if let Err(e) = result
        && (e.message().is_empty() || e.op().is_empty())
    {
        wrong!("the error for {} says nothing: {e:?}", shapes());
    }
    Ok(())
}
