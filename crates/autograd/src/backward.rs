//! `backward` and `grad`: the public face of the engine.

use stridegrad_core::{CallerScope, Error, ErrorKind, Result};

use crate::engine::{self, BackwardOptions, GradOptions};
use crate::faces::faces;
use crate::{Operand, Tensor};

faces! {
    /// Computes the gradients of this one-element tensor and adds them to [`Tensor::grad`] of every leaf it
    /// depends on. Panics if it has more elements or no graph.
    pub fn backward | try_backward(&self) -> () {
        engine::backward(&[self], None, BackwardOptions::default())
    }

    /// As [`Tensor::backward`], from a given gradient of this tensor's sizes, with options.
    pub fn backward_with | try_backward_with(&self, gradient: Option<&Tensor>, options: BackwardOptions) -> () {
        match gradient {
            Some(g) => engine::backward(&[self], Some(&[g]), options),
            None => engine::backward(&[self], None, options),
        }
    }

    /// This tensor's values summed over broadcast dims down to `sizes`, the adjoint of broadcasting.
    pub fn sum_to_size | try_sum_to_size(&self, sizes: &[usize]) -> Tensor {
        let extra = self.dim().checked_sub(sizes.len());
        let fits = extra.is_some_and(|e| sizes.iter().zip(&self.sizes()[e..]).all(|(&to, &from)| to == from || to == 1));
        let Some(extra) = extra.filter(|_| fits) else {
            return Err(Error::new(ErrorKind::Shape, "sum_to_size",
                format!("size {:?} is not expandable to size {:?}", sizes, self.sizes())));
        };
        let dims: Vec<i64> = (0..self.dim())
            .filter(|&i| i < extra || (sizes[i - extra] == 1 && self.sizes()[i] != 1))
            .map(|i| i as i64)
            .collect();
        let summed = if dims.is_empty() { self.clone() } else { self.try_sum_dims(dims.as_slice(), true)? };
        if extra == 0 { Ok(summed) } else { summed.try_view(sizes) }
    }
}

/// The gradients of `outputs` with respect to `inputs` (leaves, views or results of ops), without touching
/// [`Tensor::grad`]. For an input that the outputs do not depend on: `None` with [`BackwardOptions`], and what
/// [`GradOptions`] say with those.
///
/// ```
/// use stridegrad_autograd::{BackwardOptions, Tensor, grad};
/// let x = Tensor::from_slice(&[2.0f64], [1]).requires_grad_(true);
/// let graph = BackwardOptions { create_graph: true, ..Default::default() };
/// let y = x.mul(&x).mul(&x).sum();
/// let dx = grad(&[&y], &[&x], None, graph)?[0].clone().unwrap(); // 3 x^2
/// let ddx = grad(&[&dx.sum()], &[&x], None, graph)?[0].clone().unwrap(); // 6 x
/// assert_eq!((dx.item::<f64>(), ddx.item::<f64>()), (12.0, 12.0));
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
#[track_caller]
pub fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    grads: Option<&[&Tensor]>,
    options: impl Into<GradOptions>,
) -> Result<Vec<Option<Tensor>>> {
    let caller = std::panic::Location::caller();
    let _scope = CallerScope::enter(caller);
    engine::grad(outputs, inputs, grads, options.into()).map_err(|e| e.at(caller))
}

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<R: Into<Operand>> std::ops::$trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor { Tensor::$method(self, rhs) }
        }
        impl<R: Into<Operand>> std::ops::$trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor { Tensor::$method(&self, rhs) }
        }
        operators!(@scalar $trait $method f64 f32 i64 i32);
    )*};
    (@scalar $trait:ident $method:ident $($t:ty)*) => {$(
        impl std::ops::$trait<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: &Tensor) -> Tensor {
                match Operand::from(self).$method(rhs) { Ok(v) => v, Err(e) => e.raise() }
            }
        }
        impl std::ops::$trait<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, rhs: Tensor) -> Tensor {
                match Operand::from(self).$method(&rhs) { Ok(v) => v, Err(e) => e.raise() }
            }
        }
    )*};
}
operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

// A number on the left: the number becomes a 0-dim operand that promotes as a number does.
impl Operand {
    fn add(self, rhs: &Tensor) -> Result<Tensor> {
        rhs.try_add(self)
    }
    fn mul(self, rhs: &Tensor) -> Result<Tensor> {
        rhs.try_mul(self)
    }
    fn sub(self, rhs: &Tensor) -> Result<Tensor> {
        crate::ops::sub::sub(&self, &rhs.into())
    }
    fn div(self, rhs: &Tensor) -> Result<Tensor> {
        crate::ops::div::div(&self, &rhs.into())
    }
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl std::ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}

impl<R: Into<Operand>> std::ops::AddAssign<R> for Tensor {
    #[track_caller]
    fn add_assign(&mut self, rhs: R) {
        self.add_(rhs);
    }
}

impl<R: Into<Operand>> std::ops::MulAssign<R> for Tensor {
    #[track_caller]
    fn mul_assign(&mut self, rhs: R) {
        self.mul_(rhs);
    }
}

impl<R: Into<Operand>> std::ops::SubAssign<R> for Tensor {
    #[track_caller]
    fn sub_assign(&mut self, rhs: R) {
        self.sub_(rhs);
    }
}

impl<R: Into<Operand>> std::ops::DivAssign<R> for Tensor {
    #[track_caller]
    fn div_assign(&mut self, rhs: R) {
        self.div_(rhs);
    }
}
