//! The ops, one file each: public method with docs, formula, gradient, and (for the harness) samples and an
//! independent reference.
//!
//! Adding an op is adding its file, a `mod` line and an entry in [`registry`].

pub(crate) mod elementwise;
pub(crate) mod pair;

pub(crate) mod add;
pub(crate) mod as_strided;
pub(crate) mod cast;
pub(crate) mod contiguous;
pub(crate) mod conv2d;
pub(crate) mod copy_;
pub(crate) mod diagonal;
pub(crate) mod div;
pub(crate) mod exp;
pub(crate) mod expand;
pub(crate) mod fill_;
pub(crate) mod linear;
pub(crate) mod map_;
pub(crate) mod matmul;
pub(crate) mod mul;
pub(crate) mod neg;
pub(crate) mod outer;
pub(crate) mod permute;
pub(crate) mod relu;
pub(crate) mod reversed;
pub(crate) mod select;
pub(crate) mod slice;
pub(crate) mod split;
pub(crate) mod squeeze;
pub(crate) mod sub;
pub(crate) mod sum;
pub(crate) mod unfold;
pub(crate) mod view;

pub use conv2d::{Conv2dOptions, Padding};
pub use pair::IntoPair;

/// Every op the harness knows, in alphabetical order of its file.
#[cfg(feature = "testkit")]
pub fn registry() -> Vec<crate::spec::OpSpec> {
    vec![
        add::spec(),
        conv2d::spec_conv1d(),
        conv2d::spec(),
        div::spec(),
        exp::spec(),
        linear::spec(),
        matmul::spec(),
        mul::spec(),
        neg::spec(),
        outer::spec(),
        relu::spec(),
        sub::spec(),
        sum::spec(),
    ]
}
