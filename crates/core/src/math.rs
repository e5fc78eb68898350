//! Math functions that std lacks or that do not vectorise there, with their error bounds.

/// `f32` functions.
pub mod f32 {
    /// e^x by range reduction and a degree-6 polynomial: relative error below 2.5e-7 over the whole range,
    /// 0 below about -103.97, infinity above 88.73, NaN for NaN. Branch-free, so that loops vectorise.
    #[inline(always)]
    pub fn exp(x: f32) -> f32 {
        // Cody-Waite: x = n ln2 + r, |r| <= ln2 / 2. The clamp keeps n in range; NaN passes through it.
        let x = if x > 89.0 { 89.0 } else { x };
        let x = if x < -104.0 { -104.0 } else { x };
        let n = (x * std::f32::consts::LOG2_E).round_ties_even();
        let r = x - n * 0.693_359_4;
        let r = r - n * -2.121_944_4e-4;
        let p = 1.0 / 720.0;
        let p = p * r + 1.0 / 120.0;
        let p = p * r + 1.0 / 24.0;
        let p = p * r + 1.0 / 6.0;
        let p = p * r + 0.5;
        let p = p * r + 1.0;
        let p = p * r + 1.0;
        // 2^n in two factors, so that subnormal results and the overflow to infinity come out right. Adding
        // 1.5 * 2^23 leaves n in the low mantissa bits; a saturating `as i32` would stop vectorisation.
        let n = ((n + 12_582_912.0).to_bits() as i32).wrapping_sub(0x4B40_0000);
        let half = n >> 1;
        let scale = |k: i32| f32::from_bits((k.wrapping_add(127) as u32) << 23);
        p * scale(half) * scale(n.wrapping_sub(half))
    }

    /// ln x: relative error below 1.2e-7 (all of it rounding). Branch-free, as [`exp`] is.
    #[inline(always)]
    pub fn ln(x: f32) -> f32 {
        // x = 2^k m with m in [sqrt(1/2), sqrt(2)); subnormals are first scaled into the normal range.
        const SQRT_HALF: u32 = 0x3F35_04F3;
        let subnormal = x < f32::MIN_POSITIVE;
        let scaled = if subnormal { x * 8_388_608.0 } else { x };
        let shifted = scaled.to_bits().wrapping_add(0x3F80_0000 - SQRT_HALF);
        let k = ((shifted >> 23) as i32).wrapping_sub(127) as f32 - if subnormal { 23.0 } else { 0.0 };
        let m = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(SQRT_HALF));
        // ln(1 + f) = 2 artanh(s) with s = f / (2 + f), written as f - f^2/2 plus what is left, which is small.
        let f = m - 1.0;
        let s = f / (2.0 + f);
        let z = s * s;
        let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0))));
        let half = 0.5 * f * f;
        let v = (s * (half + series) + k * -2.121_944_4e-4) - half + f + k * 0.693_359_4;
        let v = if x == f32::INFINITY { x } else { v };
        let v = if x == 0.0 { f32::NEG_INFINITY } else { v };
        if x >= 0.0 { v } else { f32::NAN }
    }

    /// ln(1 + x): relative error below 3e-7, also near 0. Branch-free.
    #[inline(always)]
    pub fn ln_1p(x: f32) -> f32 {
        let u = 1.0 + x;
        // What rounding 1 + x lost, to first order.
        let lost = (x - (u - 1.0)) / u;
        let v = ln(u);
        let v = if u > 0.0 && u < f32::INFINITY { v + lost } else { v };
        if x == 0.0 { x } else { v }
    }

    /// e^x - 1: relative error below 3e-7, also near 0. Branch-free.
    #[inline(always)]
    pub fn exp_m1(x: f32) -> f32 {
        let y = if x > 89.5 { 89.5 } else { x };
        let y = if y < -20.0 { -20.0 } else { y };
        let n = (y * std::f32::consts::LOG2_E).round_ties_even();
        let r = y - n * 0.693_359_4;
        let r = r - n * -2.121_944_4e-4;
        // e^r - 1 without the 1, then times 2^n; 2^(n-1) is in range where 2^n is not.
        let q = 1.0 / 5040.0;
        let q = q * r + 1.0 / 720.0;
        let q = q * r + 1.0 / 120.0;
        let q = q * r + 1.0 / 24.0;
        let q = q * r + 1.0 / 6.0;
        let q = q * r + 0.5;
        let p = r + r * r * q;
        let n = ((n + 12_582_912.0).to_bits() as i32).wrapping_sub(0x4B40_0000);
        let t = f32::from_bits((n.wrapping_add(126) as u32) << 23);
        let v = (p * t + (t - 0.5)) * 2.0;
        // Subnormals and the sign of 0 as they are.
        if x.abs() < 1e-8 { x } else { v }
    }

    /// Hyperbolic tangent: relative error below 4e-7. Branch-free.
    #[inline(always)]
    pub fn tanh(x: f32) -> f32 {
        let a = x.abs();
        let a = if a > 10.0 { 10.0 } else { a };
        let e = exp_m1(2.0 * a);
        (e / (e + 2.0)).copysign(x)
    }

    /// The error function: relative error below 3e-7. Branch-free.
    ///
    /// Below 1, x times a polynomial in x^2; beyond, 1 - e^(-x^2) times a polynomial in 2 / (2 + x): both fitted to
    /// erf for least relative error (1.2e-9 and 5.9e-10 before rounding).
    #[inline(always)]
    #[allow(clippy::approx_constant)] // a fitted coefficient, close to 2 / sqrt(pi) but not it
    pub fn erf(x: f32) -> f32 {
        let a = x.abs();
        let a = if a > 4.2 { 4.2 } else { a };
        let z = a * a;
        let p = 7.853_850_5e-5;
        let p = p * z - 8.010_19e-4;
        let p = p * z + 5.188_327_3e-3;
        let p = p * z - 2.685_381e-2;
        let p = p * z + 1.128_358_5e-1;
        let p = p * z - 3.761_262_6e-1;
        let p = p * z + 1.128_379_1;
        let near = a * p;
        let t = 2.0 / (2.0 + a);
        let q = 1.176_769e-1;
        let q = q * t - 4.654_703_4e-1;
        let q = q * t + 5.549_219e-1;
        let q = q * t - 9.691_06e-2;
        let q = q * t + 3.446_002_6e-1;
        let q = q * t + 2.605_989_3e-1;
        let q = q * t + 2.847_695_6e-1;
        let q = q * t - 1.446_439_9e-4;
        let far = 1.0 - exp(-z) * q;
        (if a < 1.0 { near } else { far }).copysign(x)
    }
}

/// `f64` functions.
pub mod f64 {
    /// e^x: std's.
    #[inline(always)]
    pub fn exp(x: f64) -> f64 {
        x.exp()
    }

    /// ln x: std's.
    #[inline(always)]
    pub fn ln(x: f64) -> f64 {
        x.ln()
    }

    /// ln(1 + x): std's.
    #[inline(always)]
    pub fn ln_1p(x: f64) -> f64 {
        x.ln_1p()
    }

    /// e^x - 1: std's.
    #[inline(always)]
    pub fn exp_m1(x: f64) -> f64 {
        x.exp_m1()
    }

    /// Hyperbolic tangent: std's.
    #[inline(always)]
    pub fn tanh(x: f64) -> f64 {
        x.tanh()
    }

    /// The error function, relative error below 1e-14: the Maclaurin series for |x| < 2.5, a continued
    /// fraction for erfc beyond (Abramowitz and Stegun 7.1.6 and 7.1.14).
    pub fn erf(x: f64) -> f64 {
        let a = x.abs();
        if a.is_nan() {
            return x;
        }
        let v = if a < 2.5 {
            // 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (1 3 5 ... (2n+1)): positive terms, no cancellation.
            let (mut term, mut sum, mut n) = (a, a, 0.0);
            while term > sum * 1e-17 {
                n += 1.0;
                term *= 2.0 * a * a / (2.0 * n + 1.0);
                sum += term;
            }
            std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum
        } else if a < 6.0 {
            let mut f = a;
            for k in (1..=60).rev() {
                f = a + (k as f64 / 2.0) / f;
            }
            1.0 - (-a * a).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / f
        } else {
            1.0
        };
        v.copysign(x)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn exp_f32_is_within_its_bound() {
        let mut worst = 0.0f64;
        let mut x = -87.0f32;
        while x < 88.7 {
            let want = (x as f64).exp();
            worst = worst.max(((super::f32::exp(x) as f64 - want) / want).abs());
            x += 0.000_73;
        }
        assert!(worst < 2.5e-7, "{worst:e}");
        assert_eq!(super::f32::exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(super::f32::exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(super::f32::exp(0.0), 1.0);
        assert_eq!(super::f32::exp(100.0), f32::INFINITY);
        assert!(super::f32::exp(f32::NAN).is_nan());
        // Subnormal results keep their absolute error below half the smallest subnormal or so.
        assert!((super::f32::exp(-100.0) as f64 - (-100f64).exp()).abs() < 1.5e-45);
    }

    // The largest relative error of `f` against `exact` over the floats of [low, high], about one in `skip`.
    fn worst(low: f32, high: f32, skip: u32, f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        assert!(0.0 < low && low < high);
        (low.to_bits()..=high.to_bits())
            .step_by(skip as usize)
            .flat_map(|b| [f32::from_bits(b), -f32::from_bits(b)])
            .filter_map(|x| {
                let want = exact(f64::from(x));
                let representable = want.abs() >= f64::from(f32::MIN_POSITIVE) && (want as f32).is_finite();
                representable.then(|| ((f64::from(f(x)) - want) / want).abs())
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn f32_functions_are_within_their_bounds() {
        use super::f32::*;
        const MAX: f32 = f32::MAX;
        let all = |f, exact| worst(f32::MIN_POSITIVE, MAX, 3001, f, exact);
        let near_one = worst(0.5, 2.0, 101, ln, f64::ln);
        let found = [all(ln, f64::ln), near_one, all(ln_1p, f64::ln_1p), all(exp_m1, f64::exp_m1)];
        let more = [all(tanh, f64::tanh), all(erf, super::f64::erf)];
        for (error, bound) in found.iter().chain(&more).zip([1.2e-7, 1.2e-7, 3e-7, 3e-7, 4e-7, 3e-7]) {
            assert!(*error < bound, "{found:?} {more:?}");
        }
    }

    #[test]
    fn f32_functions_at_their_ends() {
        use super::f32::*;
        const INF: f32 = f32::INFINITY;
        assert_eq!((ln(1.0), ln(0.0), ln(-0.0), ln(INF)), (0.0, -INF, -INF, INF));
        assert!(ln(-1.0).is_nan() && ln(f32::NAN).is_nan() && ln(-INF).is_nan());
        let tiny = f32::from_bits(1);
        assert!((f64::from(ln(tiny)) - f64::from(tiny).ln()).abs() < 1e-5);
        assert_eq!((ln_1p(-1.0), ln_1p(INF), ln_1p(tiny)), (-INF, INF, tiny));
        assert!(ln_1p(-1.5).is_nan() && ln_1p(f32::NAN).is_nan());
        assert_eq!((exp_m1(INF), exp_m1(-INF), exp_m1(tiny), exp_m1(200.0)), (INF, -1.0, tiny, INF));
        assert_eq!((tanh(INF), tanh(-INF), tanh(tiny)), (1.0, -1.0, tiny));
        assert_eq!((erf(INF), erf(-INF), erf(5.0)), (1.0, -1.0, 1.0));
        for f in [ln_1p, exp_m1, tanh, erf] {
            assert!(f(f32::NAN).is_nan() && f(-0.0) == 0.0 && f(-0.0).is_sign_negative());
        }
    }

    #[test]
    fn erf_matches_tabulated_values() {
        // Abramowitz and Stegun, table 7.1; the last from the asymptotic value.
        for (x, want) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (-1.0, -0.842_700_792_949_714_9),
        ] {
            assert!((super::f64::erf(x) - want).abs() < 2e-15, "{x}");
        }
        assert_eq!(super::f64::erf(30.0), 1.0);
    }
}
