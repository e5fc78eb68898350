//! Reading `#[module(...)]`.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Field, LitStr, Path, Result};

/// What becomes of a field.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    /// Visited: tensors in it are parameters, unless it knows better.
    Visited,
    /// Visited: tensors in it are buffers.
    Buffer,
    /// The training flag.
    Training,
    /// Not visited.
    Skipped,
}

/// The attributes of a field.
pub struct FieldAttributes {
    pub role: Role,
    /// The name to visit it by; `None` where it is flattened.
    pub name: Option<String>,
}

impl FieldAttributes {
    /// Reads the attributes of a field whose name is `name` by default (`None`: none).
    pub fn of(field: &Field, name: Option<String>) -> Result<FieldAttributes> {
        let mut role = None;
        let (mut rename, mut flatten) = (None, false);
        for_each_item(&field.attrs, |item| {
            let mut set = |r| match role.replace(r) {
                None => Ok(()),
                Some(_) => Err(item.error("a field is one of skip, buffer and training")),
            };
            if item.path.is_ident("skip") {
                set(Role::Skipped)
            } else if item.path.is_ident("buffer") {
                set(Role::Buffer)
            } else if item.path.is_ident("training") {
                set(Role::Training)
            } else if item.path.is_ident("rename") {
                let text: LitStr = item.value()?.parse()?;
                if text.value().is_empty() {
                    return Err(Error::new(text.span(), "an empty name; `flatten` adds none"));
                }
                rename = Some(text.value());
                Ok(())
            } else if item.path.is_ident("flatten") {
                flatten = true;
                Ok(())
            } else {
                Err(item.error("expected skip, buffer, training, rename = \"...\" or flatten"))
            }
        })?;
        if flatten && rename.is_some() {
            return Err(Error::new_spanned(field, "`flatten` and `rename` contradict each other"));
        }
        let name = if flatten { None } else { rename.or(name) };
        Ok(FieldAttributes { role: role.unwrap_or(Role::Visited), name })
    }
}

/// The path of the crate or module where the traits lie.
pub fn root(attributes: &[Attribute]) -> Result<Path> {
    let mut root = None;
    for_each_item(attributes, |item| {
        if item.path.is_ident("crate") {
            root = Some(item.value()?.parse::<LitStr>()?.parse::<Path>()?);
            Ok(())
        } else {
            Err(item.error("expected crate = \"...\""))
        }
    })?;
    root.map_or_else(|| syn::parse_str("::stridegrad::nn"), Ok)
}

fn for_each_item(
    attributes: &[Attribute],
    mut each: impl FnMut(ParseNestedMeta) -> Result<()>,
) -> Result<()> {
    attributes.iter().filter(|a| a.path().is_ident("module")).try_for_each(|a| a.parse_nested_meta(&mut each))
}
