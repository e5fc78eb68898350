//! Walking the tensors of a module by name.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use stridegrad_autograd::{AvgPool2dOptions, Conv2dOptions, MaxPool2dOptions, Padding, Reduction, Tensor};
use stridegrad_core::{DType, Device, MemoryFormat};

/// What can be a field of a module: something with tensors in it, or a setting without.
///
/// `#[derive(Module)]` implements it for structs and enums. It is implemented for [`Tensor`] (a parameter), for
/// vectors, options, boxes, arrays, tuples and maps of fields, and as nothing at all for numbers, strings and other
/// settings.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a Module",
    note = "if it holds tensors, give it #[derive(Module)]; if not, mark the field #[module(skip)]"
)]
pub trait Visit {
    /// Shows every tensor to `visitor`.
    fn visit(&self, visitor: &mut Visitor<'_>);

    /// Shows every tensor to `visitor`, which may replace it.
    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>);

    /// A copy with tensors of its own: [`Module::duplicate`](crate::Module::duplicate) starts it.
    fn duplicate_with(&self, copies: &mut Copies) -> Self
    where
        Self: Sized;
}

/// What a visitor meets.
#[derive(Debug)]
#[non_exhaustive]
pub enum Member<'a> {
    /// A tensor to be trained.
    Parameter(&'a Tensor),
    /// A tensor that belongs to the state, such as a running mean, and is not trained.
    Buffer(&'a Tensor),
    /// The flag that `train()` sets and `eval()` clears.
    Training(bool),
}

/// What a visitor meets, to be changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum MemberMut<'a> {
    /// A tensor to be trained.
    Parameter(&'a mut Tensor),
    /// A tensor that belongs to the state, such as a running mean, and is not trained.
    Buffer(&'a mut Tensor),
    /// The flag that `train()` sets and `eval()` clears.
    Training(&'a mut bool),
}

/// The names on the way to a tensor.
#[derive(Default)]
struct Place {
    path: String,
    buffers: bool,
}

impl Place {
    /// Adds a name; gives what [`leave`](Place::leave) restores.
    fn enter(&mut self, name: Option<&str>) -> usize {
        let before = self.path.len();
        if let Some(name) = name {
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
        }
        before
    }

    fn leave(&mut self, before: usize) {
        self.path.truncate(before);
    }
}

macro_rules! visitor {
    ($visitor:ident, $member:ident, $visit:ident, $tensor:ty, $flag:ty, [$($mutability:tt)?]) => {
        impl<'v> $visitor<'v> {
            /// A visitor that hands every member to `on`, with its name: those of the fields on the way, with dots.
            pub fn new(on: &'v mut dyn FnMut(&str, $member<'_>)) -> Self {
                $visitor { place: Place::default(), on }
            }

            /// Visits a field under `name`, or with `None` as if its fields stood here.
            pub fn field<T: Visit + ?Sized>(&mut self, name: Option<&str>, field: &$($mutability)? T) {
                let before = self.place.enter(name);
                field.$visit(self);
                self.place.leave(before);
            }

            /// As [`field`](Self::field), but every tensor in it is a buffer.
            pub fn buffers<T: Visit + ?Sized>(&mut self, name: Option<&str>, field: &$($mutability)? T) {
                let outer = std::mem::replace(&mut self.place.buffers, true);
                self.field(name, field);
                self.place.buffers = outer;
            }

            /// Meets a tensor.
            pub fn tensor(&mut self, tensor: $tensor) {
                let member = match self.place.buffers {
                    true => $member::Buffer(tensor),
                    false => $member::Parameter(tensor),
                };
                (self.on)(&self.place.path, member);
            }

            /// Meets a training flag.
            pub fn training(&mut self, flag: $flag) {
                (self.on)(&self.place.path, $member::Training(flag));
            }
        }
    };
}

/// Passes the members of a module to a closure, with their names.
pub struct Visitor<'v> {
    place: Place,
    on: &'v mut dyn FnMut(&str, Member<'_>),
}

/// Passes the members of a module to a closure that may change them, with their names.
pub struct VisitorMut<'v> {
    place: Place,
    on: &'v mut dyn FnMut(&str, MemberMut<'_>),
}

visitor!(Visitor, Member, visit, &Tensor, bool, []);
visitor!(VisitorMut, MemberMut, visit_mut, &mut Tensor, &mut bool, [mut]);

/// Tensors copied so far while a module is duplicated: one that stands in two places stays one.
#[derive(Default)]
pub struct Copies {
    made: Vec<(Tensor, Tensor)>,
}

impl Copies {
    /// No copies yet.
    pub fn new() -> Copies {
        Copies::default()
    }

    /// What `tensor` has become, or else becomes by `make`.
    pub fn of<E>(&mut self, tensor: &Tensor, make: impl FnOnce() -> Result<Tensor, E>) -> Result<Tensor, E> {
        if let Some((_, copy)) = self.made.iter().find(|(old, _)| old.is_same(tensor)) {
            return Ok(copy.clone());
        }
        let copy = make()?;
        self.made.push((tensor.clone(), copy.clone()));
        Ok(copy)
    }
}

impl Visit for Tensor {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.tensor(self);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        visitor.tensor(self);
    }

    fn duplicate_with(&self, copies: &mut Copies) -> Tensor {
        let copy = || {
            let copy = self.detach().copy();
            Ok::<_, std::convert::Infallible>(copy.requires_grad_(self.requires_grad()))
        };
        let Ok(copy) = copies.of(self, copy);
        copy
    }
}

macro_rules! settings {
    ($($t:ty),* $(,)?) => {$(
        impl Visit for $t {
            fn visit(&self, _: &mut Visitor<'_>) {}
            fn visit_mut(&mut self, _: &mut VisitorMut<'_>) {}
            fn duplicate_with(&self, _: &mut Copies) -> Self {
                self.clone()
            }
        }
    )*};
}
settings!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    String,
    &'static str,
    DType,
    Device,
    MemoryFormat,
    Conv2dOptions,
    MaxPool2dOptions,
    AvgPool2dOptions,
    Reduction,
    Padding,
    std::path::PathBuf,
    std::time::Duration,
);

impl<T: ?Sized> Visit for PhantomData<T> {
    fn visit(&self, _: &mut Visitor<'_>) {}
    fn visit_mut(&mut self, _: &mut VisitorMut<'_>) {}
    fn duplicate_with(&self, _: &mut Copies) -> Self {
        PhantomData
    }
}

impl<R> Visit for fn(&Tensor) -> R {
    fn visit(&self, _: &mut Visitor<'_>) {}
    fn visit_mut(&mut self, _: &mut VisitorMut<'_>) {}
    fn duplicate_with(&self, _: &mut Copies) -> Self {
        *self
    }
}

impl<T: Visit> Visit for Option<T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|t| t.visit(visitor));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().for_each(|t| t.visit_mut(visitor));
    }

    fn duplicate_with(&self, copies: &mut Copies) -> Self {
        self.as_ref().map(|t| t.duplicate_with(copies))
    }
}

impl<T: Visit> Visit for Box<T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        (**self).visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        (**self).visit_mut(visitor);
    }

    fn duplicate_with(&self, copies: &mut Copies) -> Self {
        Box::new((**self).duplicate_with(copies))
    }
}

/// Lists number their elements, as PyTorch's `ModuleList` does.
macro_rules! list {
    () => {
        fn visit(&self, visitor: &mut Visitor<'_>) {
            self.iter().enumerate().for_each(|(i, t)| visitor.field(Some(&i.to_string()), t));
        }

        fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
            self.iter_mut().enumerate().for_each(|(i, t)| visitor.field(Some(&i.to_string()), t));
        }
    };
}

impl<T: Visit> Visit for Vec<T> {
    list!();

    fn duplicate_with(&self, copies: &mut Copies) -> Self {
        self.iter().map(|t| t.duplicate_with(copies)).collect()
    }
}

impl<T: Visit, const N: usize> Visit for [T; N] {
    list!();

    fn duplicate_with(&self, copies: &mut Copies) -> Self {
        std::array::from_fn(|i| self[i].duplicate_with(copies))
    }
}

/// Values are named by their keys, as in PyTorch's `ModuleDict`.
impl<K: AsRef<str> + Ord + Clone, T: Visit> Visit for BTreeMap<K, T> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|(name, t)| visitor.field(Some(name.as_ref()), t));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().for_each(|(name, t)| visitor.field(Some(name.as_ref()), t));
    }

    fn duplicate_with(&self, copies: &mut Copies) -> Self {
        self.iter().map(|(k, t)| (k.clone(), t.duplicate_with(copies))).collect()
    }
}

macro_rules! tuples {
    ($($t:ident $i:tt),*) => {
        impl<$($t: Visit),*> Visit for ($($t,)*) {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                $(visitor.field(Some(stringify!($i)), &self.$i);)*
            }

            fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
                $(visitor.field(Some(stringify!($i)), &mut self.$i);)*
            }

            fn duplicate_with(&self, copies: &mut Copies) -> Self {
                ($(self.$i.duplicate_with(copies),)*)
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
