//! Modules, initialisation and losses.
#![forbid(unsafe_code)]

mod activation;
mod conv;
mod dropout;
pub mod init;
mod linear;
mod loss;
mod module;
mod norm;
mod pool;
mod sequential;
mod state;
mod visit;

pub use activation::{
    Elu, Flatten, Gelu, Identity, Lambda, LeakyRelu, LogSoftmax, Relu, Sigmoid, Silu, Softmax, Softplus, Tanh,
};
pub use conv::{Conv2d, Conv2dBuilder};
pub use dropout::{Dropout, Dropout2d};
pub use init::Init;
pub use linear::{Linear, LinearBuilder};
pub use loss::{CrossEntropyLoss, L1Loss, MseLoss, NllLoss};
pub use module::{Forward, Module, To};
pub use norm::{BatchNorm2d, BatchNorm2dBuilder};
pub use pool::{AdaptiveAvgPool2d, AvgPool2d, MaxPool2d};
pub use sequential::Sequential;
pub use state::{Form, LoadReport, Mismatch, StateDict};
pub use stridegrad_autograd::{PadMode, Padding, Reduction};
pub use stridegrad_derive::Module;
pub use visit::{Copies, Member, MemberMut, Visit, Visitor, VisitorMut};
