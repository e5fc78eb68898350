//! One value where a mask holds.

use stridegrad_core::{DType, Error, ErrorKind, Result, exec};

use super::elementwise::{device_of, promoted};
use super::where_::select;
use crate::faces::faces;
use crate::inplace::in_place;
use crate::{Operand, Tensor};

stridegrad_cpu::map_kernel! {
    static MASKED_FILL("masked_fill_") = |[x, m, v], []| E::select(m.ne(E::lit(0.0)), v, x);
}

/// Refuses a value with dims, or one that the tensor's dtype cannot take.
fn check(op: &'static str, x: &Tensor, value: &Operand) -> Result<()> {
    if let Operand::Tensor(t) = value
        && t.dim() != 0
    {
        return Err(Error::new(
            ErrorKind::Shape,
            op,
            format!("the value must be a number or a 0-dim tensor, but has sizes {:?}", t.sizes()),
        )
        .hint("use where_ to choose between two tensors"));
    }
    let dtype = promoted(&[&x.into(), value]);
    if !dtype.can_cast(x.dtype()) {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("a value that makes {dtype} cannot be written into a tensor of {}", x.dtype()),
        )
        .hint("convert the tensor with to_dtype() first"));
    }
    Ok(())
}

faces! {
    /// This tensor with `value` (a number or a 0-dim tensor) where `mask` holds. Tensor and mask are broadcast; the
    /// dtype is the tensor's.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
    /// assert_eq!(x.masked_fill(&x.gt(1.5), 0.0).to_vec::<f32>(), [1.0, 0.0, 0.0]);
    /// ```
    pub fn masked_fill | try_masked_fill(&self, mask: &Tensor, value: impl Into<Operand>) -> Tensor {
        let value = value.into();
        check("masked_fill", self, &value)?;
        select("masked_fill", mask, &value, &self.into(), self.dtype())
    }

    /// Writes `value` (a number or a 0-dim tensor) where `mask` holds, which is broadcast to this tensor.
    pub fn masked_fill_ | try_masked_fill_(&self, mask: &Tensor, value: impl Into<Operand>) -> Tensor {
        let value = value.into();
        check("masked_fill_", self, &value)?;
        if mask.dtype() != DType::Bool {
            return Err(Error::new(ErrorKind::DType, "masked_fill_", format!("expected a mask of bools, but got {}", mask.dtype()))
                .hint("make one with a comparison, ne(0) for instance"));
        }
        let value = value.resolve(self.dtype(), device_of(&[&self.into()]))?;
        in_place("masked_fill_", self, &[&value],
            |rec| { rec.save_extra(mask.array()); Ok(()) },
            |out| exec::map_into(&MASKED_FILL, self.dtype(), &[], out, &[out, mask.array(), value.array()]),
            |ctx, g| {
                let (mask, zero) = (ctx.extra(0)?, Operand::from(0.0));
                Ok(vec![
                    Some(select("masked_fill", &mask, &zero, &g.into(), g.dtype())?),
                    match ctx.needs(1) {
                        true => ctx.reduce_to(1, select("masked_fill", &mask, &g.into(), &zero, g.dtype())?)?,
                        false => None,
                    },
                ])
            })?;
        Ok(self.clone())
    }
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use stridegrad_core::Layout;

    use crate::spec::*;
    let shapes: [(&[usize], &[usize]); 5] =
        [(&[2, 3, 4, 5], &[2, 3, 4, 5]), (&[2, 3, 4], &[3, 1]), (&[], &[]), (&[2, 0, 3], &[3]), (&[7], &[7])];
    OpSpec::new("masked_fill", || {
        let mut all: Vec<Sample> = shapes
            .into_iter()
            .map(|(x, m)| {
                Sample::new(
                    format!("{x:?} {m:?}"),
                    vec![Input::new(x, Domain::Any), Input::new(m, Domain::Mask)],
                    |t| t[0].try_masked_fill(&t[1], 3),
                    |r| {
                        Ref::from_fn(
                            &r[0].sizes,
                            |i| if r[1].broadcast_at(i) != 0.0 { 3.0 } else { r[0].at(i) },
                        )
                    },
                )
                .in_place(|x, others| x.try_masked_fill_(&others[0], 3).map(drop))
                .numbers()
            })
            .collect();
        all.push(Sample::new(
            "a 0-dim value",
            vec![
                Input::new(&[3, 4], Domain::Any),
                Input::new(&[4], Domain::Mask),
                Input::new(&[], Domain::Any),
            ],
            |t| t[0].try_masked_fill(&t[1], &t[2]),
            |r| {
                Ref::from_fn(
                    &r[0].sizes,
                    |i| if r[1].broadcast_at(i) != 0.0 { r[2].at(&[]) } else { r[0].at(i) },
                )
            },
        ));
        // The mask comes first, as `where_` has it.
        let layout =
            |l: &[Layout], sizes: &[usize]| Layout::result_of(&[&l[1], &Layout::scalar(), &l[0]], sizes);
        all.into_iter().map(|s| s.layout_by(layout)).collect()
    })
    .refusal("a float into integers", ErrorKind::DType, || {
        Tensor::try_full([2], 1)?.try_masked_fill(&Tensor::try_full([2], true)?, 0.5)
    })
    .refusal("a value with dims", ErrorKind::Shape, || {
        Tensor::try_ones([2])?.try_masked_fill(&Tensor::try_full([2], true)?, &Tensor::try_ones([1])?)
    })
}
