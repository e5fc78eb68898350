//! The generated implementations.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Path, Result, WherePredicate, parse_quote};

use crate::attributes::{FieldAttributes, Role, root};

/// One field: the variable it is bound to in a pattern, and its attributes.
struct Member {
    binding: Ident,
    attributes: FieldAttributes,
}

/// A struct or an enum's variant: how it is destructured, and its fields.
struct Shape {
    /// `Self { a: f0, .. }` or `Self::Variant { 0: f0, .. }`: braces take numbers too.
    pattern: TokenStream,
    path: TokenStream,
    keys: Vec<TokenStream>,
    members: Vec<Member>,
}

pub fn module(input: &DeriveInput) -> Result<TokenStream> {
    let root = root(&input.attrs)?;
    let mut shapes = Vec::new();
    let mut bounds: Vec<WherePredicate> = Vec::new();
    let mut add = |path, fields: &Fields, in_variant| -> Result<()> {
        let shape = shape(path, fields, in_variant)?;
        for (field, member) in fields.iter().zip(&shape.members) {
            if mentions_parameter(field.ty.to_token_stream(), input) {
                let ty = &field.ty;
                bounds.push(match member.attributes.role {
                    Role::Skipped => parse_quote!(#ty: ::core::clone::Clone),
                    _ => parse_quote!(#ty: #root::Visit),
                });
            }
        }
        shapes.push(shape);
        Ok(())
    };
    match &input.data {
        Data::Struct(s) => add(quote!(Self), &s.fields, false)?,
        Data::Enum(e) => {
            for v in &e.variants {
                let name = &v.ident;
                add(quote!(Self::#name), &v.fields, true)?;
            }
        }
        Data::Union(u) => return Err(Error::new_spanned(u.union_token, "a union cannot be a Module")),
    }

    let arms = |each: &dyn Fn(&Member) -> Option<TokenStream>| -> TokenStream {
        shapes
            .iter()
            .map(|s| {
                let pattern = &s.pattern;
                let calls = s.members.iter().filter_map(each);
                quote!(#pattern => { #(#calls)* })
            })
            .collect()
    };
    let visit = arms(&|m| visit_call(m, quote!()));
    let visit_mut = arms(&|m| visit_call(m, quote!(mut)));
    let duplicate = shapes.iter().map(|s| {
        let Shape { pattern, path, keys, members } = s;
        let values = members.iter().map(|m| duplicate_field(m, &root));
        quote!(#pattern => #path { #(#keys: #values),* },)
    });
    // An enum without variants has no value to match on.
    let body = |arms: TokenStream| match shapes.is_empty() {
        true => quote!(match *self {}),
        false => quote!(match self { #arms }),
    };
    let (visit, visit_mut, duplicate) = (body(visit), body(visit_mut), body(duplicate.collect()));

    let name = &input.ident;
    let mut generics = input.generics.clone();
    if !bounds.is_empty() {
        generics.make_where_clause().predicates.extend(bounds);
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables)]
        impl #impl_generics #root::Visit for #name #type_generics #where_clause {
            fn visit(&self, visitor: &mut #root::Visitor<'_>) { #visit }
            fn visit_mut(&mut self, visitor: &mut #root::VisitorMut<'_>) { #visit_mut }
            fn duplicate_with(&self, copies: &mut #root::Copies) -> Self { #duplicate }
        }
        #[automatically_derived]
        impl #impl_generics #root::Module for #name #type_generics #where_clause {}
    })
}

fn shape(path: TokenStream, fields: &Fields, in_variant: bool) -> Result<Shape> {
    // The one field of a newtype variant stands for the enum.
    let transparent = in_variant && matches!(fields, Fields::Unnamed(u) if u.unnamed.len() == 1);
    let (mut keys, mut members) = (Vec::new(), Vec::new());
    for (i, field) in fields.iter().enumerate() {
        let (key, name) = match &field.ident {
            Some(ident) => (quote!(#ident), without_raw(ident)),
            None => (syn::Index::from(i).into_token_stream(), i.to_string()),
        };
        keys.push(key);
        let attributes = FieldAttributes::of(field, (!transparent).then_some(name))?;
        members.push(Member { binding: format_ident!("field{i}", span = Span::mixed_site()), attributes });
    }
    let bindings = members.iter().map(|m| &m.binding);
    let pattern = quote!(#path { #(#keys: #bindings),* });
    Ok(Shape { pattern, path, keys, members })
}

/// `r#type` is called `type`.
fn without_raw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

fn visit_call(member: &Member, mutability: TokenStream) -> Option<TokenStream> {
    let Member { binding, attributes } = member;
    let name = match &attributes.name {
        Some(name) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    match attributes.role {
        Role::Visited => Some(quote!(visitor.field(#name, #binding);)),
        Role::Buffer => Some(quote!(visitor.buffers(#name, #binding);)),
        Role::Training if mutability.is_empty() => Some(quote!(visitor.training(*#binding);)),
        Role::Training => Some(quote!(visitor.training(#binding);)),
        Role::Skipped => None,
    }
}

fn duplicate_field(member: &Member, root: &Path) -> TokenStream {
    let binding = &member.binding;
    match member.attributes.role {
        Role::Visited | Role::Buffer => quote!(#root::Visit::duplicate_with(#binding, copies)),
        Role::Training | Role::Skipped => quote!(::core::clone::Clone::clone(#binding)),
    }
}

/// Whether a type mentions one of the type parameters: only then does its field need a bound.
fn mentions_parameter(tokens: TokenStream, input: &DeriveInput) -> bool {
    tokens.into_iter().any(|t| match t {
        TokenTree::Ident(i) => input.generics.type_params().any(|p| p.ident == i),
        TokenTree::Group(g) => mentions_parameter(g.stream(), input),
        _ => false,
    })
}
