//! Indexing, joining and moving elements.

mod common;

use common::*;
use stridegrad_autograd::{Ellipsis, NewAxis, Tensor, s, tensor};
use stridegrad_core::{DType, ErrorKind, MemoryFormat};

fn image() -> Tensor {
    Tensor::arange(120.0).view([2, 3, 4, 5])
}

fn channels_last() -> Tensor {
    image().to_format(MemoryFormat::ChannelsLast)
}

#[test]
fn expressions_are_views() {
    let t = Tensor::arange(24.0).view([2, 3, 4]);
    let y = t.i(s![.., 1..3, -1]);
    assert!(y.shares_storage(&t));
    assert_eq!((y.sizes(), y.strides(), y.storage_offset()), (&[2, 2][..], &[12, 4][..], 7));
    assert_eq!(t.i(s![1]).sizes(), [3, 4]);
    assert_eq!(t.i(s![]).strides(), t.strides());
    assert_eq!(t.i(s![..;2, ..;-1]).strides(), [24, -4, 1]);
    assert_eq!(t.i(s![Ellipsis, 0]).sizes(), [2, 3]);
    assert_eq!(t.i(s![0, Ellipsis, 1]).sizes(), [3]);
    assert_eq!(t.i(s![0, 1, Ellipsis, 2]).item::<f32>(), 6.0);
    assert_eq!(t.i(s![NewAxis, .., NewAxis, 0]).sizes(), [1, 2, 1, 4]);
    assert_eq!(t.i(s![Ellipsis, NewAxis]).sizes(), [2, 3, 4, 1]);
    assert_eq!(t.i(s![0, 0, 1..=2]).to_vec::<f32>(), [1.0, 2.0]);
    assert_eq!(t.i(s![0, 0, ..=-1]).to_vec::<f32>(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(t.i(s![0, 0, ..-2]).to_vec::<f32>(), [0.0, 1.0]);
    assert_eq!(t.i(s![0, 0, 3..0;-2,]).to_vec::<f32>(), [3.0, 1.0]);
    assert_eq!(t.i(s![0, 0, -100..100]).sizes(), [4]);
    assert_eq!(t.i(s![0, 0, 3..1]).sizes(), [0]);
    let (k, end) = (1usize, 3i64);
    assert_eq!(t.i(s![k, k.., ..end]).sizes(), [2, 3]);
    refused(t.try_i(s![0, 0, 0, 0]), ErrorKind::Index);
    refused(t.try_i(s![2]), ErrorKind::Index);
    refused(t.try_i(s![Ellipsis, Ellipsis]), ErrorKind::Index);
    refused(t.try_i(s![..;0]), ErrorKind::Argument);
    refused(Tensor::scalar(1.0).try_i(s![..]), ErrorKind::Index);
}

#[test]
fn gradients_and_writes_go_through_expressions() {
    let x = leaf(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let m = x.view([2, 3]);
    (m.i(s![1, ..;2]) * v(&[10.0, 100.0])).sum().backward();
    same(&x.grad().unwrap(), &[0.0, 0.0, 0.0, 10.0, 0.0, 100.0]);
    let y = &m * 1.0;
    y.i(s![.., 1]).fill_(0.0);
    same(&y, &[1.0, 0.0, 3.0, 4.0, 0.0, 6.0]);
}

#[test]
fn joined_layouts_as_pytorch() {
    let (n, c) = (image(), channels_last());
    assert_eq!(Tensor::cat(&[&c, &c], 1).strides(), [120, 1, 30, 6]);
    assert_eq!(Tensor::cat(&[&c, &n], 1).strides(), [120, 20, 5, 1]);
    assert_eq!(Tensor::cat(&[&n, &c], 0).strides(), [60, 20, 5, 1]);
    assert_eq!(Tensor::stack(&[&c, &c], 0).strides(), [120, 60, 1, 15, 3]);
    assert_eq!(Tensor::stack(&[&c, &c], 1).strides(), [120, 3, 1, 30, 6]);
    assert_eq!(Tensor::stack(&[&c, &c], 2).strides(), [120, 1, 60, 15, 3]);
    assert_eq!(Tensor::stack(&[&c, &c], 3).strides(), [120, 1, 30, 15, 3]);
    assert_eq!(Tensor::stack(&[&c, &c], 4).strides(), [120, 40, 10, 2, 1]);
    assert_eq!(Tensor::stack(&[&c, &n], 3).to_vec::<f32>(), Tensor::stack(&[&n, &n], 3).to_vec::<f32>());
    assert_eq!(c.flip(0).strides(), c.strides());
    assert_eq!(c.repeat([1, 1, 1, 1]).strides(), n.strides());
    let zero = tensor![0];
    assert_eq!(c.index_select(0, &zero).strides(), [60, 20, 5, 1]);
    assert_eq!(c.index_add(0, &zero, &c.narrow(0, 0, 1)).strides(), n.strides());
    assert_eq!(c.triu(0).strides(), n.strides());
}

#[test]
fn cat_promotes_and_its_gradients_are_windows() {
    let y = Tensor::cat(&[tensor![1, 2], tensor![0.5]], 0);
    assert_eq!((y.dtype(), y.to_vec::<f32>()), (DType::F32, vec![1.0, 2.0, 0.5]));
    assert_eq!(Tensor::cat(&[tensor![true], tensor![7]], 0).to_vec::<i64>(), [1, 7]);
    let (a, b) = (leaf(&[1.0, 2.0]), tensor![3.0].requires_grad_(true));
    (Tensor::cat(&[&a, &b, &a], 0) * v(&[1.0, 10.0, 100.0, 1000.0, 10000.0])).sum().backward();
    same(&a.grad().unwrap(), &[1001.0, 10010.0]);
    assert_eq!(b.grad().unwrap().dtype(), DType::F32);
    same(&b.grad().unwrap(), &[100.0]);
    assert_eq!(Tensor::cat(&[Tensor::zeros([0, 2]), Tensor::ones([1, 2])], 0).sizes(), [1, 2]);
    assert_eq!(Tensor::stack(&[Tensor::scalar(1.0), Tensor::scalar(2.0)], 0).to_vec::<f32>(), [1.0, 2.0]);
    refused(Tensor::try_cat(&[Tensor::zeros([2]), Tensor::zeros([2, 1])], 0), ErrorKind::Shape);
    refused(Tensor::try_cat(&[&a], 1), ErrorKind::Dim);
    assert_eq!(Tensor::cat(&[&y], 0).version(), 0);
}

#[test]
fn picked_elements_add_up() {
    let index = tensor![1, 1, 0];
    same_values(&grad_of(&[1.0, 2.0], |x| x.index_select(0, &index)), &[1.0, 2.0]);
    same_values(&grad_of(&[1.0, 2.0], |x| x.gather(0, &index)), &[1.0, 2.0]);
    let x = v(&[1.0, 2.0]);
    same(&x.scatter_add(0, &index, &v(&[10.0, 20.0, 5.0, 99.0])), &[6.0, 32.0]);
    same(&x.index_add(0, &index, &v(&[10.0, 20.0, 5.0])), &[6.0, 32.0]);
    same(&x, &[1.0, 2.0]);
    same(&x.index_add_(0, &index, &v(&[10.0, 20.0, 5.0])), &[6.0, 32.0]);
    assert_eq!(x.index_select(0, &index.to_dtype(DType::I32)).sizes(), [3]);
    assert_eq!(x.index_select(0, &Tensor::scalar(1)).to_vec::<f64>(), [32.0]);
    refused(x.try_index_select(0, &tensor![-1]), ErrorKind::Index);
    refused(x.try_index_add_(0, &tensor![0, 5], &v(&[1.0, 1.0])), ErrorKind::Index);
    same(&x, &[6.0, 32.0]); // nothing was written
    refused(x.try_gather(0, &tensor![0.0]), ErrorKind::DType);
    refused(Tensor::scalar(1.0).try_gather(0, &tensor![0]), ErrorKind::Dim);
}

#[test]
fn one_hot_counts_classes() {
    assert_eq!(tensor![0, 2].one_hot(-1).sizes(), [2, 3]);
    assert_eq!(Tensor::scalar(1).one_hot(2).to_vec::<i64>(), [0, 1]);
    refused(Tensor::zeros([0]).to_dtype(DType::I64).try_one_hot(-1), ErrorKind::Argument);
    refused(tensor![3].try_one_hot(3), ErrorKind::Index);
    refused(tensor![-1].try_one_hot(-1), ErrorKind::Index);
    refused(tensor![1].try_one_hot(0), ErrorKind::Argument);
}

#[test]
fn triangles_of_any_rank() {
    let x = Tensor::ones([2, 2, 3]).to_dtype(DType::Bool);
    assert_eq!(x.triu(1).to_vec::<bool>(), [false, true, true, false, false, true].repeat(2));
    assert_eq!(Tensor::from([[1u8, 2], [3, 4]]).tril(-1).to_vec::<u8>(), [0, 0, 3, 0]);
    // A NaN outside the triangle is gone, as PyTorch has it.
    assert_eq!(tensor![[1.0, f64::NAN], [2.0, 3.0]].tril(0).to_vec::<f32>(), [1.0, 0.0, 2.0, 3.0]);
}

#[test]
fn repeats() {
    assert_eq!(tensor![1, 2].repeat([0]).sizes(), [0]);
    assert_eq!(Tensor::scalar(1.0).repeat([2, 3]).sizes(), [2, 3]);
    assert_eq!(tensor![[1, 2]].repeat([2, 2]).to_vec::<i64>(), [1, 2, 1, 2, 1, 2, 1, 2]);
    same_values(&grad_of(&[1.0, 2.0], |x| x.repeat([3, 2])), &[6.0, 6.0]);
    let six = Tensor::ones([2, 2, 2, 2, 2]);
    assert_eq!(six.repeat([2, 2, 2, 1, 1]).numel(), 256);
    refused(six.try_repeat([2, 2, 2, 2, 1]), ErrorKind::Unsupported);
}

#[test]
fn arrays_in_and_out() {
    let t = Tensor::from([[[1i32, 2], [3, 4]], [[5, 6], [7, 8]]]);
    assert_eq!((t.sizes(), t.dtype()), (&[2, 2, 2][..], DType::I32));
    let back: Vec<i32> = (&t.transpose(1, 2)).try_into().unwrap();
    assert_eq!(back, [1, 3, 2, 4, 5, 7, 6, 8]);
    assert!(Vec::<f32>::try_from(&t).is_err());
    assert_eq!(Tensor::from(vec![1.5f32]).to_vec::<f32>(), [1.5]);
    assert_eq!(Tensor::from([[0f32; 0]; 3]).sizes(), [3, 0]);
    assert_eq!(tensor![].sizes(), [0]);
    assert_eq!(tensor![[true], [false]].sizes(), [2, 1]);
    assert!(tensor![1.0, 2.0].equal(&tensor![1, 2]) && !tensor![f64::NAN].equal(&tensor![f64::NAN]));
    assert!(v(&[INF, 1.0]).allclose(&v(&[INF, 1.0 + 1e-9]), 1e-5, 1e-8));
    assert!(!v(&[INF]).allclose(&v(&[1.0]), 1e-5, 1e-8) && !v(&[NAN]).allclose(&v(&[NAN]), 1.0, 1.0));
    assert!(tensor![100, 200].allclose(&tensor![101, 200], 0.02, 0.0));
}
