//! IDX files: every dtype, plain and gzipped, and what hostile ones meet.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use stridegrad_core::{DType, ErrorKind};
use stridegrad_data::Idx;

fn file(code: u8, sizes: &[u32], payload: &[u8]) -> Vec<u8> {
    let mut b = vec![0, 0, code, sizes.len() as u8];
    sizes.iter().for_each(|n| b.extend(n.to_be_bytes()));
    b.extend(payload);
    b
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn refused(bytes: &[u8], says: &str) {
    for (how, r) in [("parse", Idx::parse(bytes)), ("read", Idx::read(bytes))] {
        let e = r.expect_err(how);
        assert_eq!(e.kind(), ErrorKind::Format, "{how}: {e}");
        assert!(e.to_string().contains(says), "{how}: {e} does not say {says:?}");
    }
}

#[test]
fn every_dtype_reads_big_endian() {
    let same = |b: &[u8]| {
        let idx = Idx::parse(b).unwrap();
        assert_eq!(Idx::parse(&gzip(b)).unwrap(), idx);
        assert_eq!(Idx::read(b).unwrap(), idx);
        assert_eq!(Idx::read(&gzip(b)[..]).unwrap(), idx);
        idx
    };
    let u = same(&file(0x08, &[2, 2], &[0, 1, 128, 255]));
    assert_eq!((u.dtype(), u.sizes(), u.numel()), (DType::U8, &[2, 2][..], 4));
    assert_eq!(u.to_vec::<u8>().unwrap(), [0, 1, 128, 255]);
    assert_eq!(same(&file(0x09, &[2], &[0xff, 0x80])).to_vec::<i8>().unwrap(), [-1, -128]);
    assert_eq!(same(&file(0x0b, &[2], &[1, 2, 0xff, 0xfe])).to_vec::<i16>().unwrap(), [258, -2]);
    let i = [1i32, -70000].map(i32::to_be_bytes).concat();
    assert_eq!(same(&file(0x0c, &[2], &i)).to_vec::<i32>().unwrap(), [1, -70000]);
    let f = [1.5f32, -0.25].map(f32::to_be_bytes).concat();
    assert_eq!(same(&file(0x0d, &[1, 2], &f)).to_vec::<f32>().unwrap(), [1.5, -0.25]);
    let d = [1e300f64].map(f64::to_be_bytes).concat();
    let d = same(&file(0x0e, &[1, 1, 1], &d));
    assert_eq!(d.to_vec::<f64>().unwrap(), [1e300]);
    assert_eq!(d.to_vec::<f32>().unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(d.into_bytes().unwrap_err().kind(), ErrorKind::DType);
    assert_eq!(same(&file(0x0e, &[0, 3], &[])).numel(), 0);
}

#[test]
fn gzip_of_several_members_is_one_stream() {
    let b = file(0x08, &[4], &[1, 2, 3, 4]);
    let joined = [gzip(&b[..6]), gzip(&b[6..])].concat();
    assert_eq!(Idx::parse(&joined).unwrap().to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn malformed_headers_are_refused() {
    refused(&[], "truncated within the magic");
    refused(&[0, 0, 8], "truncated within the magic");
    refused(b"PNG!", "wrong magic");
    refused(&[0, 1, 8, 1, 0, 0, 0, 0], "wrong magic");
    for code in [0, 1, 7, 0x0a, 0x0f, 0xff] {
        refused(&file(code, &[1], &[0]), "unknown type code");
    }
    refused(&file(8, &[], &[1]), "rank 0");
    refused(&file(8, &[1; 9], &[1]), "rank 9");
    refused(&[0, 0, 8, 255, 0, 0], "rank 255");
    refused(&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0], "truncated within the sizes");
    refused(&file(8, &[u32::MAX; 8], &[]), "overflow");
    refused(&file(8, &[0, u32::MAX, u32::MAX, u32::MAX], &[]), "overflow");
    refused(&file(0x0e, &[1 << 31, 1 << 31, 1], &[]), "overflow");
}

#[test]
fn payloads_must_fit_exactly() {
    let b = file(8, &[2, 3], &[0; 6]);
    refused(&b[..b.len() - 1], "truncated");
    refused(&[b.clone(), vec![0]].concat(), "follow the values");
    refused(&gzip(&b[..b.len() - 1]), "truncated");
    refused(&gzip(&[b.clone(), vec![0]].concat()), "follow the values");
}

#[test]
fn claims_are_not_believed() {
    // A terabyte claimed by a few bytes: refused by arithmetic where the length is known, and by running out
    // of bytes where it is not; neither allocates it.
    let huge = file(8, &[1 << 20, 1 << 20], &[7; 16]);
    refused(&huge, "truncated");
    refused(&gzip(&huge), "truncated");
}

#[test]
fn a_gzip_bomb_stops_at_the_claimed_size() {
    // Sixty-four MiB of zeros behind a header that claims ten bytes.
    let mut bomb = file(8, &[10], &[]);
    bomb.resize(64 << 20, 0);
    let bomb = gzip(&bomb);
    refused(&bomb, "follow the values");
}

#[test]
fn broken_gzip_is_refused() {
    let good = gzip(&file(8, &[100], &(0..100).collect::<Vec<u8>>()));
    for cut in 0..good.len() {
        assert_eq!(Idx::parse(&good[..cut]).unwrap_err().kind(), ErrorKind::Format, "cut at {cut}");
    }
    let mut sum = good.clone();
    let at = sum.len() - 6;
    sum[at] ^= 1;
    refused(&sum, "broken");
    refused(&[good, b"tail".to_vec()].concat(), "broken");
}

#[test]
fn files_are_named_in_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels");
    let e = Idx::open(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io);
    assert!(e.to_string().contains("labels"), "{e}");
    std::fs::write(&path, [0, 0, 8, 1, 0, 0, 0, 9, 1]).unwrap();
    let e = Idx::open(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Format);
    assert!(e.to_string().contains("labels") && e.to_string().contains("9 bytes"), "{e}");
    std::fs::write(&path, gzip(&file(8, &[1], &[5]))).unwrap();
    assert_eq!(Idx::open(&path).unwrap().into_bytes().unwrap(), [5]);
    assert_eq!(Idx::open(dir.path()).unwrap_err().kind(), ErrorKind::Io);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), idx in any::<bool>()) {
        if idx && bytes.len() >= 4 {
            bytes[..3].copy_from_slice(&[0, 0, 8]);
            bytes[3] %= 4;
        }
        if let Ok(idx) = Idx::parse(&bytes) {
            prop_assert_eq!(idx.sizes().iter().product::<usize>(), idx.numel());
        }
        let _ = Idx::read(&gzip(&bytes)[..]);
    }

    #[test]
    fn round_trip(sizes in proptest::collection::vec(0u32..5, 1..4), seed in any::<u8>()) {
        let n = sizes.iter().product::<u32>();
        let payload: Vec<u8> = (0..n).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
        let b = file(8, &sizes, &payload);
        prop_assert_eq!(Idx::parse(&b).unwrap().into_bytes().unwrap(), payload.clone());
        prop_assert_eq!(Idx::parse(&gzip(&b)).unwrap().into_bytes().unwrap(), payload);
    }
}
