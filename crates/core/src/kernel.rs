//! Descriptions of kernels: what an op hands a backend.
//!
//! A description carries the formula, and beside it the CPU's contiguous slice loops made from the same source
//! by `stridegrad-cpu`'s macros. A backend uses what suits it.

use crate::{Formula, Int};

/// A loop over contiguous slices of equal length: `out[i] = f(ins[0][i], ...)`.
///
/// Unsafe to call because it may need an instruction set that only the caller has checked for; otherwise its
/// body is safe code.
pub type MapFn<T> = unsafe fn(out: &mut [T], ins: &[&[T]], params: &[T]);

/// `acc[i] = f(acc[i], x[i])`.
pub type RowsFn<T> = unsafe fn(acc: &mut [T], x: &[T]);

/// Folds a slice into `start`, in an order that depends on its length alone.
pub type FoldFn<T> = unsafe fn(start: T, x: &[T]) -> T;

/// One function compiled for each instruction set.
#[derive(Clone, Copy, Debug)]
pub struct PerIsa<F> {
    /// For any machine of the target architecture.
    pub portable: F,
    /// Needs AVX2 and FMA.
    pub avx2: F,
    /// Needs AVX-512 F, VL, BW and DQ.
    pub avx512: F,
}

/// An elementwise op: any number of operands and scalar parameters, one result.
#[derive(Debug)]
pub struct MapKernel {
    /// The op's name.
    pub name: &'static str,
    /// How many operands.
    pub inputs: usize,
    /// How many scalar parameters.
    pub params: usize,
    /// The `f32` loops, which also serve `f16` and `bf16`.
    pub f32: PerIsa<MapFn<f32>>,
    /// The `f64` loops.
    pub f64: PerIsa<MapFn<f64>>,
    /// The integer loop, which serves every integer dtype and `bool`.
    pub int: MapFn<Int>,
    /// The formula, for other interpreters.
    pub formula: fn() -> Formula,
}

/// A reduction: an associative combination with an identity.
#[derive(Debug)]
pub struct ReduceKernel {
    /// The op's name.
    pub name: &'static str,
    /// `combine(identity, x) = x`, for floats.
    pub identity: f64,
    /// The identity for integers.
    pub identity_int: i64,
    /// Elementwise combination of rows, `f32`.
    pub rows_f32: PerIsa<RowsFn<f32>>,
    /// Elementwise combination of rows, `f64`.
    pub rows_f64: PerIsa<RowsFn<f64>>,
    /// Elementwise combination of rows, integers.
    pub rows_int: RowsFn<Int>,
    /// Folding a row, `f32`.
    pub fold_f32: PerIsa<FoldFn<f32>>,
    /// Folding a row, `f64`.
    pub fold_f64: PerIsa<FoldFn<f64>>,
    /// Folding a row, integers.
    pub fold_int: FoldFn<Int>,
    /// The combination of two values, for other interpreters.
    pub formula: fn() -> Formula,
}

/// Which end an index reduction looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The first of the largest; a NaN counts as larger than anything.
    Max,
    /// The first of the smallest; a NaN counts as smaller than anything.
    Min,
}

/// A running reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scan {
    /// Cumulative sum.
    Sum,
    /// Cumulative product.
    Prod,
}

/// Stride, padding, dilation and groups of a two-dimensional convolution, as (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv2dParams {
    /// Step of the window.
    pub stride: [usize; 2],
    /// Zeros before and after, for each of height and width.
    pub padding: [[usize; 2]; 2],
    /// Step between the window's taps.
    pub dilation: [usize; 2],
    /// Independent groups of channels.
    pub groups: usize,
}

/// Which of a convolution's three products is wanted, and what its operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvPass {
    /// `y` from `x`, `weight` and, if there is a third operand, `bias`.
    Forward,
    /// The gradient of `x` from that of `y` and `weight`.
    InputGrad,
    /// The gradient of `weight` from that of `y` and `x`.
    WeightGrad,
}

/// Window, stride, padding and dilation of two-dimensional pooling, as (height, width).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool2dParams {
    /// The window.
    pub kernel: [usize; 2],
    /// Step of the window.
    pub stride: [usize; 2],
    /// Padding on both sides: minus infinity for max, zeros for avg.
    pub padding: [usize; 2],
    /// Step between the window's taps (max only).
    pub dilation: [usize; 2],
    /// Whether padding counts in the divisor (avg only).
    pub count_include_pad: bool,
    /// A divisor to use instead of the window's count (avg only).
    pub divisor: Option<i64>,
}

/// Which pooling pass, and what its operands are. Tensors are (N, C, H, W).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolPass {
    /// Results: values and, as `i64`, positions within the H x W plane. Operand: `x`.
    Max,
    /// Result: the gradient of `x`. Operands: the gradient of `y`, positions.
    MaxGrad,
    /// Result: averages. Operand: `x`.
    Avg,
    /// Result: the gradient of `x`. Operand: the gradient of `y`.
    AvgGrad,
    /// Result: averages over `[floor(i L / o), ceil((i + 1) L / o))`. Operand: `x`. Parameters are not looked at.
    AdaptiveAvg,
    /// Result: the gradient of `x`. Operand: the gradient of `y`.
    AdaptiveAvgGrad,
}

/// An indexing class; `dim` is the dimension indexed, `index` holds `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexPass {
    /// `out[.., i, ..] = x[.., index[i], ..]`. Operands: `x`, `index` (1-D).
    Select,
    /// `out[.., i, ..] = x[.., index[.., i, ..], ..]`. Operands: `x`, `index` of the result's sizes.
    Gather,
    /// `out[.., index[i], ..] += x[.., i, ..]`, in the order of `i`. Operands: `x`, `index` (1-D).
    Add,
    /// `out[.., index[.., i, ..], ..] += x[.., i, ..]`. Operands: `x`, `index` of its sizes.
    ScatterAdd,
    /// `out[.., index[.., i, ..], ..] = x[.., i, ..]`, the last write wins. Operands: `x`, `index`.
    Scatter,
}

/// What random numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Uniform in [low, high).
    Uniform {
        /// Lower end, included.
        low: f64,
        /// Upper end, excluded.
        high: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Integers in [low, high).
    Integer {
        /// Lower end, included.
        low: i64,
        /// Upper end, excluded.
        high: i64,
    },
    /// 1 with probability `p`, else 0.
    Bernoulli {
        /// The probability.
        p: f64,
    },
}
