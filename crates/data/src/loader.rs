//! Batches, in order, made here or ahead of time on threads.

use std::fmt;
use std::sync::Arc;

use stridegrad_core::{Device, Result};

use crate::dataset::{Dataset, Mapped, ToDevice};
use crate::prefetch::Workers;
use crate::sampler::{Batches, Sampler};

/// Batches that a worker may have ready before they are asked for.
const DEFAULT_AHEAD: usize = 2;

/// Cuts a dataset into batches, epoch by epoch.
///
/// The batches of an epoch depend on the dataset, the seed and the epoch's number alone: not on the workers, and
/// not on which epochs were run before. So a run resumes at any epoch, or within one
/// ([`epoch_from`](DataLoader::epoch_from)), with the very batches it would have had.
///
/// ```
/// use stridegrad_core::Result;
/// use stridegrad_data::{DataLoader, Dataset};
///
/// struct Squares;
/// impl Dataset for Squares {
///     type Batch = Vec<usize>;
///     fn len(&self) -> usize {
///         5
///     }
///     fn batch(&self, indices: &[usize]) -> Result<Vec<usize>> {
///         Ok(indices.iter().map(|i| i * i).collect())
///     }
/// }
///
/// let loader = DataLoader::new(Squares).batch_size(2).workers(1);
/// let batches: Vec<_> = loader.epoch(0).collect::<Result<_>>()?;
/// assert_eq!(batches, [vec![0, 1], vec![4, 9], vec![16]]);
/// # Ok::<(), stridegrad_core::Error>(())
/// ```
pub struct DataLoader<D: Dataset> {
    dataset: Arc<D>,
    batch_size: usize,
    seed: Option<u64>,
    drop_last: bool,
    workers: usize,
    ahead: usize,
    finish: Option<Arc<Finish<D::Batch>>>,
}

/// What is done to a batch last.
type Finish<B> = dyn Fn(B) -> Result<B> + Send + Sync;

impl<D: Dataset> DataLoader<D> {
    /// A loader of single examples in the dataset's order, without threads.
    pub fn new(dataset: D) -> DataLoader<D> {
        DataLoader {
            dataset: Arc::new(dataset),
            batch_size: 1,
            seed: None,
            drop_last: false,
            workers: 0,
            ahead: DEFAULT_AHEAD,
            finish: None,
        }
    }

    /// Examples a batch; the last batch of an epoch may have fewer.
    ///
    /// # Panics
    /// If `n` is 0.
    #[track_caller]
    pub fn batch_size(mut self, n: usize) -> Self {
        assert!(n > 0, "DataLoader: a batch size of 0");
        self.batch_size = n;
        self
    }

    /// Shuffles each epoch anew, from `seed`.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Leaves out a last batch of fewer examples than the others.
    pub fn drop_last(mut self, yes: bool) -> Self {
        self.drop_last = yes;
        self
    }

    /// Makes batches ahead of time on `n` threads; with 0, the default, on the caller's when asked for.
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = n;
        self
    }

    /// Batches each worker may have ready ahead of time, 2 by default.
    ///
    /// # Panics
    /// If `n` is 0.
    #[track_caller]
    pub fn prefetch(mut self, n: usize) -> Self {
        assert!(n > 0, "DataLoader: a prefetch of 0 batches (workers(0) turns threads off)");
        self.ahead = n;
        self
    }

    /// Passes every batch through `change`, on the thread that makes it.
    pub fn map<B, F>(self, change: F) -> DataLoader<impl Dataset<Batch = B>>
    where
        B: Send + 'static,
        F: Fn(D::Batch) -> Result<B> + Send + Sync + 'static,
    {
        let finish = self.finish;
        let change = move |batch| match &finish {
            Some(finish) => change(finish(batch)?),
            None => change(batch),
        };
        DataLoader {
            dataset: Arc::new(Mapped { dataset: self.dataset, change }),
            batch_size: self.batch_size,
            seed: self.seed,
            drop_last: self.drop_last,
            workers: self.workers,
            ahead: self.ahead,
            finish: None,
        }
    }

    /// Moves every batch to `device`, on the thread that makes it.
    pub fn to(mut self, device: &Device) -> Self
    where
        D::Batch: ToDevice,
    {
        let device = *device;
        self.finish = Some(Arc::new(move |batch: D::Batch| batch.try_to_device(device)));
        self
    }

    /// The dataset.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    fn batches(&self) -> Batches {
        Batches { len: self.dataset.len(), size: self.batch_size, drop_last: self.drop_last }
    }

    /// The number of batches in an epoch.
    pub fn len(&self) -> usize {
        self.batches().count()
    }

    /// Whether an epoch has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches of epoch `epoch`: always the same ones for the same number.
    pub fn epoch(&self, epoch: u64) -> Epoch<D> {
        self.epoch_from(epoch, 0)
    }

    /// [`epoch`](DataLoader::epoch) without its first `skip` batches, which are not made.
    pub fn epoch_from(&self, epoch: u64, skip: usize) -> Epoch<D> {
        let batches = self.batches();
        let sampler = match self.seed {
            Some(seed) => Sampler::shuffled(batches.len, seed),
            None => Sampler::sequential(batches.len),
        };
        let (dataset, finish) = (self.dataset.clone(), self.finish.clone());
        let plan = Arc::new(Plan { dataset, order: sampler.order(epoch), batches, finish });
        let first = skip.min(batches.count());
        let workers = (self.workers > 0 && first < batches.count())
            .then(|| Workers::start(plan.clone(), first, self.workers, self.ahead));
        Epoch { plan, next: first, workers }
    }
}

impl<D: Dataset> fmt::Debug for DataLoader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoader")
            .field("examples", &self.dataset.len())
            .field("batch_size", &self.batch_size)
            .field("shuffle", &self.seed)
            .field("drop_last", &self.drop_last)
            .field("workers", &self.workers)
            .finish()
    }
}

impl<D: Dataset> IntoIterator for &DataLoader<D> {
    type Item = Result<D::Batch>;
    type IntoIter = Epoch<D>;
    /// Epoch 0.
    fn into_iter(self) -> Epoch<D> {
        self.epoch(0)
    }
}

/// An epoch's dataset, order and cuts: what a worker needs to make any of its batches.
pub(crate) struct Plan<D: Dataset> {
    dataset: Arc<D>,
    order: Vec<usize>,
    batches: Batches,
    finish: Option<Arc<Finish<D::Batch>>>,
}

impl<D: Dataset> Plan<D> {
    pub fn count(&self) -> usize {
        self.batches.count()
    }

    pub fn make(&self, i: usize) -> Result<D::Batch> {
        let batch = self.dataset.batch(&self.order[self.batches.range(i)])?;
        match &self.finish {
            Some(finish) => finish(batch),
            None => Ok(batch),
        }
    }
}

/// The batches of one epoch, in order. Ends after an error. Dropping it stops and joins its threads.
pub struct Epoch<D: Dataset> {
    plan: Arc<Plan<D>>,
    next: usize,
    workers: Option<Workers<D::Batch>>,
}

impl<D: Dataset> Epoch<D> {
    /// The number of the batch that comes next: where [`DataLoader::epoch_from`] would resume.
    pub fn position(&self) -> usize {
        self.next
    }
}

impl<D: Dataset> Iterator for Epoch<D> {
    type Item = Result<D::Batch>;

    fn next(&mut self) -> Option<Result<D::Batch>> {
        if self.next >= self.plan.count() {
            return None;
        }
        let batch = match &mut self.workers {
            Some(workers) => workers.receive(),
            None => self.plan.make(self.next),
        };
        self.next = if batch.is_ok() { self.next + 1 } else { self.plan.count() };
        if self.next >= self.plan.count() {
            self.workers = None; // joined
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.plan.count().saturating_sub(self.next);
        (if left == 0 { 0 } else { 1 }, Some(left))
    }
}

impl<D: Dataset> std::iter::FusedIterator for Epoch<D> {}

impl<D: Dataset> fmt::Debug for Epoch<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({} of {} batches)", self.next, self.plan.count())
    }
}
