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

    /// Hyperbolic tangent: std's.
    #[inline(always)]
    pub fn tanh(x: f32) -> f32 {
        x.tanh()
    }

    /// The error function, computed in `f64` and rounded: error below one unit in the last place.
    #[inline(always)]
    pub fn erf(x: f32) -> f32 {
        super::f64::erf(x as f64) as f32
    }
}

/// `f64` functions.
pub mod f64 {
    /// e^x: std's.
    #[inline(always)]
    pub fn exp(x: f64) -> f64 {
        x.exp()
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
