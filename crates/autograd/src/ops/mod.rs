//! The ops, one file each: public method with docs, formula, gradient, and (for the harness) samples and an
//! independent reference.
//!
//! Adding an op is adding its file, a `mod` line and an entry in `registry`.

pub(crate) mod elementwise;
pub(crate) mod pair;
pub(crate) mod pooling;
pub(crate) mod reduction;

pub(crate) mod abs;
pub(crate) mod acos;
pub(crate) mod acosh;
pub(crate) mod adaptive_avg_pool2d;
pub(crate) mod adaptive_max_pool2d;
pub(crate) mod add;
pub(crate) mod allclose;
pub(crate) mod amax;
pub(crate) mod any;
pub(crate) mod argmax;
pub(crate) mod as_strided;
pub(crate) mod asin;
pub(crate) mod asinh;
pub(crate) mod atan;
pub(crate) mod atan2;
pub(crate) mod atanh;
pub(crate) mod avg_pool2d;
pub(crate) mod batch_norm;
pub(crate) mod bce_with_logits;
pub(crate) mod bitwise;
pub(crate) mod cast;
pub(crate) mod cat;
pub(crate) mod ceil;
pub(crate) mod celu;
pub(crate) mod clamp;
pub(crate) mod compare;
pub(crate) mod contiguous;
pub(crate) mod conv2d;
pub(crate) mod conv_transpose2d;
pub(crate) mod copy_;
pub(crate) mod cos;
pub(crate) mod cosh;
pub(crate) mod cross_entropy;
pub(crate) mod cumprod;
pub(crate) mod cumsum;
pub(crate) mod diagonal;
pub(crate) mod div;
pub(crate) mod dropout;
pub(crate) mod elu;
pub(crate) mod embedding;
pub(crate) mod erf;
pub(crate) mod exp;
pub(crate) mod expand;
pub(crate) mod expm1;
pub(crate) mod fill_;
pub(crate) mod flip;
pub(crate) mod floor;
pub(crate) mod floor_divide;
pub(crate) mod fmod;
pub(crate) mod gather;
pub(crate) mod gelu;
pub(crate) mod group_norm;
pub(crate) mod hardshrink;
pub(crate) mod hardswish;
pub(crate) mod hardtanh;
pub(crate) mod index_put;
pub(crate) mod index_select;
pub(crate) mod isnan;
pub(crate) mod l1_loss;
pub(crate) mod layer_norm;
pub(crate) mod leaky_relu;
pub(crate) mod linear;
pub(crate) mod log;
pub(crate) mod log1p;
pub(crate) mod log2;
pub(crate) mod logical;
pub(crate) mod logsigmoid;
pub(crate) mod logsumexp;
pub(crate) mod map_;
pub(crate) mod masked_fill;
pub(crate) mod matmul;
pub(crate) mod max;
pub(crate) mod max_pool2d;
pub(crate) mod maximum;
pub(crate) mod mean;
pub(crate) mod minimum;
pub(crate) mod mish;
pub(crate) mod mse_loss;
pub(crate) mod mul;
pub(crate) mod neg;
pub(crate) mod nll_loss;
pub(crate) mod norm;
pub(crate) mod one_hot;
pub(crate) mod outer;
pub(crate) mod pad;
pub(crate) mod permute;
pub(crate) mod pixel_shuffle;
pub(crate) mod pow;
pub(crate) mod prod;
pub(crate) mod reciprocal;
pub(crate) mod relu;
pub(crate) mod remainder;
pub(crate) mod repeat;
pub(crate) mod reversed;
pub(crate) mod rms_norm;
pub(crate) mod roll;
pub(crate) mod round;
pub(crate) mod rsqrt;
pub(crate) mod scatter;
pub(crate) mod select;
pub(crate) mod selu;
pub(crate) mod sigmoid;
pub(crate) mod sign;
pub(crate) mod silu;
pub(crate) mod sin;
pub(crate) mod sinh;
pub(crate) mod slice;
pub(crate) mod smooth_l1_loss;
pub(crate) mod softmax;
pub(crate) mod softplus;
pub(crate) mod softshrink;
pub(crate) mod softsign;
pub(crate) mod sort;
pub(crate) mod split;
pub(crate) mod sqrt;
pub(crate) mod square;
pub(crate) mod squeeze;
pub(crate) mod sub;
pub(crate) mod sum;
pub(crate) mod tan;
pub(crate) mod tanh;
pub(crate) mod threshold;
pub(crate) mod tril;
pub(crate) mod trunc;
pub(crate) mod unfold;
pub(crate) mod upsample_nearest2d;
pub(crate) mod var;
pub(crate) mod view;
pub(crate) mod where_;

/// What ops take besides tensors.
pub mod options {
    pub use super::avg_pool2d::AvgPool2dOptions;
    pub use super::batch_norm::BatchNormOptions;
    pub use super::clamp::Bound;
    pub use super::conv2d::{Conv2dOptions, Padding};
    pub use super::cross_entropy::CrossEntropyOptions;
    pub use super::max_pool2d::MaxPool2dOptions;
    pub use super::nll_loss::NllLossOptions;
    pub use super::pad::PadMode;
    pub use super::pair::IntoPair;
    pub use super::reduction::Reduction;
}

/// Every op the harness knows, in alphabetical order of its file.
#[cfg(feature = "testkit")]
pub fn registry() -> Vec<crate::spec::OpSpec> {
    vec![
        abs::spec(),
        acos::spec(),
        acosh::spec(),
        adaptive_avg_pool2d::spec(),
        adaptive_max_pool2d::spec(),
        add::spec(),
        allclose::spec(),
        amax::spec(),
        any::spec(),
        argmax::spec(),
        as_strided::spec(),
        asin::spec(),
        asinh::spec(),
        atan2::spec(),
        atan::spec(),
        atanh::spec(),
        avg_pool2d::spec(),
        batch_norm::spec(),
        bce_with_logits::spec(),
        bitwise::spec(),
        cast::spec(),
        cat::spec(),
        ceil::spec(),
        celu::spec(),
        clamp::spec(),
        compare::spec(),
        contiguous::spec(),
        conv2d::spec(),
        conv2d::spec_conv1d(),
        conv_transpose2d::spec(),
        copy_::spec(),
        cos::spec(),
        cosh::spec(),
        cross_entropy::spec(),
        cumprod::spec(),
        cumsum::spec(),
        diagonal::spec(),
        div::spec(),
        dropout::spec(),
        elu::spec(),
        embedding::spec(),
        erf::spec(),
        exp::spec(),
        expand::spec(),
        expm1::spec(),
        fill_::spec(),
        flip::spec(),
        floor::spec(),
        floor_divide::spec(),
        fmod::spec(),
        gather::spec(),
        gelu::spec(),
        group_norm::spec(),
        hardshrink::spec(),
        hardswish::spec(),
        hardtanh::spec(),
        index_put::spec(),
        index_select::spec(),
        isnan::spec(),
        l1_loss::spec(),
        layer_norm::spec(),
        leaky_relu::spec(),
        linear::spec(),
        log1p::spec(),
        log2::spec(),
        log::spec(),
        logical::spec(),
        logsigmoid::spec(),
        logsumexp::spec(),
        map_::spec(),
        masked_fill::spec(),
        matmul::spec(),
        max::spec(),
        max_pool2d::spec(),
        maximum::spec(),
        mean::spec(),
        minimum::spec(),
        mish::spec(),
        mse_loss::spec(),
        mul::spec(),
        neg::spec(),
        nll_loss::spec(),
        norm::spec(),
        one_hot::spec(),
        outer::spec(),
        pad::spec(),
        permute::spec(),
        pixel_shuffle::spec(),
        pow::spec(),
        prod::spec(),
        reciprocal::spec(),
        relu::spec(),
        remainder::spec(),
        repeat::spec(),
        reversed::spec(),
        rms_norm::spec(),
        roll::spec(),
        round::spec(),
        rsqrt::spec(),
        scatter::spec(),
        select::spec(),
        selu::spec(),
        sigmoid::spec(),
        sign::spec(),
        silu::spec(),
        sin::spec(),
        sinh::spec(),
        slice::spec(),
        smooth_l1_loss::spec(),
        softmax::spec(),
        softplus::spec(),
        softshrink::spec(),
        softsign::spec(),
        sort::spec(),
        split::spec(),
        sqrt::spec(),
        square::spec(),
        squeeze::spec(),
        sub::spec(),
        sum::spec(),
        tan::spec(),
        tanh::spec(),
        threshold::spec(),
        tril::spec(),
        trunc::spec(),
        unfold::spec(),
        upsample_nearest2d::spec(),
        var::spec(),
        view::spec(),
        where_::spec(),
    ]
}
