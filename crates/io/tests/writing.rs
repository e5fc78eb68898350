//! The writer against the reference reader, and atomic replacement.

use std::collections::BTreeMap;
use std::path::Path;

use stridegrad_core::{Error, ErrorKind};
use stridegrad_io::safetensors::{FileDType, SafeTensors, Spec, parse, write};
use stridegrad_io::write_atomically;

fn spec(name: &str, dtype: FileDType, shape: &[usize]) -> Spec {
    Spec { name: name.into(), dtype, shape: shape.into() }
}

fn written(specs: &[Spec], metadata: &[(&str, &str)]) -> Vec<u8> {
    let metadata = metadata.iter().map(|&(k, v)| (k.into(), v.into())).collect();
    let mut out = Vec::new();
    write(&mut out, specs, &metadata, &mut |i, bytes| {
        let n = specs[i].dtype.bytes(&specs[i].shape).unwrap();
        bytes.extend((0..n).map(|k| (k as u8).wrapping_mul(i as u8 + 1) & 1));
        Ok(())
    })
    .unwrap();
    out
}

#[test]
fn ordered_padded_and_read_back() {
    let specs = [
        spec("u", FileDType::U8, &[3]),
        spec("b", FileDType::F32, &[2, 2]),
        spec("a", FileDType::F32, &[]),
        spec("z", FileDType::F64, &[0, 4]),
        spec("h", FileDType::BF16, &[1]),
        spec("quo\"te\n", FileDType::Bool, &[2]),
    ];
    for metadata in [&[][..], &[("format", "pt"), ("k", "\u{1F980}")]] {
        let bytes = written(&specs, metadata);
        let n = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert_eq!(n % 8, 0);
        let header = parse(&bytes).unwrap();
        let names: Vec<_> = header.entries.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["z", "a", "b", "h", "quo\"te\n", "u"]);
        assert_eq!(header.metadata.len(), metadata.len());
        let reference = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let ours = SafeTensors::from_bytes(bytes.clone()).unwrap();
        for s in &specs {
            let t = reference.tensor(&s.name).unwrap();
            assert_eq!((t.shape(), t.data()), (&s.shape[..], &ours.bytes(&s.name).unwrap()[..]));
            assert_eq!(t.dtype().to_string(), s.dtype.name());
        }
    }
}

#[test]
fn same_bytes_as_the_reference_writer() {
    let specs =
        [spec("w", FileDType::F32, &[2, 3]), spec("n", FileDType::I64, &[]), spec("b", FileDType::F32, &[2])];
    let bytes = written(&specs, &[]);
    let views = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(safetensors::serialize(views.tensors(), None).unwrap(), bytes);
}

#[test]
fn names_and_sizes_are_validated() {
    let refused = |specs: &[Spec]| {
        let one = &mut |_, b: &mut Vec<u8>| {
            b.push(1);
            Ok(())
        };
        write(&mut Vec::new(), specs, &BTreeMap::new(), one).unwrap_err().kind()
    };
    let a = spec("a", FileDType::U8, &[1]);
    assert_eq!(refused(&[a.clone(), a]), ErrorKind::StateDict);
    assert_eq!(refused(&[spec("__metadata__", FileDType::U8, &[1])]), ErrorKind::StateDict);
    assert_eq!(refused(&[spec("a", FileDType::U8, &[2])]), ErrorKind::Format);
    assert_eq!(refused(&[spec("a", FileDType::F64, &[usize::MAX])]), ErrorKind::Overflow);
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn failures_leave_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    write_atomically(&path, |out| Ok(out.write_all(b"old")?)).unwrap();
    let e = write_atomically(&path, |out| {
        out.write_all(&[0; 1 << 20])?;
        Err(Error::new(ErrorKind::Argument, "test", "stop"))
    });
    assert_eq!(e.unwrap_err().kind(), ErrorKind::Argument);
    let panicked = std::panic::catch_unwind(|| write_atomically(&path, |_| panic!("in the middle")));
    assert!(panicked.is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(entries(dir.path()), 1, "temporary files stay behind");
    assert_eq!(write_atomically(dir.path().join("no/f"), |_| Ok(())).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(write_atomically(dir.path(), |_| Ok(())).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(write_atomically("", |_| Ok(())).unwrap_err().kind(), ErrorKind::Io);
}

#[cfg(unix)]
#[test]
fn permissions_links_and_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("f"), dir.path().join("link"));
    std::fs::write(&path, b"old").unwrap();
    let mode = |m| std::fs::set_permissions(&path, PermissionsExt::from_mode(m)).unwrap();
    mode(0o640);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    write_atomically(&link, |out| Ok(out.write_all(b"new")?)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert!(link.is_symlink());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    mode(0o440);
    let e = write_atomically(&path, |_| Ok(())).unwrap_err();
    assert!(e.to_string().contains("read-only"), "{e}");
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}
