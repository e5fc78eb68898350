//! `Module`: what every network and layer can do.

use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::{DType, Device, MemoryFormat, Result};

use crate::state::{LoadReport, StateDict, load};
use crate::visit::{Copies, Member, MemberMut, Visit, Visitor, VisitorMut};

/// A network or a part of one: named parameters and buffers, moved, saved and switched as a whole.
///
/// `#[derive(Module)]` implements it, and [`Visit`], which finds the tensors: every field of type [`Tensor`] is a
/// parameter, fields that are modules are gone through, settings are passed over. Names are those of PyTorch's
/// state dicts: the fields on the way, with dots.
///
/// On a field: `#[module(skip)]` leaves it out, `#[module(buffer)]` makes its tensors buffers, `#[module(training)]`
/// marks the `bool` that `train()` sets, `#[module(rename = "name")]` renames it, `#[module(flatten)]` adds no name.
pub trait Module: Visit {
    /// Shows every parameter, buffer and flag to `on`, with its name; one that stands in two places twice.
    fn for_each(&self, on: &mut dyn FnMut(&str, Member<'_>)) {
        self.visit(&mut Visitor::new(on));
    }

    /// As [`for_each`](Module::for_each), for changing them.
    fn for_each_mut(&mut self, on: &mut dyn FnMut(&str, MemberMut<'_>)) {
        self.visit_mut(&mut VisitorMut::new(on));
    }

    /// The parameters with their names; one that stands in two places once, under the first.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        distinct(|all| {
            self.for_each(&mut |name, member| {
                if let Member::Parameter(p) = member {
                    all(name, p);
                }
            });
        })
    }

    /// The parameters, as optimizers take them.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, p)| p).collect()
    }

    /// The buffers with their names.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        distinct(|all| {
            self.for_each(&mut |name, member| {
                if let Member::Buffer(b) = member {
                    all(name, b);
                }
            });
        })
    }

    /// The number of values in the parameters.
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(Tensor::numel).sum()
    }

    /// Parameters and buffers by name, detached, on the module's own storage: they change as it does.
    fn state_dict(&self) -> StateDict {
        let mut state = StateDict::new();
        self.for_each(&mut |name, member| match member {
            Member::Parameter(t) | Member::Buffer(t) => state.push(name, t.detach()),
            _ => {}
        });
        state
    }

    /// Copies the tensors of `state` into the parameters and buffers of the same names, which keep their strides,
    /// dtype and device.
    ///
    /// What fits is loaded; what is missing, left over or of another shape is in the report, which
    /// [`require_complete`](LoadReport::require_complete) turns into an error.
    ///
    /// # Errors
    /// Where a copy fails, such as from a device that is gone.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<LoadReport> {
        load(self, state)
    }

    /// Training mode: dropout drops, batch norm takes the batch's statistics.
    fn train(&mut self) {
        self.set_training(true);
    }

    /// Evaluation mode: dropout passes, batch norm takes the running statistics.
    fn eval(&mut self) {
        self.set_training(false);
    }

    /// [`train`](Module::train) or [`eval`](Module::eval).
    fn set_training(&mut self, on: bool) {
        self.for_each_mut(&mut |_, member| {
            if let MemberMut::Training(flag) = member {
                *flag = on;
            }
        });
    }

    /// Moves or converts every parameter and buffer: to a [`Device`], a [`DType`] (floating-point tensors alone) or
    /// a [`MemoryFormat`] (4-d tensors alone).
    ///
    /// Tensors that change are new ones without gradient: make the optimizer afterwards.
    ///
    /// # Panics
    /// If the device is not there or its memory is full; [`try_to`](Module::try_to) gives an error.
    #[track_caller]
    fn to(self, target: impl Into<To>) -> Self
    where
        Self: Sized,
    {
        match self.try_to(target) {
            Ok(module) => module,
            Err(e) => e.at(std::panic::Location::caller()).raise(),
        }
    }

    /// Fallible form of [`to`](Module::to).
    ///
    /// # Errors
    /// If the device is not there or its memory is full.
    fn try_to(mut self, target: impl Into<To>) -> Result<Self>
    where
        Self: Sized,
    {
        let (target, mut copies, mut failed) = (target.into(), Copies::new(), None);
        self.for_each_mut(&mut |_, member| match member {
            MemberMut::Parameter(t) | MemberMut::Buffer(t) => {
                match copies.of(t, || target.apply(t)) {
                    Ok(new) => *t = new,
                    Err(e) => _ = failed.get_or_insert(e),
                };
            }
            _ => {}
        });
        failed.map_or(Ok(self), Err)
    }

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }

    /// Whether the parameters ask for gradients: `false` freezes the module. Returns the module.
    ///
    /// # Panics
    /// If a parameter's dtype is not floating.
    #[track_caller]
    fn requires_grad_(&self, on: bool) -> &Self
    where
        Self: Sized,
    {
        for p in self.parameters() {
            p.requires_grad_(on);
        }
        self
    }

    /// A copy with weights of its own; `clone()` of a tensor is another handle to the same one.
    fn duplicate(&self) -> Self
    where
        Self: Sized,
    {
        self.duplicate_with(&mut Copies::new())
    }
}

/// A module that maps one tensor to another: what [`Sequential`](crate::Sequential) is made of.
pub trait Forward: Module + Send + Sync {
    /// The output for `x`.
    ///
    /// # Panics
    /// Where the input does not fit, with the text of the op's error.
    fn forward(&self, x: &Tensor) -> Tensor;
}

fn distinct(each: impl FnOnce(&mut dyn FnMut(&str, &Tensor))) -> Vec<(String, Tensor)> {
    let mut found: Vec<(String, Tensor)> = Vec::new();
    each(&mut |name, t| {
        if !found.iter().any(|(_, old)| old.is_same(t)) {
            found.push((name.to_owned(), t.clone()));
        }
    });
    found
}

/// Where or into what [`Module::to`] moves a module.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum To {
    /// To a device.
    Device(Device),
    /// Floating-point tensors to a dtype.
    DType(DType),
    /// 4-d tensors to a memory format.
    MemoryFormat(MemoryFormat),
}

impl To {
    /// The tensor moved or converted: itself where nothing changes.
    fn apply(self, t: &Tensor) -> Result<Tensor> {
        let new = no_grad(|| match self {
            To::Device(d) if t.device() != d => t.detach().try_to_device(d),
            To::DType(d) if t.dtype() != d && t.dtype().is_floating() => t.detach().try_to_dtype(d),
            To::MemoryFormat(f) if t.dim() == 4 => t.detach().try_to_format(f),
            _ => Ok(t.clone()),
        })?;
        match new.is_same(t) {
            true => Ok(new),
            false => new.try_requires_grad_(t.requires_grad()),
        }
    }
}

impl From<Device> for To {
    fn from(d: Device) -> To {
        To::Device(d)
    }
}

impl From<&Device> for To {
    fn from(d: &Device) -> To {
        To::Device(*d)
    }
}

impl From<DType> for To {
    fn from(d: DType) -> To {
        To::DType(d)
    }
}

impl From<MemoryFormat> for To {
    fn from(f: MemoryFormat) -> To {
        To::MemoryFormat(f)
    }
}

// What holds modules is a module.
impl<M: Module> Module for Vec<M> {}
impl<M: Module> Module for Option<M> {}
impl<M: Module> Module for Box<M> {}
impl<M: Module, const N: usize> Module for [M; N] {}
impl<K: AsRef<str> + Ord + Clone, M: Module> Module for std::collections::BTreeMap<K, M> {}
