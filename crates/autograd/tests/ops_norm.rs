//! Normalisation: values, statistics and refusals of the semantics table A23.

use stridegrad_autograd::{
    BackwardOptions, BatchNormOptions, GradcheckOptions, Tensor, grad, gradcheck, gradgradcheck,
};
use stridegrad_core::{DType, MemoryFormat, Result};

fn train() -> BatchNormOptions {
    BatchNormOptions::training()
}

fn column(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len(), 1])
}

fn running() -> (Tensor, Tensor) {
    (Tensor::zeros([1]).to_dtype(DType::F64), Tensor::ones([1]).to_dtype(DType::F64))
}

#[track_caller]
fn near(got: &Tensor, want: &[f64], tolerance: f64) {
    let got = got.try_to_vec_f64().unwrap();
    let close = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < tolerance);
    assert!(close, "{got:?}, expected {want:?}");
}

fn text(r: Result<Tensor>) -> String {
    r.expect_err("must be refused").to_string()
}

#[test]
fn a23_running_statistics_take_the_unbiased_variance() {
    for (x, mean, var) in [(&[1.0, 3.0][..], 0.2, 1.1), (&[1.0, 2.0, 3.0, 6.0], 0.3, 0.9 + 0.1 * 14.0 / 3.0)]
    {
        let (m, v) = running();
        column(x).batch_norm(Some(&m), Some(&v), None, None, train());
        near(&m, &[mean], 1e-12);
        near(&v, &[var], 1e-12);
        assert!(m.version() == 1 && !m.requires_grad());
    }
    // One over the number of batches gives their average.
    let (m, v) = running();
    for (k, x) in [[1.0, 3.0], [3.0, 9.0], [5.0, 3.0]].iter().enumerate() {
        let o = train().momentum(1.0 / (k + 1) as f64);
        column(x).batch_norm(Some(&m), Some(&v), None, None, o);
    }
    near(&m, &[4.0], 1e-12);
    near(&v, &[(2.0 + 18.0 + 2.0) / 3.0], 1e-12);
}

#[test]
fn a23_a_constant_channel_gives_the_bias_exactly() {
    for format in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast] {
        let x = Tensor::full([4, 3, 5, 5], 5.0).to_format(format);
        let y = x.batch_norm(None, None, None, None, train());
        assert!(y.to_vec::<f32>().iter().all(|&v| v == 0.0));
        let bias = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]);
        let y = x.batch_norm(None, None, Some(&Tensor::full([3], 7.0)), Some(&bias), train());
        assert_eq!(y.select(0, 2).select(1, 4).select(1, 4).to_vec::<f32>(), [1.0, 2.0, 3.0]);
        assert_eq!(y.strides(), x.strides());
    }
}

#[test]
fn a23_eval_takes_the_running_statistics_and_leaves_them() {
    let (m, v) = (Tensor::from_slice(&[1.0f64], [1]), Tensor::from_slice(&[4.0f64], [1]));
    let x = column(&[1.0, 3.0]).requires_grad_(true);
    let y = x.batch_norm(Some(&m), Some(&v), None, None, BatchNormOptions::eval());
    near(&y, &[0.0, 2.0 / (4.0f64 + 1e-5).sqrt()], 1e-12);
    assert_eq!((m.version(), v.version()), (0, 0));
    // They may change before backward.
    column(&[5.0, 7.0]).batch_norm(Some(&m), Some(&v), None, None, train());
    y.sum().backward();
    near(&x.grad().unwrap(), &[1.0 / (4.0f64 + 1e-5).sqrt(); 2], 1e-12);
    let identity = column(&[2.0]).batch_norm(
        Some(&running().0),
        Some(&running().1),
        None,
        None,
        BatchNormOptions::eval(),
    );
    near(&identity, &[2.0 / (1.0f64 + 1e-5).sqrt()], 1e-12);
}

#[test]
fn a23_an_empty_batch_leaves_everything_alone() {
    let (m, v) = (Tensor::full([3], 0.5), Tensor::full([3], 2.0));
    let x = Tensor::zeros([0, 3, 2, 2]).requires_grad_(true);
    let (w, b) = (Tensor::ones([3]).requires_grad_(true), Tensor::ones([3]).requires_grad_(true));
    let y = x.batch_norm(Some(&m), Some(&v), Some(&w), Some(&b), train());
    assert_eq!(y.sizes(), [0, 3, 2, 2]);
    y.sum().backward();
    assert_eq!((m.to_vec::<f32>(), v.to_vec::<f32>()), (vec![0.5; 3], vec![2.0; 3]));
    assert_eq!(
        (w.grad().unwrap().to_vec::<f32>(), b.grad().unwrap().to_vec::<f32>()),
        (vec![0.0; 3], vec![0.0; 3])
    );
    assert_eq!(x.grad().unwrap().sizes(), [0, 3, 2, 2]);
}

#[test]
fn a23_refusals() {
    let one = "expected more than 1 value per channel when training, got input size";
    let bn = |sizes: &[usize], o| Tensor::ones(sizes).try_batch_norm(None, None, None, None, o);
    assert!(text(bn(&[1, 2], train())).contains(&format!("{one} [1, 2]")));
    assert!(text(bn(&[1, 2, 1, 1], train())).contains(&format!("{one} [1, 2, 1, 1]")));
    assert_eq!(bn(&[1, 2, 2, 2], train()).unwrap().sizes(), [1, 2, 2, 2]);
    assert!(
        text(bn(&[2, 2], BatchNormOptions::eval()))
            .contains("expected running_mean and running_var to be defined")
    );
    let (m, v) = (Tensor::zeros([3]), Tensor::ones([2]));
    let wrong = Tensor::ones([4, 3]).try_batch_norm(Some(&m), Some(&v), None, None, train());
    assert!(text(wrong).contains("running_var should contain 3 elements"));
    assert_eq!((m.version(), v.version()), (0, 0), "a refusal precedes the first write");
    let shared = Tensor::zeros([1]).expand([3]);
    let overlapping = Tensor::ones([4, 3]).try_batch_norm(Some(&m), Some(&shared), None, None, train());
    assert!(text(overlapping).contains("overlap themselves"));
    assert_eq!(m.version(), 0);
}

#[test]
fn gradients_of_any_order() {
    let values = |n: usize| (0..n).map(|i| ((i * 37) % 101) as f64 * 0.04 - 2.0).collect::<Vec<_>>();
    let leaf =
        |sizes: &[usize]| Tensor::from_slice(&values(sizes.iter().product()), sizes).requires_grad_(true);
    let (m, v) = (Tensor::from_slice(&[0.5f64, -0.5], [2]), Tensor::from_slice(&[1.0f64, 2.0], [2]));
    let inputs = [leaf(&[3, 2, 2, 2]), leaf(&[2]), leaf(&[2])];
    let options = GradcheckOptions::default();
    for o in [train(), BatchNormOptions::eval()] {
        // The statistics are copied for each call: training changes them.
        let f =
            |t: &[Tensor]| t[0].try_batch_norm(Some(&m.copy()), Some(&v.copy()), Some(&t[1]), Some(&t[2]), o);
        gradcheck(f, &inputs, options).unwrap();
        gradgradcheck(f, &inputs, options.fast(true)).unwrap();
    }
    let inputs = [leaf(&[3, 2, 4]), leaf(&[2, 4]), leaf(&[2, 4])];
    let f = |t: &[Tensor]| t[0].try_layer_norm([2, 4], Some(&t[1]), Some(&t[2]), 1e-5);
    gradcheck(f, &inputs, options).unwrap();
    gradgradcheck(f, &inputs, options.fast(true)).unwrap();
}

#[test]
fn the_fused_gradient_and_the_composite_agree() {
    let x = Tensor::arange(48.0).view([2, 3, 4, 2]).mul(0.37).sin().detach();
    for format in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast] {
        let x = x.to_format(format).detach().requires_grad_(true);
        let w = Tensor::from_slice(&[1.0f32, -2.0, 0.5], [3]).requires_grad_(true);
        let b = Tensor::zeros([3]).requires_grad_(true);
        let seed = Tensor::arange(48.0).view([2, 3, 4, 2]).cos();
        let run = |create_graph| {
            let y = x.batch_norm(None, None, Some(&w), Some(&b), train());
            let o = BackwardOptions { create_graph, ..Default::default() };
            grad(&[&y], &[&x, &w, &b], Some(&[&seed]), o).unwrap()
        };
        for (fused, composite) in run(false).iter().zip(run(true)) {
            let (fused, composite) = (fused.as_ref().unwrap(), composite.unwrap());
            near(fused, &composite.try_to_vec_f64().unwrap(), 1e-5);
        }
    }
}

#[test]
fn half_precision_keeps_its_statistics_wide() {
    // Sums far beyond what f16 holds.
    let x = Tensor::full([64, 2, 32, 32], 100.0).to_dtype(DType::F16);
    let (m, v) = (Tensor::zeros([2]), Tensor::ones([2]));
    let y = x.batch_norm(Some(&m), Some(&v), Some(&Tensor::ones([2])), None, train());
    assert_eq!(y.dtype(), DType::F16);
    near(&y.sum(), &[0.0], 1e-12);
    near(&m, &[10.0, 10.0], 1e-5);
    near(&v, &[0.9, 0.9], 1e-6);
}
