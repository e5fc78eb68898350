//! The two faces of every op.

/// Writes an op's body once and gives it two methods on `Tensor`: the panicking face `op()`, whose message is the
/// error's text at the caller's line, and the fallible face `try_op()`.
macro_rules! faces {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident | $try:ident (&$self:ident $(, $arg:ident : $ty:ty)* $(,)?) -> $ret:ty $body:block
    )*) => { $(
        impl $crate::Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&$self $(, $arg: $ty)*) -> $ret {
                match $self.$try($($arg),*) {
                    Ok(v) => v,
                    Err(e) => e.raise(),
                }
            }

            #[doc = concat!("Fallible form of [`Tensor::", stringify!($name), "`]: an error where that one panics.")]
            #[track_caller]
            pub fn $try(&$self $(, $arg: $ty)*) -> ::stridegrad_core::Result<$ret> {
                let caller = ::std::panic::Location::caller();
                let _scope = ::stridegrad_core::CallerScope::enter(caller);
                let run = || -> ::stridegrad_core::Result<$ret> { $body };
                run().map_err(|e| e.at(::stridegrad_core::CallerScope::current().unwrap_or(caller)))
            }
        }
    )* };
}

/// As `faces!`, for associated functions.
macro_rules! static_faces {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident | $try:ident ($($arg:ident : $ty:ty),* $(,)?) -> $ret:ty $body:block
    )*) => { $(
        impl $crate::Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name($($arg: $ty),*) -> $ret {
                match $crate::Tensor::$try($($arg),*) {
                    Ok(v) => v,
                    Err(e) => e.raise(),
                }
            }

            #[doc = concat!("Fallible form of [`Tensor::", stringify!($name), "`]: an error where that one panics.")]
            #[track_caller]
            pub fn $try($($arg: $ty),*) -> ::stridegrad_core::Result<$ret> {
                let caller = ::std::panic::Location::caller();
                let _scope = ::stridegrad_core::CallerScope::enter(caller);
                let run = || -> ::stridegrad_core::Result<$ret> { $body };
                run().map_err(|e| e.at(::stridegrad_core::CallerScope::current().unwrap_or(caller)))
            }
        }
    )* };
}

pub(crate) use {faces, static_faces};
