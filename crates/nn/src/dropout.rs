//! Dropout layers (Srivastava et al., 2014).

use stridegrad_autograd::{Tensor, default_generator};
use stridegrad_core::Generator;

use crate::{Forward, Module};

macro_rules! dropout {
    ($($(#[$doc:meta])* $layer:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Debug, Clone)]
        #[module(crate = "crate")]
        pub struct $layer {
            p: f64,
            #[module(skip)]
            generator: Option<Generator>,
            #[module(training)]
            training: bool,
        }

        impl $layer {
            /// With probability `p`, in training mode.
            ///
            /// # Panics
            /// If `p` is not in [0, 1].
            #[track_caller]
            pub fn new(p: f64) -> $layer {
                assert!((0.0..=1.0).contains(&p), "dropout probability has to be between 0 and 1, but got {p}");
                $layer { p, generator: None, training: true }
            }

            /// Draws from this generator instead of the default one.
            pub fn generator(self, generator: Generator) -> $layer {
                $layer { generator: Some(generator), ..self }
            }
        }

        impl Forward for $layer {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                match &self.generator {
                    Some(g) => x.$op(self.p, self.training, g),
                    None => x.$op(self.p, self.training, &default_generator()),
                }
            }
        }
    )*};
}

dropout! {
    /// In training, leaves out each element with probability `p` and divides the others by `1 - p`.
    Dropout = dropout;
    /// In training, leaves out each channel of (N, C, ..) with probability `p` and divides the others by `1 - p`.
    Dropout2d = dropout2d;
}
