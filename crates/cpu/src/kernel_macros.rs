//! Macros that turn one formula into a kernel description.
//!
//! A formula is written once, generic over [`Expr`](stridegrad_core::Expr). The macros make of it the slice loops for
//! `f32` and `f64`, each compiled for portable code, AVX2 and AVX-512, the integer loop, and the recorder for other
//! interpreters. The loops are safe code: `#[target_feature]` functions over slices, unsafe only to call, so that
//! a crate with `#![forbid(unsafe_code)]` can make kernels.

#[doc(hidden)]
pub use stridegrad_core::{Expr, Formula, Int, Math, Sym, kernel};

/// Declares a [`MapKernel`](stridegrad_core::kernel::MapKernel): an elementwise op.
///
/// The body sees its operands, its scalar parameters, the number type `E`, and the methods of `Expr` and `Math`.
///
/// ```
/// stridegrad_cpu::map_kernel! {
///     /// `x` where it is positive, else `slope * x`.
///     pub static LEAKY_RELU("leaky_relu") = |[x], [slope]| E::select(x.gt(E::lit(0.0)), x, slope * x);
/// }
/// assert_eq!((LEAKY_RELU.inputs, LEAKY_RELU.params), (1, 1));
/// assert_eq!((LEAKY_RELU.formula)().eval(&[-2.0], &[0.25]), -0.5);
/// ```
#[macro_export]
macro_rules! map_kernel {
    ($(
        $(#[$meta:meta])*
        $vis:vis static $name:ident($text:expr) = |[$($x:ident),* $(,)?], [$($p:ident),* $(,)?]| $body:expr;
    )+) => {$(
        $(#[$meta])*
        $vis static $name: $crate::kernel_macros::kernel::MapKernel = {
            #[allow(unused_imports)]
            use $crate::kernel_macros::{Expr as _, Math as _};

            const INPUTS: usize = <[&str]>::len(&[$(stringify!($x)),*]);
            const PARAMS: usize = <[&str]>::len(&[$(stringify!($p)),*]);

            #[inline(always)]
            #[allow(non_snake_case, clippy::redundant_closure_call)]
            fn formula<E: $crate::kernel_macros::Expr>([$($x),*]: [E; INPUTS], [$($p),*]: [E; PARAMS]) -> E {
                $body
            }
            #[inline(always)]
            #[allow(non_snake_case)]
            fn run<E: $crate::kernel_macros::Expr>(out: &mut [E], ins: &[&[E]], params: &[E]) {
                let n = out.len();
                // The wrong number of operands is a bug of the caller: nothing is written.
                let (&[$($x),*], &[$($p),*]) = (ins, params) else { return };
                $(let $x = &$x[..n];)*
                for i in 0..n {
                    out[i] = formula::<E>([$($x[i]),*], [$($p),*]);
                }
            }

            $crate::kernel_macros::kernel::MapKernel {
                name: $text,
                inputs: INPUTS,
                params: PARAMS,
                f32: $crate::__per_isa!(run::<f32>, (out: &mut [f32], ins: &[&[f32]], params: &[f32])),
                f64: $crate::__per_isa!(run::<f64>, (out: &mut [f64], ins: &[&[f64]], params: &[f64])),
                int: run::<$crate::kernel_macros::Int>,
                formula: || {
                    $crate::kernel_macros::Formula::record(INPUTS, PARAMS, |ins, params| {
                        let (Ok(ins), Ok(params)) = (ins.try_into(), params.try_into()) else {
                            return <$crate::kernel_macros::Sym as $crate::kernel_macros::Expr>::lit(0.0);
                        };
                        formula::<$crate::kernel_macros::Sym>(ins, params)
                    })
                },
            }
        };
    )+};
}

/// Declares a [`ReduceKernel`](stridegrad_core::kernel::ReduceKernel): an associative, commutative combination with
/// its identity for floats and for integers.
///
/// ```
/// stridegrad_cpu::reduce_kernel! {
///     /// The sum.
///     pub static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
///     /// The largest; NaN if there is one.
///     pub static MAX("amax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
/// }
/// assert_eq!((SUM.formula)().eval(&[2.0, 3.0], &[]), 5.0);
/// ```
#[macro_export]
macro_rules! reduce_kernel {
    ($(
        $(#[$meta:meta])*
        $vis:vis static $name:ident($text:expr, identity: $identity:expr, int: $int:expr $(,)?)
            = |$a:ident, $b:ident| $body:expr;
    )+) => {$(
        $(#[$meta])*
        $vis static $name: $crate::kernel_macros::kernel::ReduceKernel = {
            #[allow(unused_imports)]
            use $crate::kernel_macros::{Expr as _, Math as _};

            #[inline(always)]
            fn formula<E: $crate::kernel_macros::Expr>($a: E, $b: E) -> E {
                $body
            }
            #[inline(always)]
            fn rows<E: $crate::kernel_macros::Expr>(acc: &mut [E], x: &[E]) {
                let n = acc.len();
                let x = &x[..n];
                for i in 0..n {
                    acc[i] = formula::<E>(acc[i], x[i]);
                }
            }
            // The lanes are those of eight AVX2 or four AVX-512 registers.
            #[inline(always)]
            fn fold_f32(start: f32, x: &[f32]) -> f32 {
                $crate::kernel_macros::fold::<f32, 64>($identity as f32, start, x, formula::<f32>)
            }
            #[inline(always)]
            fn fold_f64(start: f64, x: &[f64]) -> f64 {
                $crate::kernel_macros::fold::<f64, 32>($identity, start, x, formula::<f64>)
            }
            fn fold_int(start: $crate::kernel_macros::Int, x: &[$crate::kernel_macros::Int]) -> $crate::kernel_macros::Int {
                x.iter().fold(start, |a, &b| formula(a, b))
            }

            $crate::kernel_macros::kernel::ReduceKernel {
                name: $text,
                identity: $identity,
                identity_int: $int,
                rows_f32: $crate::__per_isa!(rows::<f32>, (acc: &mut [f32], x: &[f32])),
                rows_f64: $crate::__per_isa!(rows::<f64>, (acc: &mut [f64], x: &[f64])),
                rows_int: rows::<$crate::kernel_macros::Int>,
                fold_f32: $crate::__per_isa!(fold_f32, (start: f32, x: &[f32]) -> f32),
                fold_f64: $crate::__per_isa!(fold_f64, (start: f64, x: &[f64]) -> f64),
                fold_int,
                formula: || {
                    $crate::kernel_macros::Formula::record(2, 0, |ins, _| formula(ins[0], ins[1]))
                },
            }
        };
    )+};
}

/// A `PerIsa` of one `#[inline(always)]` safe function, compiled three times.
#[doc(hidden)]
#[macro_export]
macro_rules! __per_isa {
    ($body:expr, ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2($($arg: $ty),*) $(-> $ret)? {
            $body($($arg),*)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
        fn avx512($($arg: $ty),*) $(-> $ret)? {
            $body($($arg),*)
        }
        type Loop = unsafe fn($($ty),*) $(-> $ret)?;
        #[cfg(target_arch = "x86_64")]
        let (avx2, avx512): (Loop, Loop) = (avx2, avx512);
        #[cfg(not(target_arch = "x86_64"))]
        let (avx2, avx512): (Loop, Loop) = ($body, $body);
        $crate::kernel_macros::kernel::PerIsa { portable: $body as Loop, avx2, avx512 }
    }};
}

/// Folds `x` into `start` in an order that depends on its length alone: `L` lanes run over blocks of 64 rows, the
/// lanes of a block are combined pairwise, and so are the blocks.
///
/// The error of a sum grows with the logarithm of the length, and the loop runs at vector speed.
#[inline(always)]
pub fn fold<E: Expr, const L: usize>(
    identity: E,
    start: E,
    x: &[E],
    combine: impl Fn(E, E) -> E + Copy,
) -> E {
    const ROWS: usize = 64;
    if x.len() < L {
        return x.iter().fold(start, |a, &b| combine(a, b));
    }
    // Finished blocks, as a binary counter counts them: `stack[k]` holds 2^k blocks where bit k of `done` is set.
    let mut stack = [identity; 48];
    let mut done = 0usize;
    for block in x.chunks(L * ROWS) {
        let mut value = fold_block::<E, L>(identity, block, combine);
        let mut level = 0;
        while done >> level & 1 == 1 {
            value = combine(stack[level], value);
            level += 1;
        }
        stack[level] = value;
        done += 1;
    }
    let mut total = start;
    let mut level = 0;
    while done >> level != 0 {
        if done >> level & 1 == 1 {
            total = combine(stack[level], total);
        }
        level += 1;
    }
    total
}

#[inline(always)]
fn fold_block<E: Expr, const L: usize>(identity: E, x: &[E], combine: impl Fn(E, E) -> E + Copy) -> E {
    let mut lanes = [identity; L];
    let (rows, rest) = x.as_chunks::<L>();
    for row in rows {
        for (lane, &v) in lanes.iter_mut().zip(row) {
            *lane = combine(*lane, v);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane = combine(*lane, v);
    }
    let mut width = L / 2;
    while width > 0 {
        let (low, high) = lanes.split_at_mut(width);
        for (a, &b) in low.iter_mut().zip(&high[..width]) {
            *a = combine(*a, b);
        }
        width /= 2;
    }
    lanes[0]
}
