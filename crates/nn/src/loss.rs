//! Losses as modules; [`Tensor`] has them as methods.

use stridegrad_autograd::{CrossEntropyOptions, NllLossOptions, Reduction, Tensor};

use crate::Module;

macro_rules! class_loss {
    ($(#[$doc:meta])* $loss:ident, $options:ident, $op:ident, { $($field:ident: $t:ty),* }) => {
        $(#[$doc])*
        #[derive(Module, Debug, Clone)]
        #[module(crate = "crate")]
        pub struct $loss {
            /// A weight for each class.
            #[module(buffer)]
            pub weight: Option<Tensor>,
            /// Targets of this class count for nothing; -100 by default.
            pub ignore_index: i64,
            $(
                /// The part of each target that is spread over all classes; 0 by default.
                pub $field: $t,
            )*
            /// How the samples' losses are reduced; the mean by default.
            pub reduction: Reduction,
        }

        impl $loss {
            /// Without weights, ignoring class -100, the mean.
            pub fn new() -> $loss {
                let o = $options::new();
                $loss { weight: None, ignore_index: o.ignore_index, $($field: o.$field,)* reduction: o.reduction }
            }

            /// The loss of scores (N, C, d..) against targets.
            ///
            /// # Panics
            /// Where the sizes do not fit, or a target is no class.
            #[track_caller]
            pub fn forward(&self, x: &Tensor, target: &Tensor) -> Tensor {
                let mut o = $options::new().ignore_index(self.ignore_index).reduction(self.reduction);
                $(o = o.$field(self.$field);)*
                if let Some(weight) = &self.weight {
                    o = o.weight(weight);
                }
                x.$op(target, o)
            }
        }

        impl Default for $loss {
            fn default() -> Self {
                $loss::new()
            }
        }
    };
}

class_loss! {
    /// The cross entropy of scores and classes (or probabilities): see [`Tensor::cross_entropy`].
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// use stridegrad_nn::CrossEntropyLoss;
    /// let loss = CrossEntropyLoss { label_smoothing: 0.1, ..CrossEntropyLoss::new() };
    /// let scores = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 1.0, 1.0, 1.0], [2, 3]);
    /// let value = loss.forward(&scores, &Tensor::from_slice(&[2i64, 0], [2]));
    /// assert!((value.item::<f32>() - 0.8031).abs() < 1e-4);
    /// ```
    CrossEntropyLoss, CrossEntropyOptions, cross_entropy_with, { label_smoothing: f64 }
}

class_loss! {
    /// The negative log likelihood of classes, given log probabilities: see [`Tensor::nll_loss`].
    NllLoss, NllLossOptions, nll_loss_with, {}
}

macro_rules! difference_loss {
    ($($(#[$doc:meta])* $loss:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Module, Debug, Clone, Copy, Default)]
        #[module(crate = "crate")]
        pub struct $loss {
            /// How the losses are reduced; the mean by default.
            pub reduction: Reduction,
        }

        impl $loss {
            /// The mean.
            pub fn new() -> $loss {
                $loss::default()
            }

            /// The loss of `x` against `target`, of equal sizes.
            ///
            /// # Panics
            /// Where the sizes differ.
            #[track_caller]
            pub fn forward(&self, x: &Tensor, target: &Tensor) -> Tensor {
                x.$op(target, self.reduction)
            }
        }
    )*};
}

difference_loss! {
    /// The squared differences, reduced: see [`Tensor::mse_loss`].
    MseLoss = mse_loss;
    /// The absolute differences, reduced: see [`Tensor::l1_loss`].
    L1Loss = l1_loss;
}
