//! One formula, many interpreters: the expression trait elementwise ops are written in.
//!
//! An op states its formula once, generic over [`Expr`]. With `f32`, `f64` or [`Int`] it is machine code for
//! the CPU; with [`Sym`] it builds a [`Formula`], which another backend interprets or translates.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number in a formula: `f32`, `f64`, [`Int`] (wrapping 64-bit integers) or the symbol [`Sym`].
///
/// `min` and `max` propagate NaN, as PyTorch's `minimum` and `maximum` do. Math functions are those of IEEE
/// floats; on [`Int`] they are never reached (integers are converted to floats first).
pub trait Expr:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The result of a comparison.
    type Mask: Copy;

    /// A constant.
    fn lit(v: f64) -> Self;
    /// A unary math function.
    fn unary(self, f: Unary) -> Self;
    /// A binary math function.
    fn binary(self, f: Binary, other: Self) -> Self;
    /// A comparison; false where a NaN takes part, but for `Ne`.
    fn compare(self, f: Compare, other: Self) -> Self::Mask;
    /// Both.
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Either.
    fn or(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// The opposite.
    fn not(a: Self::Mask) -> Self::Mask;
    /// `a` where the mask holds, else `b`; the side not taken is evaluated but has no effect.
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;

    /// 1 where the mask holds, else 0.
    #[inline(always)]
    fn from_mask(m: Self::Mask) -> Self {
        Self::select(m, Self::lit(1.0), Self::lit(0.0))
    }
    /// `self < other`.
    #[inline(always)]
    fn lt(self, other: Self) -> Self::Mask {
        self.compare(Compare::Lt, other)
    }
    /// `self <= other`.
    #[inline(always)]
    fn le(self, other: Self) -> Self::Mask {
        self.compare(Compare::Le, other)
    }
    /// `self > other`.
    #[inline(always)]
    fn gt(self, other: Self) -> Self::Mask {
        other.compare(Compare::Lt, self)
    }
    /// `self >= other`.
    #[inline(always)]
    fn ge(self, other: Self) -> Self::Mask {
        other.compare(Compare::Le, self)
    }
    /// `self == other`.
    #[inline(always)]
    fn eq(self, other: Self) -> Self::Mask {
        self.compare(Compare::Eq, other)
    }
    /// `self != other`.
    #[inline(always)]
    fn ne(self, other: Self) -> Self::Mask {
        self.compare(Compare::Ne, other)
    }
    /// Whether the value is NaN.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        self.compare(Compare::Ne, self)
    }
    /// The larger; NaN if either is.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self::select(Self::or(self.gt(other), self.is_nan()), self, other)
    }
    /// The smaller; NaN if either is.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self::select(Self::or(self.lt(other), self.is_nan()), self, other)
    }
    /// `self` to the power `other`.
    #[inline(always)]
    fn pow(self, other: Self) -> Self {
        self.binary(Binary::Pow, other)
    }
}

macro_rules! functions {
    ($enum:ident, $docs:literal; $($variant:ident $method:ident $doc:literal),* $(,)?) => {
        #[doc = $docs]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $enum { $(#[doc = $doc] $variant),* }

        /// The unary functions as methods.
        pub trait Math: Expr {
            $(#[doc = $doc]
            #[inline(always)]
            fn $method(self) -> Self { self.unary($enum::$variant) })*
        }
        impl<E: Expr> Math for E {}
    };
}
functions! { Unary, "The unary math functions a formula may call.";
    Abs abs "Absolute value.",
    Exp exp "e^x.",
    Expm1 expm1 "e^x - 1, accurate near 0.",
    Ln ln "Natural logarithm.",
    Ln1p ln_1p "ln(1 + x), accurate near 0.",
    Log2 log2 "Base-2 logarithm.",
    Log10 log10 "Base-10 logarithm.",
    Sqrt sqrt "Square root.",
    Sin sin "Sine.",
    Cos cos "Cosine.",
    Tan tan "Tangent.",
    Asin asin "Arc sine.",
    Acos acos "Arc cosine.",
    Atan atan "Arc tangent.",
    Sinh sinh "Hyperbolic sine.",
    Cosh cosh "Hyperbolic cosine.",
    Tanh tanh "Hyperbolic tangent.",
    Asinh asinh "Inverse hyperbolic sine.",
    Acosh acosh "Inverse hyperbolic cosine.",
    Atanh atanh "Inverse hyperbolic tangent.",
    Erf erf "The error function.",
    Floor floor "Rounds down.",
    Ceil ceil "Rounds up.",
    Trunc trunc "Rounds towards zero.",
    Round round "Rounds half to even.",
}

/// The binary math functions a formula may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binary {
    /// Power.
    Pow,
    /// The angle of the point (other, self).
    Atan2,
    /// C's fmod: remainder with the sign of the dividend.
    Fmod,
    /// Bitwise and (integers).
    BitAnd,
    /// Bitwise or (integers).
    BitOr,
    /// Bitwise exclusive or (integers).
    BitXor,
    /// Left shift (integers): 0 for a count that is negative or as wide as 64 bits.
    Shl,
    /// Arithmetic right shift (integers); a count out of range gives 0 or -1.
    Shr,
}

/// The comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Less than.
    Lt,
    /// Less or equal.
    Le,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
}

macro_rules! float_expr {
    ($($t:ident),*) => {$(
        impl Expr for $t {
            type Mask = bool;
            #[inline(always)]
            fn lit(v: f64) -> Self { v as $t }
            #[inline(always)]
            fn unary(self, f: Unary) -> Self {
                match f {
                    Unary::Abs => $t::abs(self),
                    Unary::Exp => crate::math::$t::exp(self),
                    Unary::Expm1 => crate::math::$t::exp_m1(self),
                    Unary::Ln => crate::math::$t::ln(self),
                    Unary::Ln1p => crate::math::$t::ln_1p(self),
                    Unary::Log2 => $t::log2(self),
                    Unary::Log10 => $t::log10(self),
                    Unary::Sqrt => $t::sqrt(self),
                    Unary::Sin => $t::sin(self),
                    Unary::Cos => $t::cos(self),
                    Unary::Tan => $t::tan(self),
                    Unary::Asin => $t::asin(self),
                    Unary::Acos => $t::acos(self),
                    Unary::Atan => $t::atan(self),
                    Unary::Sinh => $t::sinh(self),
                    Unary::Cosh => $t::cosh(self),
                    Unary::Tanh => crate::math::$t::tanh(self),
                    Unary::Asinh => $t::asinh(self),
                    Unary::Acosh => $t::acosh(self),
                    Unary::Atanh => $t::atanh(self),
                    Unary::Erf => crate::math::$t::erf(self),
                    Unary::Floor => $t::floor(self),
                    Unary::Ceil => $t::ceil(self),
                    Unary::Trunc => $t::trunc(self),
                    Unary::Round => $t::round_ties_even(self),
                }
            }
            #[inline(always)]
            fn binary(self, f: Binary, o: Self) -> Self {
                match f {
                    Binary::Pow => $t::powf(self, o),
                    Binary::Atan2 => $t::atan2(self, o),
                    Binary::Fmod => self % o,
                    // Bit operations are refused for floats before a kernel is chosen.
                    _ => $t::NAN,
                }
            }
            #[inline(always)]
            fn compare(self, f: Compare, o: Self) -> bool {
                match f {
                    Compare::Lt => self < o,
                    Compare::Le => self <= o,
                    Compare::Eq => self == o,
                    Compare::Ne => self != o,
                }
            }
            #[inline(always)]
            fn and(a: bool, b: bool) -> bool { a & b }
            #[inline(always)]
            fn or(a: bool, b: bool) -> bool { a | b }
            #[inline(always)]
            fn not(a: bool) -> bool { !a }
            #[inline(always)]
            fn select(m: bool, a: Self, b: Self) -> Self { if m { a } else { b } }
        }
    )*};
}
float_expr!(f32, f64);

/// A 64-bit integer with wrapping arithmetic: what every integer dtype and `bool` compute in.
///
/// Narrower integers are widened, computed and truncated, which wraps just as their own arithmetic would.
/// Division truncates; by zero it gives 0 (ops refuse zero divisors before they get here).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Int(pub i64);

impl Add for Int {
    type Output = Int;
    #[inline(always)]
    fn add(self, o: Int) -> Int {
        Int(self.0.wrapping_add(o.0))
    }
}
impl Sub for Int {
    type Output = Int;
    #[inline(always)]
    fn sub(self, o: Int) -> Int {
        Int(self.0.wrapping_sub(o.0))
    }
}
impl Mul for Int {
    type Output = Int;
    #[inline(always)]
    fn mul(self, o: Int) -> Int {
        Int(self.0.wrapping_mul(o.0))
    }
}
impl Div for Int {
    type Output = Int;
    #[inline(always)]
    fn div(self, o: Int) -> Int {
        Int(if o.0 == 0 { 0 } else { self.0.wrapping_div(o.0) })
    }
}
impl Neg for Int {
    type Output = Int;
    #[inline(always)]
    fn neg(self) -> Int {
        Int(self.0.wrapping_neg())
    }
}

impl Expr for Int {
    type Mask = bool;
    #[inline(always)]
    fn lit(v: f64) -> Int {
        Int(v as i64)
    }
    #[inline(always)]
    fn unary(self, f: Unary) -> Int {
        match f {
            Unary::Abs => Int(self.0.wrapping_abs()),
            _ => self, // the roundings; transcendental functions convert to floats first
        }
    }
    #[inline(always)]
    fn binary(self, f: Binary, o: Int) -> Int {
        match f {
            Binary::Pow => Int(int_pow(self.0, o.0)),
            Binary::Fmod => Int(if o.0 == 0 { 0 } else { self.0.wrapping_rem(o.0) }),
            Binary::BitAnd => Int(self.0 & o.0),
            Binary::BitOr => Int(self.0 | o.0),
            Binary::BitXor => Int(self.0 ^ o.0),
            Binary::Shl => Int(if (0..64).contains(&o.0) { self.0 << o.0 } else { 0 }),
            Binary::Shr => Int(self.0 >> if (0..64).contains(&o.0) { o.0 } else { 63 }),
            Binary::Atan2 => Int(0),
        }
    }
    #[inline(always)]
    fn compare(self, f: Compare, o: Int) -> bool {
        match f {
            Compare::Lt => self.0 < o.0,
            Compare::Le => self.0 <= o.0,
            Compare::Eq => self.0 == o.0,
            Compare::Ne => self.0 != o.0,
        }
    }
    #[inline(always)]
    fn and(a: bool, b: bool) -> bool {
        a & b
    }
    #[inline(always)]
    fn or(a: bool, b: bool) -> bool {
        a | b
    }
    #[inline(always)]
    fn not(a: bool) -> bool {
        !a
    }
    #[inline(always)]
    fn select(m: bool, a: Int, b: Int) -> Int {
        if m { a } else { b }
    }
}

/// PyTorch's integer power: negative exponents give 0 but for bases 1 and -1.
fn int_pow(base: i64, exp: i64) -> i64 {
    if exp < 0 {
        return match base {
            1 => 1,
            -1 if exp % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut b, mut e, mut r) = (base, exp as u64, 1i64);
    while e > 0 {
        if e & 1 == 1 {
            r = r.wrapping_mul(b);
        }
        b = b.wrapping_mul(b);
        e >>= 1;
    }
    r
}

/// One step of a [`Formula`]; operands are the numbers of earlier steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The k-th operand.
    Input(usize),
    /// The k-th scalar parameter.
    Param(usize),
    /// A constant.
    Lit(f64),
    /// Sum.
    Add(usize, usize),
    /// Difference.
    Sub(usize, usize),
    /// Product.
    Mul(usize, usize),
    /// Quotient.
    Div(usize, usize),
    /// Negation.
    Neg(usize),
    /// A unary function.
    Unary(Unary, usize),
    /// A binary function.
    Binary(Binary, usize, usize),
    /// A comparison: a mask.
    Compare(Compare, usize, usize),
    /// Both masks.
    And(usize, usize),
    /// Either mask.
    Or(usize, usize),
    /// The opposite mask.
    Not(usize),
    /// The second where the mask (the first) holds, else the third.
    Select(usize, usize, usize),
}

/// A formula as a list of steps in evaluation order; the last one is the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Formula {
    /// Records the formula that `build` writes over `inputs` operands and `params` scalars.
    pub fn record(inputs: usize, params: usize, build: impl FnOnce(&[Sym], &[Sym]) -> Sym) -> Formula {
        let outer = STEPS.with(|s| std::mem::take(&mut *s.borrow_mut()));
        let ins: Vec<Sym> = (0..inputs).map(|k| Sym::push(Step::Input(k))).collect();
        let ps: Vec<Sym> = (0..params).map(|k| Sym::push(Step::Param(k))).collect();
        let root = build(&ins, &ps);
        let mut steps = STEPS.with(|s| std::mem::replace(&mut *s.borrow_mut(), outer));
        steps.truncate(root.0 + 1);
        Formula { steps }
    }

    /// Evaluates over one element, with any number type.
    pub fn eval<E: Expr>(&self, inputs: &[E], params: &[E]) -> E {
        #[derive(Clone, Copy)]
        enum Value<E: Expr> {
            Num(E),
            Mask(E::Mask),
        }
        let mut values: Vec<Value<E>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let num = |k: usize| match values[k] {
                Value::Num(v) => v,
                Value::Mask(m) => E::from_mask(m),
            };
            let mask = |k: usize| match values[k] {
                Value::Mask(m) => m,
                Value::Num(v) => v.ne(E::lit(0.0)),
            };
            let v = match *step {
                Step::Input(k) => Value::Num(inputs[k]),
                Step::Param(k) => Value::Num(params[k]),
                Step::Lit(v) => Value::Num(E::lit(v)),
                Step::Add(a, b) => Value::Num(num(a) + num(b)),
                Step::Sub(a, b) => Value::Num(num(a) - num(b)),
                Step::Mul(a, b) => Value::Num(num(a) * num(b)),
                Step::Div(a, b) => Value::Num(num(a) / num(b)),
                Step::Neg(a) => Value::Num(-num(a)),
                Step::Unary(f, a) => Value::Num(num(a).unary(f)),
                Step::Binary(f, a, b) => Value::Num(num(a).binary(f, num(b))),
                Step::Compare(f, a, b) => Value::Mask(num(a).compare(f, num(b))),
                Step::And(a, b) => Value::Mask(E::and(mask(a), mask(b))),
                Step::Or(a, b) => Value::Mask(E::or(mask(a), mask(b))),
                Step::Not(a) => Value::Mask(E::not(mask(a))),
                Step::Select(m, a, b) => Value::Num(E::select(mask(m), num(a), num(b))),
            };
            values.push(v);
        }
        match values.last() {
            Some(Value::Num(v)) => *v,
            Some(Value::Mask(m)) => E::from_mask(*m),
            None => E::lit(0.0),
        }
    }
}

thread_local! {
    static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

/// A symbol: the number of a step of the formula being recorded on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sym(usize);

impl Sym {
    fn push(step: Step) -> Sym {
        STEPS.with(|s| {
            let s = &mut *s.borrow_mut();
            s.push(step);
            Sym(s.len() - 1)
        })
    }
}

impl Add for Sym {
    type Output = Sym;
    fn add(self, o: Sym) -> Sym {
        Sym::push(Step::Add(self.0, o.0))
    }
}
impl Sub for Sym {
    type Output = Sym;
    fn sub(self, o: Sym) -> Sym {
        Sym::push(Step::Sub(self.0, o.0))
    }
}
impl Mul for Sym {
    type Output = Sym;
    fn mul(self, o: Sym) -> Sym {
        Sym::push(Step::Mul(self.0, o.0))
    }
}
impl Div for Sym {
    type Output = Sym;
    fn div(self, o: Sym) -> Sym {
        Sym::push(Step::Div(self.0, o.0))
    }
}
impl Neg for Sym {
    type Output = Sym;
    fn neg(self) -> Sym {
        Sym::push(Step::Neg(self.0))
    }
}

impl Expr for Sym {
    type Mask = Sym;
    fn lit(v: f64) -> Sym {
        Sym::push(Step::Lit(v))
    }
    fn unary(self, f: Unary) -> Sym {
        Sym::push(Step::Unary(f, self.0))
    }
    fn binary(self, f: Binary, o: Sym) -> Sym {
        Sym::push(Step::Binary(f, self.0, o.0))
    }
    fn compare(self, f: Compare, o: Sym) -> Sym {
        Sym::push(Step::Compare(f, self.0, o.0))
    }
    fn and(a: Sym, b: Sym) -> Sym {
        Sym::push(Step::And(a.0, b.0))
    }
    fn or(a: Sym, b: Sym) -> Sym {
        Sym::push(Step::Or(a.0, b.0))
    }
    fn not(a: Sym) -> Sym {
        Sym::push(Step::Not(a.0))
    }
    fn select(m: Sym, a: Sym, b: Sym) -> Sym {
        Sym::push(Step::Select(m.0, a.0, b.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn softplus<E: Expr>(x: E, beta: E) -> E {
        E::select((x * beta).gt(E::lit(20.0)), x, (x * beta).exp().ln_1p() / beta)
    }

    #[test]
    fn a_formula_evaluates_as_its_source_does() {
        let f = Formula::record(1, 1, |i, p| softplus(i[0], p[0]));
        for x in [-3.0, 0.0, 2.5, 19.0, 40.0] {
            assert_eq!(f.eval(&[x], &[1.5]), softplus(x, 1.5));
            assert_eq!(f.eval(&[x as f32], &[1.5f32]), softplus(x as f32, 1.5f32));
        }
    }

    #[test]
    fn max_and_min_propagate_nan_from_either_side() {
        assert!(Expr::max(f64::NAN, 1.0).is_nan() && Expr::max(1.0, f64::NAN).is_nan());
        assert!(Expr::min(f64::NAN, 1.0).is_nan() && Expr::min(1.0, f64::NAN).is_nan());
        assert_eq!(Expr::max(2.0, 1.0), 2.0);
    }

    #[test]
    fn integers_wrap_and_never_trap() {
        assert_eq!((Int(i64::MAX) + Int(1)).0, i64::MIN);
        assert_eq!((Int(i64::MIN) / Int(-1)).0, i64::MIN);
        assert_eq!((Int(7) / Int(0)).0, 0);
        assert_eq!(int_pow(2, -1), 0);
        assert_eq!(int_pow(-1, -3), -1);
        assert_eq!(int_pow(0, 0), 1);
    }
}
