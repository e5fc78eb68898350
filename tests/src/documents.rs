//! The README's and the book's snippets, compiled and run as doctests of this crate.

macro_rules! documents {
    ($($name:ident = $file:literal;)*) => {$(
        #[cfg(doctest)]
        #[doc = include_str!($file)]
        struct $name;
    )*};
}

documents! {
    Readme = "../../README.md";
    GettingStarted = "../../docs/src/getting-started.md";
    Strides = "../../docs/src/strides.md";
    MemoryFormats = "../../docs/src/memory-formats.md";
    Autograd = "../../docs/src/autograd.md";
    Training = "../../docs/src/training.md";
    Saving = "../../docs/src/saving.md";
    Differences = "../../docs/src/differences.md";
}
