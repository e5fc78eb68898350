//! `#[derive(Module)]`: names, roles, generics, enums, and what is passed over.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, MemoryFormat};
use stridegrad_nn::{Member, Module, Visit};

fn tensor(value: f32) -> Tensor {
    Tensor::full([2], value).requires_grad_(true)
}

fn names(m: &impl Module) -> Vec<String> {
    m.named_parameters().into_iter().map(|(n, _)| n).collect()
}

#[derive(Module, Clone, Debug)]
#[module(crate = "stridegrad_nn")]
struct Layer {
    weight: Tensor,
    bias: Option<Tensor>,
    #[module(buffer)]
    running_mean: Option<Tensor>,
    eps: f64,
    name: String,
    #[module(training)]
    training: bool,
}

impl Layer {
    fn new() -> Layer {
        Layer {
            weight: tensor(1.0),
            bias: Some(tensor(2.0)),
            running_mean: Some(Tensor::zeros([2])),
            eps: 1e-5,
            name: "layer".into(),
            training: true,
        }
    }
}

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Net<M, T> {
    conv1: Layer,
    layers: Vec<Layer>,
    pair: (Layer, Tensor),
    fixed: [Layer; 2],
    heads: BTreeMap<String, Layer>,
    inner: M,
    boxed: Box<Layer>,
    r#type: Layer,
    #[module(rename = "renamed.to")]
    other: Layer,
    #[module(flatten)]
    flat: Layer,
    kinds: (usize, bool, Option<f32>, &'static str),
    format: MemoryFormat,
    #[module(skip)]
    scratch: Tensor,
    _marker: PhantomData<T>,
}

/// Not a module, and need not be: it is only behind PhantomData.
struct Marker;

fn net() -> Net<Layer, Marker> {
    Net {
        conv1: Layer::new(),
        layers: vec![Layer::new(), Layer { bias: None, ..Layer::new() }],
        pair: (Layer::new(), tensor(9.0)),
        fixed: [Layer::new(), Layer::new()],
        heads: BTreeMap::from([("a".to_owned(), Layer::new()), ("b".to_owned(), Layer::new())]),
        inner: Layer::new(),
        boxed: Box::new(Layer::new()),
        r#type: Layer::new(),
        other: Layer::new(),
        flat: Layer::new(),
        kinds: (1, true, None, "text"),
        format: MemoryFormat::Contiguous,
        scratch: tensor(0.0),
        _marker: PhantomData,
    }
}

#[test]
fn names_are_the_fields() {
    let want = [
        "conv1.weight",
        "conv1.bias",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "pair.0.weight",
        "pair.0.bias",
        "pair.1",
        "fixed.0.weight",
        "fixed.0.bias",
        "fixed.1.weight",
        "fixed.1.bias",
        "heads.a.weight",
        "heads.a.bias",
        "heads.b.weight",
        "heads.b.bias",
        "inner.weight",
        "inner.bias",
        "boxed.weight",
        "boxed.bias",
        "type.weight",
        "type.bias",
        "renamed.to.weight",
        "renamed.to.bias",
        "weight",
        "bias",
    ];
    assert_eq!(names(&net()), want);
    assert_eq!(net().named_buffers().len(), 13);
    assert_eq!(net().named_buffers()[1].0, "layers.0.running_mean");
    assert_eq!(net().num_parameters(), 2 * want.len());
}

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Tuple(Tensor, usize, Layer);

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Unit;

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
enum Shortcut<M> {
    Identity,
    Same(M),
    Convolved(M, Tensor),
    Named { scale: Tensor, by: f32 },
}

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Block {
    downsample: Shortcut<Layer>,
}

#[test]
fn tuples_units_and_enums() {
    assert_eq!(names(&Tuple(tensor(1.0), 3, Layer::new())), ["0", "2.weight", "2.bias"]);
    assert!(names(&Unit).is_empty());
    let block = |downsample| names(&Block { downsample });
    assert!(block(Shortcut::Identity).is_empty());
    assert_eq!(block(Shortcut::Same(Layer::new())), ["downsample.weight", "downsample.bias"]);
    assert_eq!(
        block(Shortcut::Convolved(Layer::new(), tensor(1.0))),
        ["downsample.0.weight", "downsample.0.bias", "downsample.1"]
    );
    assert_eq!(block(Shortcut::Named { scale: tensor(1.0), by: 2.0 }), ["downsample.scale"]);
}

#[test]
fn training_reaches_every_flag() {
    let mut net = net();
    let flags = |net: &Net<Layer, Marker>| {
        let mut flags = Vec::new();
        net.for_each(&mut |name, m| {
            if let Member::Training(on) = m {
                flags.push((name.to_owned(), on));
            }
        });
        flags
    };
    assert!(flags(&net).iter().all(|f| f.1));
    net.eval();
    assert_eq!(flags(&net).len(), 13);
    assert!(flags(&net).iter().all(|f| !f.1) && !net.conv1.training && !net.layers[1].training);
    net.train();
    assert!(flags(&net).iter().all(|f| f.1));
}

#[test]
fn a_duplicate_has_weights_of_its_own() {
    let shared = tensor(5.0);
    let tied = (Layer { weight: shared.clone(), ..Layer::new() }, shared);
    let both = tied.duplicate_with(&mut stridegrad_nn::Copies::new());
    assert!(both.0.weight.is_same(&both.1) && !both.1.shares_storage(&tied.1));
    assert!(both.1.requires_grad() && both.1.is_leaf());
    assert_eq!(both.0.weight.to_vec::<f32>(), [5.0, 5.0]);
    let (old, new) = (Layer::new(), Layer::new().duplicate());
    assert_eq!((&new.name, new.eps, new.training), (&old.name, old.eps, old.training));
    assert!(new.running_mean.is_some_and(|m| !m.requires_grad()));
    let clone = old.clone();
    assert!(clone.weight.is_same(&old.weight), "Clone is a handle");
}

#[test]
fn tied_parameters_are_listed_once_and_saved_twice() {
    let shared = tensor(1.0);
    let layers =
        vec![Layer { weight: shared.clone(), ..Layer::new() }, Layer { weight: shared, ..Layer::new() }];
    assert_eq!(names(&layers), ["0.weight", "0.bias", "1.bias"]);
    let all: Vec<_> = layers.state_dict().names().map(str::to_owned).collect();
    assert_eq!(all, ["0.weight", "0.bias", "0.running_mean", "1.weight", "1.bias", "1.running_mean"]);
    let moved = layers.to(DType::F64);
    assert!(moved[0].weight.is_same(&moved[1].weight), "still tied after to()");
}

#[test]
fn to_converts_parameters_and_buffers() {
    let net = net().to(DType::F64);
    assert!(net.parameters().iter().all(|p| p.dtype() == DType::F64 && p.requires_grad() && p.is_leaf()));
    assert!(net.named_buffers().iter().all(|(_, b)| b.dtype() == DType::F64 && !b.requires_grad()));
    assert_eq!(net.scratch.dtype(), DType::F32, "skipped fields stay");
    let weight = Tensor::zeros([2, 3, 4, 5]).requires_grad_(true);
    let counter = Tensor::scalar(3i64);
    let (w, bias, counter) = {
        let m = vec![weight.clone(), tensor(1.0), counter];
        let mut m = m.into_iter().map(|t| Tuple(t, 0, Layer::new())).collect::<Vec<_>>();
        m = m.to(MemoryFormat::ChannelsLast).to(DType::F64);
        (m[0].0.clone(), m[1].0.clone(), m[2].0.clone())
    };
    assert_eq!((w.strides(), w.requires_grad()), (&[60isize, 1, 15, 3][..], true));
    assert_eq!(bias.sizes(), [2]);
    assert_eq!(counter.dtype(), DType::I64, "integers are not converted");
}

#[test]
fn freezing_and_gradients() {
    let net = Layer::new();
    net.weight.mul(net.bias.as_ref().unwrap()).sum().backward();
    assert!(net.weight.grad().is_some());
    net.zero_grad();
    assert!(net.weight.grad().is_none());
    net.requires_grad_(false);
    assert!(net.parameters().iter().all(|p| !p.requires_grad()));
    assert_eq!(names(&net), ["weight", "bias"], "frozen parameters are parameters");
}
