//! The facts about strides that the project's source documents state, one test each. `cargo run --bin strides` shows
//! them.
#![forbid(unsafe_code)]

use stridegrad::prelude::*;
use stridegrad::{ErrorKind, Layout, audit::Audit};

fn arange_i32(sizes: [usize; 2]) -> Tensor {
    let values: Vec<i32> = (0..(sizes[0] * sizes[1]) as i32).collect();
    Tensor::from_slice(&values, sizes)
}

fn byte_strides(t: &Tensor) -> Vec<isize> {
    t.layout().byte_strides(t.dtype().size()).to_vec()
}

#[test]
fn twelve_f32_are_48_bytes_in_rows() {
    let x = Tensor::arange(12.0).view([3, 4]);
    assert_eq!(x.storage_bytes(), 48);
    assert_eq!(x.strides(), [4, 1]);
    assert_eq!(x.layout().index_of(&[1, 2]), Some(6));
    assert_eq!(x.select(0, 1).select(0, 2).item::<f32>(), 6.0);
    assert_eq!(Tensor::zeros([2, 3, 4]).strides(), [12, 4, 1]);
}

#[test]
fn a_view_has_the_same_storage_and_writes_through() {
    let x = Tensor::arange(12.0).reshape([3, 4]);
    let y = x.view([2, 6]);
    assert!(y.shares_storage(&x) && y.storage_offset() == x.storage_offset());
    assert_eq!((x.strides(), y.strides()), (&[4, 1][..], &[6, 1][..]));
    y.select(0, 0).select(0, 0).fill_(999.0);
    assert_eq!(x.select(0, 0).select(0, 0).item::<f32>(), 999.0);
}

#[test]
fn reshape_is_a_view_where_strides_merge_and_a_copy_elsewhere() {
    let x = Tensor::arange(24.0).reshape([2, 3, 4]);
    assert!(x.reshape([6, 4]).shares_storage(&x));
    let copy = x.permute([2, 1, 0]).reshape([4, 6]);
    assert!(!copy.shares_storage(&x));
    assert_eq!(copy.strides(), [6, 1]);
    assert_eq!(copy.select(0, 0).to_vec::<f32>(), [0.0, 12.0, 4.0, 16.0, 8.0, 20.0]);
}

#[test]
fn a_permuted_image_keeps_its_strides_numbers() {
    let x = Tensor::zeros([2, 3, 4, 4]);
    assert_eq!(x.strides(), [48, 16, 4, 1]);
    assert!(x.is_contiguous());
    let p = x.permute([0, 2, 3, 1]);
    assert_eq!(p.strides(), [48, 4, 1, 16]);
    assert!(!p.is_contiguous());
    assert_eq!(p.contiguous().strides(), [48, 12, 3, 1]);
}

#[test]
fn byte_strides_of_i32() {
    let flat = Tensor::from_slice(&(0..12).collect::<Vec<i32>>(), [12]);
    let x = flat.reshape([3, 4]);
    let t = x.t();
    assert_eq!(byte_strides(&flat), [4]);
    assert_eq!(byte_strides(&x), [16, 4]);
    assert_eq!(byte_strides(&t), [4, 16]);
    assert!(x.shares_storage(&flat) && t.shares_storage(&flat));
    let cell = x.layout().index_of(&[2, 1]).unwrap();
    assert_eq!((cell * 4, cell), (36, 9));
    assert_eq!(x.select(0, 2).select(0, 1).item::<i32>(), 9);
    let columns = x.slice(1, Some(1), Some(3), 1);
    assert_eq!((columns.strides(), columns.storage_offset()), (x.strides(), 1));
    assert_eq!(columns.to_vec::<i32>(), [1, 2, 5, 6, 9, 10]);
    assert_eq!(t.try_view([12]).unwrap_err().kind(), ErrorKind::NotViewable);
    let flattened = t.flatten(0, -1);
    assert!(!flattened.shares_storage(&x));
    assert_eq!(flattened.to_vec::<i32>(), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
}

#[test]
fn view_refuses_where_reshape_flatten_and_ravel_copy() {
    let x = Tensor::arange(6.0).view([2, 3]);
    let t = x.t();
    assert_eq!(t.try_view([6]).unwrap_err().kind(), ErrorKind::NotViewable);
    for copy in [t.reshape([6]), t.flatten(0, -1), t.ravel()] {
        assert!(!copy.shares_storage(&x));
        assert_eq!(copy.to_vec::<f32>(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    }
    for view in [x.view([6]), x.reshape([6]), x.flatten(0, -1), x.ravel()] {
        assert!(view.shares_storage(&x));
    }
    // The copies that nobody asked for are counted, with the line that caused them.
    let audit = Audit::start();
    t.reshape([6]);
    x.reshape([6]);
    let copies = audit.copies();
    assert_eq!((copies.len(), copies[0].op, copies[0].bytes), (1, "reshape", 24));
    assert!(copies[0].caller.unwrap().file().ends_with("facts.rs"));
}

#[test]
fn broadcasting_copies_nothing() {
    let x = arange_i32([2, 3]);
    let e = x.expand([4, 2, 3]);
    assert_eq!(byte_strides(&e), [0, 12, 4]);
    assert!(e.shares_storage(&x));
    let row = Tensor::arange(1000.0).view([1, 1000]);
    let (expanded, repeated) = (row.expand([32, 1000]), row.repeat([32, 1]));
    assert_eq!((expanded.storage_bytes(), repeated.storage_bytes()), (4000, 32 * 4000));
    assert_eq!(expanded.to_vec::<f32>(), repeated.to_vec::<f32>());
}

#[test]
fn contiguity_by_its_recurrences() {
    for sizes in [&[3, 4][..], &[2, 3, 4], &[2, 3, 4, 5], &[7], &[2, 2, 2, 2, 2]] {
        let n = sizes.len();
        let (mut c, mut f) = (vec![1isize; n], vec![1isize; n]);
        for k in 1..n {
            c[n - 1 - k] = c[n - k] * sizes[n - k] as isize;
            f[k] = f[k - 1] * sizes[k - 1] as isize;
        }
        assert_eq!(Tensor::zeros(sizes).strides(), c);
        let fortran = Layout::new(sizes, &f, 0).unwrap();
        assert!(fortran.is_fortran_contiguous());
        assert_eq!(fortran.is_contiguous(), n == 1);
        // A row-major tensor is column-major with its dims the other way round.
        let reversed: Vec<usize> = (0..n).rev().collect();
        assert!(Tensor::zeros(sizes).permute(reversed).layout().is_fortran_contiguous());
    }
}

#[test]
fn contiguous_copies_only_when_needed() {
    let x = Tensor::arange(12.0).view([3, 4]);
    assert!(x.contiguous().is_same(&x));
    let t = x.t();
    assert!(!t.contiguous().shares_storage(&x));
    assert_eq!(t.contiguous().to_vec::<f32>(), t.to_vec::<f32>());
}

#[test]
fn promotion_of_tensors_and_numbers() {
    let (i, f) = (arange_i32([2, 2]), Tensor::ones([2, 2]));
    assert_eq!((&i + &f).dtype(), DType::F32);
    let zero_dim = Tensor::scalar(2.0);
    for sum in [&zero_dim + 1, &zero_dim + 1.0f64, &zero_dim + 1.0f32, &zero_dim + 1i64, 1 + &zero_dim] {
        assert_eq!((sum.dtype(), sum.item::<f32>()), (DType::F32, 3.0));
    }
}

#[test]
fn a_convolution_reads_the_strides_it_is_given() {
    // The same images and weights in both formats, and with gaps: the values are the same, the format of the result is
    // what the strides suggest.
    let cl = |t: &Tensor| t.to_format(MemoryFormat::ChannelsLast);
    let (x, w) =
        (Tensor::arange(240.0).view([2, 3, 5, 8]) * 0.1, Tensor::arange(54.0).view([2, 3, 3, 3]) * 0.1);
    let options = stridegrad::Conv2dOptions::new().padding(1);
    let want = x.conv2d(&w, None, options);
    assert_eq!(want.suggested_format(), MemoryFormat::Contiguous);
    let gaps = Tensor::zeros([2, 3, 10, 8]).i(s![.., .., ..;2]).copy_(&x);
    let backwards = cl(&x.flip(3)).i(s![Ellipsis, ..;-1]);
    for (x, w, format) in [
        (&cl(&x), &w, MemoryFormat::ChannelsLast),
        (&x, &cl(&w), MemoryFormat::ChannelsLast),
        (&gaps, &w, MemoryFormat::Contiguous),
        (&backwards, &w, MemoryFormat::Contiguous),
    ] {
        let got = x.conv2d(w, None, options);
        assert_eq!(got.suggested_format(), format);
        let (got, want) = (got.to_vec::<f32>(), want.to_vec::<f32>());
        assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs()), "{:?}", x.strides());
    }
}
