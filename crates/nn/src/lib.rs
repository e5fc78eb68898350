//! Modules, initialisation and losses.
#![forbid(unsafe_code)]

mod activation;
mod conv;
pub mod init;
mod linear;
mod module;
mod sequential;
mod state;
mod visit;

pub use activation::{Flatten, Identity, Lambda, Relu};
pub use conv::{Conv2d, Conv2dBuilder};
pub use init::Init;
pub use linear::{Linear, LinearBuilder};
pub use module::{Forward, Module, To};
pub use sequential::Sequential;
pub use state::{Form, LoadReport, Mismatch, StateDict};
pub use stridegrad_autograd::Padding;
pub use stridegrad_derive::Module;
pub use visit::{Copies, Member, MemberMut, Visit, Visitor, VisitorMut};
