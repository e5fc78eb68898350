//! Loading state dicts: what fits, what does not, and what the report says.

use stridegrad_autograd::Tensor;
use stridegrad_core::{DType, ErrorKind, MemoryFormat};
use stridegrad_nn::{Module, StateDict};

#[derive(Module)]
#[module(crate = "stridegrad_nn")]
struct Net {
    weight: Tensor,
    bias: Tensor,
    #[module(buffer)]
    count: Tensor,
}

fn net() -> Net {
    Net {
        weight: Tensor::zeros([2, 3]).requires_grad_(true),
        bias: Tensor::zeros([2]).requires_grad_(true),
        count: Tensor::scalar(0i64),
    }
}

fn state(entries: Vec<(&str, Tensor)>) -> StateDict {
    entries.into_iter().collect()
}

#[test]
fn a_state_dict_is_the_module_itself() {
    let net = net();
    let state = net.state_dict();
    assert_eq!(state.names().collect::<Vec<_>>(), ["weight", "bias", "count"]);
    let w = state.get("weight").unwrap();
    assert!(w.shares_storage(&net.weight) && !w.requires_grad());
    assert!(state.get("nothing").is_none());
}

#[test]
fn what_fits_is_loaded() {
    let mut net = net();
    let handles = (net.weight.clone(), net.weight.version());
    let report = net
        .load_state_dict(&state(vec![
            ("weight", Tensor::ones([2, 3])),
            ("bias", Tensor::ones([2])),
            ("count", Tensor::scalar(7i64)),
        ]))
        .unwrap();
    assert!(report.is_complete());
    report.require_complete().unwrap();
    assert_eq!(report.loaded, ["weight", "bias", "count"]);
    assert_eq!(net.count.item::<i64>(), 7);
    assert!(net.weight.is_same(&handles.0) && net.weight.requires_grad() && net.weight.is_leaf());
    assert!(net.weight.version() > handles.1, "a graph that saved the old weight must notice");
}

#[test]
fn the_report_names_what_does_not_fit() {
    let mut net = net();
    let report = net
        .load_state_dict(&state(vec![
            ("weight", Tensor::ones([3, 2])),
            ("bias", Tensor::ones([2]).to_dtype(DType::F64)),
            ("extra", Tensor::ones([1])),
        ]))
        .unwrap();
    assert!(!report.is_complete());
    assert_eq!(report.loaded, ["bias"]);
    assert_eq!(report.missing, ["count"]);
    assert_eq!(report.unexpected, ["extra"]);
    assert_eq!(report.converted, [("bias".to_owned(), DType::F64)]);
    assert_eq!(report.mismatched[0].name, "weight");
    assert_eq!(
        (&report.mismatched[0].module.sizes[..], &report.mismatched[0].state.sizes[..]),
        (&[2, 3][..], &[3, 2][..])
    );
    assert_eq!(net.bias.to_vec::<f32>(), [1.0, 1.0]);
    assert_eq!(net.weight.to_vec::<f32>(), [0.0; 6]);
    let e = report.require_complete().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::StateDict);
    for part in
        ["missing: count", "unexpected: extra", "weight: the module has f32 [2, 3], the state f32 [3, 2]"]
    {
        assert!(e.to_string().contains(part), "{e}");
    }
}

#[test]
fn integers_and_floats_do_not_mix() {
    let mut net = net();
    let report = net.load_state_dict(&state(vec![("count", Tensor::scalar(7.5))])).unwrap();
    assert_eq!(report.mismatched[0].name, "count");
    assert_eq!(net.count.item::<i64>(), 0);
}

#[test]
fn strides_of_the_module_stay() {
    let mut weight = vec![Tensor::zeros([2, 3, 2, 2]).requires_grad_(true)];
    weight[0] = weight[0].detach().to_format(MemoryFormat::ChannelsLast).requires_grad_(true);
    let mut m = weight.into_iter().map(|weight| Net { weight, ..net() }).collect::<Vec<_>>();
    let values = Tensor::arange(24.0).view([2, 3, 2, 2]);
    let _ = m.load_state_dict(&state(vec![("0.weight", values.clone())])).unwrap();
    assert_eq!(m[0].weight.to_vec::<f32>(), values.to_vec::<f32>());
    assert_eq!(m[0].weight.suggested_format(), MemoryFormat::ChannelsLast);
}

#[test]
fn prefixes() {
    let s = net().state_dict().with_prefix("model.");
    assert_eq!(s.names().next(), Some("model.weight"));
    assert_eq!(s.strip_prefix("model.").names().collect::<Vec<_>>(), ["weight", "bias", "count"]);
    assert!(s.strip_prefix("other.").is_empty());
}
