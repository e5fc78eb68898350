//! Layers one after another.

use std::fmt;

use stridegrad_autograd::Tensor;

use crate::visit::{Copies, Visit, Visitor, VisitorMut};
use crate::{Forward, Module};

/// Layers one after another; their parameters are named by their numbers, as in PyTorch.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_nn::{Forward, Init, Linear, Module, Relu, Sequential};
/// let init = &mut Init::cpu().seed(1);
/// let net = Sequential::new()
///     .add(Linear::builder(4, 8).build(init))
///     .add(Relu)
///     .add(Linear::builder(8, 2).build(init));
/// assert_eq!(net.forward(&Tensor::ones([3, 4])).sizes(), [3, 2]);
/// assert_eq!(net.state_dict().names().last(), Some("2.bias"));
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// No layers: the identity.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer.
    #[allow(clippy::should_implement_trait)] // PyTorch's name; it adds no numbers
    pub fn add(mut self, layer: impl Forward + 'static) -> Sequential {
        self.layers.push(Box::new(layer));
        self
    }

    /// The number of layers.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

/// What a boxed layer needs beyond [`Forward`]: to be copied and named without its type.
trait Layer: Forward {
    fn duplicate_boxed(&self, copies: &mut Copies) -> Box<dyn Layer>;
    fn type_name(&self) -> &'static str;
}

impl<F: Forward + 'static> Layer for F {
    fn duplicate_boxed(&self, copies: &mut Copies) -> Box<dyn Layer> {
        Box::new(self.duplicate_with(copies))
    }

    fn type_name(&self) -> &'static str {
        let full = std::any::type_name::<F>();
        let path = full.split('<').next().unwrap_or(full);
        path.rsplit("::").next().unwrap_or(path)
    }
}

impl Visit for Sequential {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.layers.iter().enumerate().for_each(|(i, l)| visitor.field(Some(&i.to_string()), &**l));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.layers.iter_mut().enumerate().for_each(|(i, l)| visitor.field(Some(&i.to_string()), &mut **l));
    }

    fn duplicate_with(&self, copies: &mut Copies) -> Sequential {
        Sequential { layers: self.layers.iter().map(|l| l.duplicate_boxed(copies)).collect() }
    }
}

impl Module for Sequential {}

impl Forward for Sequential {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let mut layers = self.layers.iter();
        // The first output is ours; from there on each input is dropped as soon as the next output is there.
        match layers.next() {
            None => x.clone(),
            Some(first) => layers.fold(first.forward(x), |x, layer| layer.forward(&x)),
        }
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sequential ")?;
        f.debug_list().entries(self.layers.iter().map(|l| Name(l.type_name()))).finish()
    }
}

struct Name(&'static str);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
