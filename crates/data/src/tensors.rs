//! Tensors as a dataset.

use stridegrad_autograd::Tensor;
use stridegrad_core::{Result, bail};

use crate::Dataset;

/// Tensors whose first dims number the examples: a batch is the rows at its indices.
///
/// ```
/// use stridegrad_autograd::Tensor;
/// use stridegrad_data::{DataLoader, TensorDataset};
/// let data = TensorDataset::new([Tensor::arange(6.0).view([3, 2]), Tensor::arange(3)]);
/// let batch = DataLoader::new(data).batch_size(2).epoch(0).next().unwrap().unwrap();
/// assert_eq!((batch[0].sizes(), batch[1].to_vec::<i64>()), (&[2, 2][..], vec![0, 1]));
/// ```
#[derive(Clone, Debug)]
pub struct TensorDataset {
    tensors: Vec<Tensor>,
}

impl TensorDataset {
    /// A dataset of these tensors.
    ///
    /// # Panics
    /// Unless there is one at least, and all have the same first size; [`try_new`](TensorDataset::try_new) gives an
    /// error.
    #[track_caller]
    pub fn new(tensors: impl Into<Vec<Tensor>>) -> TensorDataset {
        let caller = std::panic::Location::caller();
        TensorDataset::try_new(tensors).unwrap_or_else(|e| e.at(caller).raise())
    }

    /// Fallible form of [`new`](TensorDataset::new).
    ///
    /// # Errors
    /// `Shape` unless there is one at least, and all have the same first size.
    pub fn try_new(tensors: impl Into<Vec<Tensor>>) -> Result<TensorDataset> {
        let tensors: Vec<Tensor> = tensors.into();
        let mut firsts = tensors.iter().map(|t| t.sizes().first());
        match firsts.next().flatten() {
            Some(first) if firsts.all(|n| n == Some(first)) => Ok(TensorDataset { tensors }),
            _ => {
                let sizes: Vec<_> = tensors.iter().map(|t| t.sizes().to_vec()).collect();
                bail!(Shape, "TensorDataset", "tensors of sizes {sizes:?} do not have the same first size")
            }
        }
    }
}

impl Dataset for TensorDataset {
    type Batch = Vec<Tensor>;

    fn len(&self) -> usize {
        self.tensors[0].sizes()[0]
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Tensor>> {
        let index: Vec<i64> = indices.iter().map(|&i| i64::try_from(i).unwrap_or(i64::MAX)).collect();
        let index = Tensor::try_from_slice(&index, [index.len()])?;
        self.tensors.iter().map(|t| t.try_index_select(0, &index.try_to_device(t.device())?)).collect()
    }
}
