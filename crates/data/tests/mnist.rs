//! MNIST as a dataset: a made-up set in a directory, and the real one that comes with the repository.

use std::path::Path;

use stridegrad_core::{Device, ErrorKind, Result};
use stridegrad_data::{DataLoader, Dataset, Idx, Mnist};

fn idx(sizes: &[u32], payload: &[u8]) -> Vec<u8> {
    let mut b = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|n| b.extend(n.to_be_bytes()));
    b.extend(payload);
    b
}

fn write(dir: &Path, images: &[u8], labels: &[u8]) {
    std::fs::write(dir.join("train-images-idx3-ubyte"), images).unwrap();
    std::fs::write(dir.join("train-labels-idx1-ubyte"), labels).unwrap();
}

#[test]
fn batches_are_scaled_and_labelled() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &idx(&[3, 1, 2], &[0, 255, 51, 102, 255, 0]), &idx(&[3], &[7, 0, 9]));
    let set = Mnist::train_in(dir.path()).unwrap();
    let (x, y) = set.batch(&[2, 0]).unwrap();
    assert_eq!((x.sizes(), y.sizes()), (&[2, 1, 1, 2][..], &[2][..]));
    assert_eq!(x.to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(y.to_vec::<i64>(), [9, 7]);
    assert_eq!(set.batch(&[3]).unwrap_err().kind(), ErrorKind::Index);
    let (x, _) = set.clone().normalize(0.2, 0.4).batch(&[1]).unwrap();
    assert!(x.to_vec::<f32>().iter().zip([0.0, 0.5]).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(set.clone().take(2).len(), 2);
    assert_eq!((set.image(1), set.image(3), set.labels()), (Some(&[51, 102][..]), None, &[7, 0, 9][..]));
    let loader = DataLoader::new(set).batch_size(2).to(&Device::CPU).workers(1);
    let sizes: Vec<usize> = loader.epoch(0).map(|b| Ok(b?.0.sizes()[0])).collect::<Result<_>>().unwrap();
    assert_eq!(sizes, [2, 1]);
}

#[test]
fn malformed_sets_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |images: &[u8], labels: &[u8], says: &str| {
        write(dir.path(), images, labels);
        let e = Mnist::train_in(dir.path()).unwrap_err();
        assert!(e.to_string().contains(says), "{e}");
    };
    refused(&idx(&[2, 2], &[0; 4]), &idx(&[2], &[0; 2]), "not (n, height, width)");
    refused(&idx(&[2, 1, 1], &[0; 2]), &idx(&[3], &[0; 3]), "2 images, but labels");
    refused(&idx(&[1, 1, 1], &[0]), &idx(&[1], &[10]), "label 10 at 0");
    refused(&idx(&[1, 1, 1], &[]), &idx(&[1], &[1]), "truncated");
    let e = Mnist::test_in(dir.path()).unwrap_err();
    assert!(e.kind() == ErrorKind::Io && e.to_string().contains("t10k-images"), "{e}");
    let floats = Idx::parse(&[0, 0, 0x0d, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]).unwrap();
    let labels = Idx::parse(&idx(&[0], &[])).unwrap();
    assert_eq!(Mnist::from_idx(floats, labels).unwrap_err().kind(), ErrorKind::DType);
}

#[test]
fn the_real_set_comes_with_the_repository() {
    let (train, test) = (Mnist::train().unwrap(), Mnist::test().unwrap());
    assert_eq!((train.len(), test.len()), (60_000, 10_000));
    assert_eq!(train.labels()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    assert_eq!(test.labels()[..10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    let mean = |m: &Mnist| {
        let bytes = (0..m.len()).flat_map(|i| m.image(i).unwrap());
        bytes.map(|&b| u64::from(b)).sum::<u64>() as f64 / (m.len() * 784 * 255) as f64
    };
    assert!((mean(&train) - 0.1307).abs() < 1e-4);
    assert!((mean(&test) - 0.1325).abs() < 1e-4);
}
