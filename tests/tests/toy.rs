//! The toy backend passes the harness for everything made of formulas, without an op knowing of it.

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, ErrorKind};
use stridegrad_testkit::harness::{Options, run_ops};
use stridegrad_tests::toy::{TOY, register};

#[test]
fn elementwise_ops_and_reductions_pass_the_harness() {
    register();
    let mut ops = stridegrad_autograd::ops::registry();
    // One element at a time: the samples that are there for tiles and threads would take minutes.
    for op in &mut ops {
        op.samples.retain(|s| s.inputs.iter().all(|i| i.sizes.iter().product::<usize>() <= 1000));
    }
    let report = run_ops(ops, &Options { device: TOY, ..Options::default() });
    println!("{report}");
    assert!(report.failures.is_empty(), "{report}");
    for op in ["add", "exp", "where_", "sum", "amax", "var", "permute", "copy_"] {
        assert!(report.of(op, "value") >= 20, "{op} ran {} times", report.of(op, "value"));
    }
    // What it lacks was refused by name, not run elsewhere.
    for class in ["conv2d", "gemm", "index", "scan"] {
        assert!(report.skipped.contains_key(class), "{class}: {:?}", report.skipped);
    }
}

#[test]
fn a_class_it_lacks_is_an_error_that_names_it() {
    register();
    let x = Tensor::full_on([2, 2], 1.5, DType::F32, TOY);
    assert_eq!((&x + &x).sum().to_device(stridegrad_core::Device::CPU).item::<f32>(), 12.0);
    let e = x.try_matmul(&x).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("the toy backend has no gemm kernel"), "{e}");
    let e = x.try_add(Tensor::ones([2, 2])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Device);
}
