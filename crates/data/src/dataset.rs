//! What a loader loads from.

use std::sync::Arc;

use stridegrad_core::Result;

/// Examples by number, gathered a batch at a time.
///
/// A batch at a time, since gathering into one buffer is what makes loading cheap; a dataset of single examples
/// builds its batch from them in [`batch`](Dataset::batch).
pub trait Dataset: Send + Sync + 'static {
    /// What a batch is: for most, a tensor of inputs and one of targets.
    type Batch: Send + 'static;

    /// The number of examples.
    fn len(&self) -> usize;

    /// Whether there are no examples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples at `indices`, in that order. Called from several threads at once.
    ///
    /// # Errors
    /// Whatever keeps the examples from being read. The loader hands it on in place of the batch.
    fn batch(&self, indices: &[usize]) -> Result<Self::Batch>;
}

impl<D: Dataset> Dataset for Arc<D> {
    type Batch = D::Batch;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn batch(&self, indices: &[usize]) -> Result<D::Batch> {
        (**self).batch(indices)
    }
}

/// A dataset with its batches changed: see [`DataLoader::map`](crate::DataLoader::map).
pub struct Mapped<D, F> {
    dataset: D,
    change: F,
}

impl<D, F> Mapped<D, F> {
    pub(crate) fn new(dataset: D, change: F) -> Mapped<D, F> {
        Mapped { dataset, change }
    }
}

impl<D, F, B> Dataset for Mapped<D, F>
where
    D: Dataset,
    B: Send + 'static,
    F: Fn(D::Batch) -> Result<B> + Send + Sync + 'static,
{
    type Batch = B;

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<B> {
        (self.change)(self.dataset.batch(indices)?)
    }
}
