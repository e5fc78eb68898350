//! `#[derive(Module)]`: names a struct's parameters and submodules by its fields, as PyTorch's state dicts do.
//!
//! Use it through `stridegrad::nn`; the attributes are described there, at the `Module` trait.
#![forbid(unsafe_code)]

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Visit` and `Module`: every field is visited under its own name.
///
/// Tuple structs number their fields. Of an enum, the fields of the present variant are visited; the only field of
/// a one-field tuple variant stands for the enum itself and adds no name.
///
/// On a field:
/// - `#[module(skip)]`: not visited; `duplicate` clones it.
/// - `#[module(buffer)]`: its tensors are buffers, not parameters.
/// - `#[module(training)]`: a `bool` that `train()` sets and `eval()` clears.
/// - `#[module(rename = "name")]`: another name, such as one that is no Rust identifier.
/// - `#[module(flatten)]`: no name at all: what is inside appears as if it stood here.
///
/// On the type: `#[module(crate = "path")]`: where `Visit` and `Module` lie, `::stridegrad::nn` by default.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::module(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
