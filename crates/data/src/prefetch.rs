//! Threads that make batches ahead of time.
//!
//! Of W workers, worker w makes batches w, w + W, w + 2W, ... into a bounded channel of its own, and the consumer
//! takes from the channels in turn: the order holds, and no worker runs ahead of the others without bound.

use std::any::Any;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use stridegrad_core::{Error, ErrorKind, Result};

use crate::dataset::Dataset;
use crate::loader::Plan;

const OP: &str = "DataLoader";

pub(crate) struct Workers<B> {
    lanes: Vec<Lane<B>>,
    turn: usize,
}

struct Lane<B> {
    // Dropped before the thread is joined: a worker that waits for room then wakes up and ends.
    batches: Option<Receiver<Result<B>>>,
    thread: Option<JoinHandle<()>>,
}

impl<B: Send + 'static> Workers<B> {
    /// Starts `count` workers on the batches from `first` on, each up to `ahead` batches ahead.
    pub fn start<D: Dataset<Batch = B>>(
        plan: Arc<Plan<D>>,
        first: usize,
        count: usize,
        ahead: usize,
    ) -> Workers<B> {
        let count = count.min(plan.count() - first);
        let lanes = (0..count).map(|w| Lane::start(plan.clone(), first + w, count, ahead)).collect();
        Workers { lanes, turn: 0 }
    }

    /// The next batch in order. A worker that panicked gives an error with its message.
    pub fn receive(&mut self) -> Result<B> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.lanes.len();
        self.lanes[turn].receive()
    }
}

impl<B: Send + 'static> Lane<B> {
    fn start<D: Dataset<Batch = B>>(plan: Arc<Plan<D>>, first: usize, step: usize, ahead: usize) -> Lane<B> {
        // One is in the worker's hands, the others wait in the channel.
        let (sender, batches) = sync_channel(ahead - 1);
        let work = move || {
            for i in (first..plan.count()).step_by(step) {
                let batch = plan.make(i);
                let failed = batch.is_err();
                if sender.send(batch).is_err() || failed {
                    return; // the consumer has gone, or will go no further
                }
            }
        };
        let thread = thread::Builder::new().name("stridegrad-data".into()).spawn(work);
        Lane { batches: Some(batches), thread: thread.ok() }
    }

    fn receive(&mut self) -> Result<B> {
        if let Some(Ok(batch)) = self.batches.as_ref().map(Receiver::recv) {
            return batch;
        }
        // The sender is gone without having sent this batch.
        let message = match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => format!("a worker panicked: {}", text(&*panic)),
            Some(Ok(())) => "a worker ended early".into(),
            None => "a worker thread could not be started".into(),
        };
        Err(Error::new(ErrorKind::Io, OP, message))
    }
}

impl<B> Drop for Workers<B> {
    fn drop(&mut self) {
        // All are told to stop before the first is waited for.
        self.lanes.iter_mut().for_each(|lane| lane.batches = None);
        for thread in self.lanes.iter_mut().filter_map(|lane| lane.thread.take()) {
            let _ = thread.join(); // a panic in a batch that nobody asked for
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let string = panic.downcast_ref::<String>().map(String::as_str);
    string.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
