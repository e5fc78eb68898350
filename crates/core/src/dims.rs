//! Short inline lists of integers, and everything users may pass where one is wanted.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// The largest rank a tensor may have.
pub const MAX_RANK: usize = 8;

/// An inline list of at most [`MAX_RANK`] values: sizes, strides, dims.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dims<T> {
    len: u8,
    data: [T; MAX_RANK],
}

impl<T: Copy + Default> Dims<T> {
    /// The empty list.
    #[inline]
    pub fn new() -> Self {
        Dims { len: 0, data: [T::default(); MAX_RANK] }
    }

    /// A list of `len` times `value`. `None` beyond [`MAX_RANK`].
    #[inline]
    pub fn filled(value: T, len: usize) -> Option<Self> {
        let mut d = Dims::new();
        d.data.get_mut(..len)?.fill(value);
        d.len = len as u8;
        Some(d)
    }

    /// The list of a slice. `None` beyond [`MAX_RANK`].
    #[inline]
    pub fn from_slice(s: &[T]) -> Option<Self> {
        let mut d = Dims::new();
        d.data.get_mut(..s.len())?.copy_from_slice(s);
        d.len = s.len() as u8;
        Some(d)
    }

    /// Appends; `None` when full.
    #[inline]
    pub fn push(&mut self, v: T) -> Option<()> {
        *self.data.get_mut(self.len as usize)? = v;
        self.len += 1;
        Some(())
    }

    /// Inserts at `i <= len`; `None` when full.
    pub fn insert(&mut self, i: usize, v: T) -> Option<()> {
        if self.len as usize == MAX_RANK {
            return None;
        }
        self.data.copy_within(i..self.len as usize, i + 1);
        self.data[i] = v;
        self.len += 1;
        Some(())
    }

    /// Removes and returns the value at `i < len`.
    pub fn remove(&mut self, i: usize) -> T {
        let v = self[i];
        self.data.copy_within(i + 1..self.len as usize, i);
        self.len -= 1;
        // Kept at the default, so that derived equality and hashing see the list alone.
        self.data[self.len as usize] = T::default();
        v
    }
}

impl<T: Copy + Default> Default for Dims<T> {
    fn default() -> Self {
        Dims::new()
    }
}

impl<T> Deref for Dims<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.data[..self.len as usize]
    }
}

impl<T> DerefMut for Dims<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[..self.len as usize]
    }
}

impl<T: fmt::Debug> fmt::Debug for Dims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Anything that names sizes or dims: `[2, 3]`, `[2usize, -1]`, `&[i64]`, `Vec<usize>`, `(2, 3)`, one number.
///
/// ```
/// use stridegrad_core::IntoDims;
/// assert_eq!([2, -1].into_dims(), vec![2, -1]);
/// assert_eq!(5.into_dims(), vec![5]);
/// ```
pub trait IntoDims {
    /// The numbers, as `i64`; values beyond `i64` saturate.
    fn into_dims(self) -> Vec<i64>;
}

macro_rules! into_dims {
    ($($t:ty),*) => {$(
        impl IntoDims for $t {
            fn into_dims(self) -> Vec<i64> { vec![i64::try_from(self).unwrap_or(i64::MAX)] }
        }
        impl<const N: usize> IntoDims for [$t; N] {
            fn into_dims(self) -> Vec<i64> { self.as_slice().into_dims() }
        }
        impl<const N: usize> IntoDims for &[$t; N] {
            fn into_dims(self) -> Vec<i64> { self.as_slice().into_dims() }
        }
        impl IntoDims for &[$t] {
            fn into_dims(self) -> Vec<i64> {
                self.iter().map(|&v| i64::try_from(v).unwrap_or(i64::MAX)).collect()
            }
        }
        impl IntoDims for Vec<$t> {
            fn into_dims(self) -> Vec<i64> { self.as_slice().into_dims() }
        }
        impl IntoDims for &Vec<$t> {
            fn into_dims(self) -> Vec<i64> { self.as_slice().into_dims() }
        }
    )*};
}
into_dims!(i32, i64, isize, usize, u32);

impl IntoDims for () {
    fn into_dims(self) -> Vec<i64> {
        Vec::new()
    }
}

impl IntoDims for Dims<usize> {
    fn into_dims(self) -> Vec<i64> {
        (*self).into_dims()
    }
}

impl IntoDims for &Dims<usize> {
    fn into_dims(self) -> Vec<i64> {
        (**self).into_dims()
    }
}
