//! Which instruction set the kernels use.
//!
//! One binary carries three versions of every hot loop: AVX-512, AVX2 with FMA, and portable code. The version is
//! chosen at run time, once, by [`isa`]. `STRIDEGRAD_ISA=portable|avx2|avx512` lowers the choice for a whole
//! process and [`with_isa`] lowers it for a closure, so that tests run all three on one machine. Neither can raise
//! it above what the processor has.
//!
//! The override is a value of the calling thread; [`crate::team`] carries it to the threads that help with a call.

use std::cell::Cell;
use std::sync::OnceLock;

/// An instruction set that kernels are compiled for; a later one includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// What the compilation target guarantees.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, VL, BW and DQ, besides AVX2, FMA and F16C.
    Avx512,
}

thread_local! {
    static OVERRIDE: Cell<Option<Isa>> = const { Cell::new(None) };
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Portable
}

fn parse(name: &str) -> Option<Isa> {
    match name.trim().to_ascii_lowercase().as_str() {
        "portable" => Some(Isa::Portable),
        "avx2" => Some(Isa::Avx2),
        "avx512" => Some(Isa::Avx512),
        _ => None,
    }
}

/// What the processor has, lowered by `STRIDEGRAD_ISA` (an unknown name there changes nothing).
pub fn detected() -> Isa {
    static DETECTED: OnceLock<Isa> = OnceLock::new();
    *DETECTED.get_or_init(|| {
        let cap = std::env::var("STRIDEGRAD_ISA").ok().and_then(|name| parse(&name));
        cap.map_or(detect(), |cap| cap.min(detect()))
    })
}

/// The instruction set that kernels called from this thread use.
#[inline]
pub fn isa() -> Isa {
    OVERRIDE.get().unwrap_or_else(detected)
}

/// Runs `f` with kernels limited to `isa`, for tests. The limit holds for calls made by this thread and for the
/// parallel work they start; it never raises the choice above [`detected`].
pub fn with_isa<R>(isa: Isa, f: impl FnOnce() -> R) -> R {
    with_override(Some(isa.min(detected())), f)
}

/// The current thread's override, for [`with_override`] on another thread.
pub(crate) fn current_override() -> Option<Isa> {
    OVERRIDE.get()
}

/// Runs `f` under another thread's override.
pub(crate) fn with_override<R>(isa: Option<Isa>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Isa>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OVERRIDE.set(self.0);
        }
    }
    let _restore = Restore(OVERRIDE.replace(isa));
    f()
}

/// Writes a function that picks, by [`isa`], between three compilations of one `#[inline(always)]` body.
///
/// `multiversion!(fn name<T: Bound>(a: A, b: B) = body::<T>);` The body is safe or unsafe to call as it is
/// declared; the generated function is `unsafe` and passes its arguments on.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$($gen:ident: $bound:path),*>($($arg:ident: $ty:ty),* $(,)?) = $body:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        #[inline]
        $vis unsafe fn $name<$($gen: $bound),*>($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn avx512<$($gen: $bound),*>($($arg: $ty),*) {
                    // SAFETY: the caller keeps the body's contract.
                    unsafe { $body($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn avx2<$($gen: $bound),*>($($arg: $ty),*) {
                    // SAFETY: the caller keeps the body's contract.
                    unsafe { $body($($arg),*) }
                }
                match $crate::isa::isa() {
                    // SAFETY: `isa` only names what the processor has; the caller keeps the body's contract.
                    $crate::isa::Isa::Avx512 => return unsafe { avx512::<$($gen),*>($($arg),*) },
                    // SAFETY: as above.
                    $crate::isa::Isa::Avx2 => return unsafe { avx2::<$($gen),*>($($arg),*) },
                    $crate::isa::Isa::Portable => {}
                }
            }
            // SAFETY: the caller keeps the body's contract.
            unsafe { $body($($arg),*) }
        }
    };
}
pub(crate) use multiversion;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse() {
        assert_eq!(parse(" AVX2"), Some(Isa::Avx2));
        assert_eq!(parse("portable"), Some(Isa::Portable));
        assert_eq!(parse("avx512"), Some(Isa::Avx512));
        assert_eq!(parse("sse9"), None);
    }

    #[test]
    fn override_lowers_nests_and_ends() {
        let top = isa();
        with_isa(Isa::Portable, || {
            assert_eq!(isa(), Isa::Portable);
            with_isa(Isa::Avx512, || assert_eq!(isa(), detected()));
            assert_eq!(isa(), Isa::Portable);
        });
        assert_eq!(isa(), top);
        let caught = std::panic::catch_unwind(|| with_isa(Isa::Portable, || panic!("on purpose")));
        assert!(caught.is_err());
        assert_eq!(isa(), top);
    }
}
