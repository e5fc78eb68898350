//! The kernel macros, used as another crate uses them: without unsafe code.
#![forbid(unsafe_code)]

use stridegrad_core::Int;
use stridegrad_core::kernel::PerIsa;

stridegrad_cpu::map_kernel! {
    static AXPB("axpb") = |[x], [a, b]| a * x + b;
    static CLAMP_ADD("clamp_add") = |[x, y], []| (x + y).max(E::lit(0.0)).min(E::lit(6.0));
    static SOFTPLUS("softplus") = |[x], [beta]| {
        let t = x * beta;
        E::select(t.gt(E::lit(20.0)), x, t.exp().ln_1p() / beta)
    };
}
stridegrad_cpu::reduce_kernel! {
    static SUM("sum", identity: 0.0, int: 0) = |a, b| a + b;
    static AMAX("amax", identity: f64::NEG_INFINITY, int: i64::MIN) = |a, b| a.max(b);
    static PROD("prod", identity: 1.0, int: 1) = |a, b| a * b;
}

#[test]
fn descriptions_carry_counts_and_formulas() {
    assert_eq!((AXPB.name, AXPB.inputs, AXPB.params), ("axpb", 1, 2));
    assert_eq!((CLAMP_ADD.inputs, CLAMP_ADD.params), (2, 0));
    assert_eq!((AXPB.formula)().eval(&[3.0], &[2.0, 1.0]), 7.0);
    assert_eq!((CLAMP_ADD.formula)().eval(&[3.0, 4.0], &[]), 6.0);
    assert_eq!((CLAMP_ADD.formula)().eval(&[Int(-3), Int(1)], &[]), Int(0));
    let soft = (SOFTPLUS.formula)().eval(&[0.5], &[2.0]);
    assert!((soft - (1f64.exp() + 1.0).ln() / 2.0).abs() < 1e-15);
    assert_eq!((SUM.formula)().eval(&[3.0, 4.0], &[]), 7.0);
    assert_eq!((AMAX.formula)().eval(&[3.0, 4.0], &[]), 4.0);
    assert_eq!((PROD.identity, PROD.identity_int), (1.0, 1));
    let _: &PerIsa<_> = &PROD.fold_f64;
}
