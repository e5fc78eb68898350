//! State dicts and checkpoints through files.

use std::collections::BTreeMap;

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, ErrorKind, Generator, MemoryFormat};
use stridegrad_io::safetensors::{FileDType, SafeTensors, Spec, write};
use stridegrad_io::{Checkpoint, SaveLoad, load_state, load_state_file, save_state, save_state_with};
use stridegrad_nn::{Module, StateDict};
use stridegrad_optim::{AdamW, LrScheduler, Optimizer, Sgd, StepLr};

fn state(entries: Vec<(&str, Tensor)>) -> StateDict {
    entries.into_iter().collect()
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.dtype(), a.sizes()), (b.dtype(), b.sizes()));
    assert_eq!(a.try_to_le_bytes().unwrap(), b.try_to_le_bytes().unwrap());
}

#[test]
fn every_dtype_and_shape() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    let mut all = StateDict::new();
    for d in DType::ALL {
        all.push(format!("{d}.matrix"), Tensor::arange(6.0).view([2, 3]).to_dtype(d));
        all.push(format!("{d}.scalar"), Tensor::scalar(1.0).to_dtype(d));
        all.push(format!("{d}.empty"), Tensor::zeros([2, 0]).to_dtype(d));
    }
    save_state(&path, &all).unwrap();
    let read = load_state(&path).unwrap();
    assert_eq!(read.len(), all.len());
    for (name, t) in all.iter() {
        same(read.get(name).unwrap(), t);
    }
}

/// Values and the order of memory survive (T50), whatever the view.
#[test]
fn layouts_are_restored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.safetensors");
    let t = Tensor::arange(120.0).view([2, 3, 4, 5]);
    let cl = |n, c, h, w| Tensor::ones([n, c, h, w]).to_format(MemoryFormat::ChannelsLast);
    let dense = state(vec![
        ("transposed", Tensor::arange(6.0).view([2, 3]).t()),
        ("channels_last", t.to_format(MemoryFormat::ChannelsLast)),
        ("one_channel", cl(2, 1, 4, 5)),
        ("one_pixel", cl(2, 3, 1, 1)),
        ("permuted", t.permute([3, 1, 0, 2])),
        ("with_ones", Tensor::arange(6.0).view([3, 1, 2]).permute([2, 1, 0])),
        ("row_major", t.clone()),
    ]);
    let gaps = state(vec![
        ("narrowed", t.narrow(1, 1, 2)),
        ("expanded", Tensor::ones([1, 3]).expand([4, 3])),
        ("reversed", t.reversed([0])),
    ]);
    let mut all = dense.clone();
    all.extend(gaps.clone());
    save_state(&path, &all).unwrap();
    let read = load_state(&path).unwrap();
    for (name, t) in all.iter() {
        same(read.get(name).unwrap(), t);
    }
    for (name, t) in dense.iter() {
        let u = read.get(name).unwrap();
        let strides = |t: &Tensor| -> Vec<_> {
            (0..t.dim()).filter(|&d| t.sizes()[d] != 1).map(|d| t.strides()[d]).collect()
        };
        assert_eq!(strides(u), strides(t), "{name}");
        assert_eq!(u.suggested_format(), t.suggested_format(), "{name}");
    }
    for (name, _) in gaps.iter() {
        assert!(read.get(name).unwrap().is_contiguous(), "{name}");
    }
}

#[test]
fn metadata_is_kept_and_layouts_are_not_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let meta = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    save_state_with(&path, &state(vec![("t", Tensor::ones([2, 3]).t())]), meta.clone()).unwrap();
    assert_eq!(load_state_file(&path).unwrap().metadata, meta);
    save_state(&path, &state(vec![("t", Tensor::ones([2]))])).unwrap();
    assert_eq!(load_state_file(&path).unwrap().metadata["format"], "pt");
}

#[test]
fn hostile_layouts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for bad in [
        "{",
        "[]",
        r#"{"t":[0,0]}"#,
        r#"{"t":[0]}"#,
        r#"{"t":[0,2]}"#,
        r#"{"t":[0,1,2]}"#,
        r#"{"t":"channels_last"}"#,
        r#"{"t":[-1,0]}"#,
        r#"{"t":7}"#,
    ] {
        let meta = BTreeMap::from([("stridegrad.layouts".to_owned(), bad.to_owned())]);
        save_state_with(&path, &state(vec![("t", Tensor::ones([2, 3]))]), meta).unwrap();
        let e = load_state(&path).expect_err(bad);
        assert_eq!(e.kind(), ErrorKind::Format, "{bad}: {e}");
    }
}

#[test]
fn dtypes_that_tensors_do_not_have() {
    let spec = [Spec { name: "t".into(), dtype: FileDType::U16, shape: vec![2] }];
    let mut bytes = Vec::new();
    write(&mut bytes, &spec, &BTreeMap::new(), &mut |_, b| {
        b.extend([1, 0, 2, 0]);
        Ok(())
    })
    .unwrap();
    let file = SafeTensors::from_bytes(bytes).unwrap();
    assert_eq!(file.bytes("t").unwrap(), [1, 0, 2, 0]);
    let e = stridegrad_io::StateFile::read(&file).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
}

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Net {
    weight: Tensor,
    bias: Tensor,
}

fn net(value: f64) -> Net {
    let make = |sizes: [usize; 2]| Tensor::full(sizes, value).requires_grad_(true);
    Net { weight: make([2, 3]), bias: make([1, 2]) }
}

#[test]
fn modules_save_and_load() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.safetensors");
    net(3.0).save(&path).unwrap();
    let mut other = net(0.0);
    other.load(&path).unwrap().require_complete().unwrap();
    assert_eq!(other.weight.to_vec::<f32>(), [3.0; 6]);
    save_state(&path, &state(vec![("weight", Tensor::ones([2, 3]))])).unwrap();
    let report = other.load(&path).unwrap();
    assert_eq!(report.missing, ["bias"]);
    assert_eq!(other.load(dir.path().join("none")).unwrap_err().kind(), ErrorKind::Io);
}

fn train(
    net: &Net,
    opt: &mut dyn Optimizer,
    scheduler: &mut LrScheduler<StepLr>,
    g: &Generator,
    steps: usize,
) {
    for _ in 0..steps {
        opt.zero_grad();
        let noise = Tensor::rand([2, 3], g);
        let y = net.weight.mul(&noise).add(net.bias.sum());
        y.mul(&y).sum().backward();
        opt.step();
        scheduler.step(opt);
    }
}

fn resumed<O: Optimizer>(make: impl Fn(&Net) -> O) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.safetensors");
    let schedule = || StepLr::new(2).gamma(1.0 / 3.0);
    let (whole, g) = (net(0.7), Generator::new(5));
    let mut opt = make(&whole);
    let mut scheduler = LrScheduler::new(&mut opt, schedule());
    train(&whole, &mut opt, &mut scheduler, &g, 3);

    let mut c = Checkpoint::new();
    c.model = whole.state_dict();
    c.optimizer = Some(opt.state());
    c.scheduler = Some(scheduler.state().clone());
    (c.epoch, c.batch) = (2, 9);
    c.generators.insert("dropout".into(), g.state());
    c.extra.insert("seed".into(), u64::MAX.to_string());
    c.save(&path).unwrap();
    train(&whole, &mut opt, &mut scheduler, &g, 4);

    let c = Checkpoint::load(&path).unwrap();
    let mut half = net(0.0);
    half.load(&path).unwrap().require_complete().unwrap(); // a checkpoint is a state dict too
    half.load_state_dict(&c.model).unwrap().require_complete().unwrap();
    let mut opt = make(&half);
    let mut scheduler = LrScheduler::new(&mut opt, schedule());
    opt.load_state(&c.optimizer.unwrap()).unwrap();
    scheduler.load_state(&c.scheduler.unwrap(), &mut opt).unwrap();
    assert_eq!((c.epoch, c.batch, &c.extra["seed"][..]), (2, 9, "18446744073709551615"));
    train(&half, &mut opt, &mut scheduler, &Generator::from_state(c.generators["dropout"]), 4);
    same(&half.weight.detach(), &whole.weight.detach());
    same(&half.bias.detach(), &whole.bias.detach());
}

#[test]
fn resumed_training_gives_the_same_bits() {
    resumed(|n| Sgd::new(n.parameters(), 0.1 / 3.0).momentum(0.9).weight_decay(1e-4));
    resumed(|n| AdamW::new(n.parameters(), 0.1 / 3.0).amsgrad(true));
}

#[test]
fn only_checkpoints_are_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    net(1.0).save(&path).unwrap();
    let e = Checkpoint::load(&path).unwrap_err();
    assert!(e.kind() == ErrorKind::Format && e.to_string().contains("not a checkpoint"), "{e}");
    let empty = Checkpoint::new();
    empty.save(&path).unwrap();
    let head = load_state_file(&path).unwrap().metadata["stridegrad.checkpoint"].clone();
    Checkpoint::load(&path).unwrap();
    for (bad, says) in [
        (head.replace("\"version\":1", "\"version\":2"), "version 2"),
        (head.replace("\"version\":1", "\"version\":\"one\""), "without a version"),
        (head.replace("\"epoch\":0", "\"epoch\":-1"), "malformed"),
        (head.replace("\"generators\":{}", "\"generators\":{\"g\":{\"seed\":1}}"), "malformed"),
        (head.replace("\"optimizer\":null", "\"optimizer\":{}"), "malformed"),
        (head.replace("\"scheduler\":null", "\"scheduler\":{\"step\":1,\"base_lrs\":[0.1]}"), "malformed"),
        ("nonsense".to_owned(), "malformed"),
    ] {
        assert_ne!(bad, head);
        let meta = BTreeMap::from([("stridegrad.checkpoint".to_owned(), bad)]);
        save_state_with(&path, &StateDict::new(), meta).unwrap();
        let e = Checkpoint::load(&path).unwrap_err();
        assert!(e.kind() == ErrorKind::Format && e.to_string().contains(says), "{e}");
    }
}
