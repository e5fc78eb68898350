//! Matrix products: values, layouts and refusals of the semantics tables (A15, T1, T2).

use stridegrad_autograd::{GradcheckOptions, Tensor, gradcheck, gradgradcheck};
use stridegrad_core::audit::deny_copies;
use stridegrad_core::{DType, ErrorKind};

fn arange(sizes: &[usize]) -> Tensor {
    Tensor::arange(sizes.iter().product::<usize>() as f64).view(sizes)
}

fn text(r: stridegrad_core::Result<Tensor>) -> String {
    r.expect_err("must be refused").to_string()
}

#[test]
fn t1_a_row_of_a_batch_is_read_where_it_lies() {
    let _no_copies = deny_copies();
    let x = arange(&[1, 3, 4]);
    let row = x.select(1, 2);
    assert_eq!(row.strides(), [12, 1]);
    let y = row.matmul(&Tensor::ones([2, 4]).t());
    assert_eq!((y.to_vec::<f32>(), y.strides()), (vec![38.0, 38.0], &[2, 1][..]));
}

#[test]
fn t2_an_expanded_batch() {
    let _no_copies = deny_copies();
    let x = Tensor::ones([1, 2, 2]).expand([3, 2, 2]);
    let y = x.matmul(&arange(&[3, 2, 2]));
    assert_eq!(y.to_vec::<f32>(), [2.0, 4.0, 2.0, 4.0, 10.0, 12.0, 10.0, 12.0, 18.0, 20.0, 18.0, 20.0]);
    assert_eq!(y.strides(), [4, 2, 1]);
}

#[test]
fn ranks_as_pytorch() {
    let v = arange(&[3]);
    let dot = v.matmul(&v);
    assert_eq!((dot.sizes(), dot.item::<f32>()), (&[][..], 5.0));
    assert_eq!(v.dot(&v).item::<f32>(), 5.0);
    assert_eq!(arange(&[2, 3]).matmul(&v).to_vec::<f32>(), [5.0, 14.0]);
    assert_eq!(arange(&[2, 3]).mv(&v).to_vec::<f32>(), [5.0, 14.0]);
    let batch = v.matmul(&arange(&[2, 3, 2]));
    assert_eq!((batch.sizes(), batch.to_vec::<f32>()), (&[2, 2][..], vec![10.0, 13.0, 28.0, 31.0]));
    let y = arange(&[2, 1, 2, 3]).matmul(&arange(&[2, 3, 2]));
    assert_eq!((y.sizes(), y.strides()), (&[2, 2, 2, 2][..], &[8, 4, 2, 1][..]));
    assert_eq!(y.to_vec::<f32>()[..6], [10.0, 13.0, 28.0, 40.0, 28.0, 31.0]);
    // Products of nothing.
    assert_eq!(Tensor::ones([2, 0]).matmul(&Tensor::ones([0, 3])).to_vec::<f32>(), [0.0; 6]);
    let none = Tensor::ones([0, 2, 3]).matmul(&Tensor::ones([0, 3, 2]));
    assert_eq!((none.sizes(), none.strides()), (&[0, 2, 2][..], &[4, 2, 1][..]));
}

#[test]
fn batch_dims_that_do_not_merge_are_not_copied() {
    let _no_copies = deny_copies();
    // Batches in column-major order, expanded in the middle, and reversed.
    let a = arange(&[2, 3, 4, 5]);
    let permuted = a.transpose(0, 1);
    let b = arange(&[3, 1, 5, 2]).expand([3, 2, 5, 2]).reversed([0]);
    let y = permuted.matmul(&b);
    assert_eq!((y.sizes(), y.is_contiguous()), (&[3, 2, 4, 2][..], true));
    for i in 0..3 {
        for j in 0..2 {
            let one = permuted.select(0, i).select(0, j).mm(&b.select(0, i).select(0, j));
            assert_eq!(y.select(0, i).select(0, j).to_vec::<f32>(), one.to_vec::<f32>());
        }
    }
}

#[test]
fn integers_multiply_and_nothing_promotes() {
    let x = Tensor::arange(4).view([2, 2]);
    assert_eq!(x.mm(&x).to_vec::<i64>(), [2, 3, 6, 11]);
    assert_eq!(x.to_dtype(DType::U8).mm(&x.to_dtype(DType::U8)).to_vec::<u8>(), [2, 3, 6, 11]);
    assert!(
        text(Tensor::ones([2, 2]).try_matmul(&x))
            .contains("expected m1 and m2 to have the same dtype, but got: f32 != i64")
    );
    let b = Tensor::full([2, 2], true);
    assert_eq!(b.try_matmul(&b).err().map(|e| e.kind()), Some(ErrorKind::DType));
}

#[test]
fn refusals_name_the_sizes() {
    let x = Tensor::ones([2, 3]);
    assert!(text(x.try_matmul(&x)).contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
    assert!(text(x.try_mm(&x)).contains("mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"));
    let scalar = Tensor::scalar(1.0);
    assert!(
        text(scalar.try_matmul(&Tensor::ones([3])))
            .contains("both arguments to matmul need to be at least 1D, but they are 0D and 1D")
    );
    assert!(text(Tensor::ones([3]).try_mm(&x)).contains("mat1 must be a 2-D tensor"));
    assert!(text(Tensor::ones([2, 2, 2]).try_bmm(&Tensor::ones([3, 2, 2]))).contains("batches of one size"));
    assert!(text(Tensor::ones([2]).try_dot(&Tensor::ones([3]))).contains("two vectors of equal length"));
}

#[test]
fn gradients_of_products() {
    let leaf = |sizes: &[usize]| {
        let t = arange(sizes).to_dtype(DType::F64).mul(0.25).sub(1.0);
        t.detach().requires_grad_(true)
    };
    let options = GradcheckOptions::default();
    for (a, b) in [
        (&[2, 3][..], &[3, 4][..]),
        (&[3], &[3]),
        (&[3], &[2, 3, 2]),
        (&[2, 2, 3], &[3]),
        (&[2, 2, 3], &[3, 2]),
        (&[2, 1, 2, 3], &[2, 3, 2]),
    ] {
        gradcheck(|t| t[0].try_matmul(&t[1]), &[leaf(a), leaf(b)], options).unwrap();
        gradgradcheck(|t| t[0].try_matmul(&t[1]), &[leaf(a), leaf(b)], options.fast(true)).unwrap();
    }
    let inputs = [leaf(&[2, 2, 3]), leaf(&[4, 3]), leaf(&[4])];
    gradcheck(|t| t[0].try_linear(&t[1], Some(&t[2])), &inputs, options).unwrap();
    gradgradcheck(|t| t[0].try_linear(&t[1], Some(&t[2])), &inputs, options.fast(true)).unwrap();
}

#[test]
fn the_gradient_of_a_transposed_weight_has_its_layout() {
    // No copy is made to get there: the product is written in the strides of the operand.
    let w = arange(&[3, 4]).t().detach().requires_grad_(true);
    assert_eq!(w.strides(), [1, 4]);
    let x = arange(&[2, 4]).requires_grad_(true);
    x.matmul(&w).sum().backward();
    let g = w.grad().unwrap();
    assert_eq!(
        (g.strides(), g.to_vec::<f32>()),
        (&[1, 4][..], vec![4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 8.0, 8.0, 8.0, 10.0, 10.0, 10.0])
    );
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [12.0, 15.0, 18.0, 21.0, 12.0, 15.0, 18.0, 21.0]);
}

#[test]
fn fresh_results_have_seen_no_write() {
    let y = arange(&[2, 3]).linear(&arange(&[4, 3]), Some(&Tensor::ones([4])));
    assert_eq!((y.version(), y.to_vec::<f32>()), (0, vec![6.0, 15.0, 24.0, 33.0, 15.0, 51.0, 87.0, 123.0]));
}
