//! Tensors from Rust literals and arrays, and back.

use stridegrad_core::{DType, Element, Error, Result};

use crate::Tensor;

/// Nested Rust arrays of numbers or bools: what a [`Tensor`] can be made [`From`].
pub trait Nested {
    /// The innermost type.
    type Element: Element;
    /// Appends the sizes, outermost first.
    fn sizes(sizes: &mut Vec<usize>);
    /// Appends the values, row-major.
    fn values(self, values: &mut Vec<Self::Element>);
}

macro_rules! nested {
    ($($t:ty),*) => {$(
        impl Nested for $t {
            type Element = $t;
            fn sizes(_: &mut Vec<usize>) {}
            fn values(self, values: &mut Vec<$t>) { values.push(self) }
        }
    )*};
}
nested!(f64, f32, half::f16, half::bf16, i64, i32, i16, i8, u8, bool);

impl<T: Nested, const N: usize> Nested for [T; N] {
    type Element = T::Element;
    fn sizes(sizes: &mut Vec<usize>) {
        sizes.push(N);
        T::sizes(sizes);
    }
    fn values(self, values: &mut Vec<T::Element>) {
        self.into_iter().for_each(|v| v.values(values));
    }
}

/// A tensor of an array's shape and dtype, `f64` included. Panics if memory cannot be had or the nesting is deeper than
/// the largest rank.
impl<T: Nested, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(array: [T; N]) -> Tensor {
        let (mut sizes, mut values) = (Vec::new(), Vec::new());
        <[T; N]>::sizes(&mut sizes);
        array.values(&mut values);
        Tensor::from_slice(&values, &sizes)
    }
}

/// A 1-dim tensor of a vector's values and dtype. Panics if memory cannot be had.
impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(values: Vec<T>) -> Tensor {
        Tensor::from_slice(&values, [values.len()])
    }
}

/// A 1-dim tensor of a slice's values and dtype. Panics if memory cannot be had.
impl<T: Element> From<&[T]> for Tensor {
    #[track_caller]
    fn from(values: &[T]) -> Tensor {
        Tensor::from_slice(values, [values.len()])
    }
}

/// The values in row-major order; refused if `T` is not the tensor's dtype.
impl<T: Element> TryFrom<&Tensor> for Vec<T> {
    type Error = Error;
    fn try_from(t: &Tensor) -> Result<Vec<T>> {
        t.try_to_vec()
    }
}

/// What [`tensor!`](crate::tensor) makes of an array: numbers without a suffix get the default dtype of their kind.
#[doc(hidden)]
#[track_caller]
pub fn of_literal<T: Nested, const N: usize>(array: [T; N]) -> Tensor {
    let t = Tensor::from(array);
    match t.dtype() {
        DType::F64 => t.to_dtype(DType::F32),
        DType::I32 => t.to_dtype(DType::I64),
        _ => t,
    }
}

/// A tensor of the values written out: `tensor![1.0, 2.0]`, `tensor![[1, 2], [3, 4]]`.
///
/// Floating numbers give `f32`, integers `i64`, bools `bool`, as in PyTorch. Numbers of another type (`1u8`, or a variable)
/// keep theirs, but for `f64` and `i32`, which are what numbers without a suffix are: for those, use
/// `Tensor::from([..])`, which keeps every dtype. The rows of a ragged array do not compile.
///
/// ```
/// use stridegrad_autograd::{Tensor, tensor};
/// use stridegrad_core::DType;
/// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// assert_eq!((x.sizes(), x.dtype()), (&[2, 3][..], DType::F32));
/// assert_eq!(tensor![1, 2].dtype(), DType::I64);
/// assert_eq!(Tensor::from([1.0, 2.0]).dtype(), DType::F64);
/// ```
#[macro_export]
macro_rules! tensor {
    () => { $crate::literal::of_literal::<f32, 0>([]) };
    ($($all:tt)+) => { $crate::literal::of_literal([$($all)+]) };
}
