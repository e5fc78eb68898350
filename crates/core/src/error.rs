//! The one error type: what went wrong, in which op, with which shapes, and the way out.

use std::fmt;
use std::panic::Location;

/// The result type of every fallible function of stridegrad.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of refusal an [`Error`] is. Match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Sizes that do not fit together, or that do not fit the op.
    Shape,
    /// Strides that cannot express the requested view.
    NotViewable,
    /// A dimension index outside `[-rank, rank)`, or a repeated one.
    Dim,
    /// An element index outside its dimension.
    Index,
    /// Operands whose dtypes the op does not take, or a result that does not fit the destination.
    DType,
    /// Operands on different devices, or a device that is not there.
    Device,
    /// A write to memory that overlaps itself or an input.
    Overlap,
    /// An in-place write that autograd cannot follow.
    InPlace,
    /// A backward pass that cannot be run as asked.
    Autograd,
    /// Memory that could not be had.
    OutOfMemory,
    /// A product of sizes that does not fit the machine's integers.
    Overflow,
    /// A storage that host code holds open (a slice or closure) while an op wants to write it.
    StorageBusy,
    /// An argument outside its documented range.
    Argument,
    /// Something that is not implemented for this dtype, device or combination.
    Unsupported,
    /// A file or stream that could not be read or written.
    Io,
    /// A file whose content is malformed or hostile.
    Format,
    /// Names, shapes or dtypes of a state dict that do not match the module's.
    StateDict,
}

struct Inner {
    kind: ErrorKind,
    op: &'static str,
    message: String,
    hint: Option<String>,
    caller: Option<&'static Location<'static>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A refusal: kind, op, message with shapes/strides/dtypes, hint and the caller's source line.
///
/// One pointer wide, so that `Result<Tensor>` stays small.
///
/// ```
/// use stridegrad_core::{Error, ErrorKind};
/// let e = Error::new(ErrorKind::Shape, "view", "shape '[5, 5]' is invalid for input of size 24")
///     .hint("pick sizes whose product is 24");
/// assert_eq!(e.kind(), ErrorKind::Shape);
/// assert!(e.to_string().starts_with("view: shape '[5, 5]' is invalid"));
/// ```
pub struct Error(Box<Inner>);

impl Error {
    /// A new error of `kind` raised by `op`.
    #[cold]
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<String>) -> Error {
        let message = message.into();
        Error(Box::new(Inner { kind, op, message, hint: None, caller: None, source: None }))
    }

    /// Adds the way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Records the user's source line, unless one is recorded already.
    #[must_use]
    pub fn at(mut self, caller: &'static Location<'static>) -> Error {
        self.0.caller.get_or_insert(caller);
        self
    }

    /// Adds the lower-level error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// The kind of refusal.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The op that refused, by its public name.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The message without op, hint and caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The source line of the user's call, where known.
    pub fn caller(&self) -> Option<&'static Location<'static>> {
        self.0.caller
    }

    /// Panics with this error's text, as the panicking face of every op does.
    #[cold]
    #[track_caller]
    pub fn raise(self) -> ! {
        std::panic::panic_any(self.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        write!(f, "{}: {}", e.op, e.message)?;
        if let Some(source) = &e.source {
            write!(f, ": {source}")?;
        }
        if let Some(hint) = &e.hint {
            write!(f, " (hint: {hint})")?;
        }
        if let Some(c) = e.caller {
            write!(f, " [called at {}:{}:{}]", c.file(), c.line(), c.column())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, "io", "reading or writing failed").because(e)
    }
}

/// `bail!(Kind, op, "format", args...)`: returns an [`Error`] from the enclosing function.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $op:expr, $($fmt:tt)+) => {
        return Err($crate::Error::new($crate::ErrorKind::$kind, $op, format!($($fmt)+)))
    };
}
