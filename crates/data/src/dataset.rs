//! What a loader loads from.

use std::sync::Arc;

use stridegrad_autograd::Tensor;
use stridegrad_core::{Device, Result};

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

/// A dataset with its batches changed.
pub(crate) struct Mapped<D, F> {
    pub dataset: D,
    pub change: F,
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

/// A batch that can be moved to a device: tensors, and pairs, triples and lists of such.
pub trait ToDevice: Sized {
    /// The batch on `device`.
    ///
    /// # Errors
    /// If the device is not there or its memory is full.
    fn try_to_device(self, device: Device) -> Result<Self>;
}

impl ToDevice for Tensor {
    fn try_to_device(self, device: Device) -> Result<Tensor> {
        Tensor::try_to_device(&self, device)
    }
}

impl<A: ToDevice, B: ToDevice> ToDevice for (A, B) {
    fn try_to_device(self, device: Device) -> Result<(A, B)> {
        Ok((self.0.try_to_device(device)?, self.1.try_to_device(device)?))
    }
}

impl<A: ToDevice, B: ToDevice, C: ToDevice> ToDevice for (A, B, C) {
    fn try_to_device(self, device: Device) -> Result<(A, B, C)> {
        let (a, b, c) = self;
        Ok((a.try_to_device(device)?, b.try_to_device(device)?, c.try_to_device(device)?))
    }
}

impl<T: ToDevice> ToDevice for Vec<T> {
    fn try_to_device(self, device: Device) -> Result<Vec<T>> {
        self.into_iter().map(|t| t.try_to_device(device)).collect()
    }
}
