//! What comes to a task from other threads.
//!
//! All that can wake a task's loop pings one [`Notify`]: the answer about a split, completed calls, batches in its input
//! channels, room in its output channels, the order to stop (Flink: `TaskMailbox`). So the loop waits at one place and
//! looks everywhere after each wake.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::services::{NextSplit, SplitError};

/// The answer to one request for a split, with the request's number.
pub(crate) type SplitAnswer = (u64, Result<NextSplit, SplitError>);

/// The mailbox of one task.
#[derive(Default)]
pub(crate) struct Mailbox {
    splits: Mutex<Vec<SplitAnswer>>,
    wake: Arc<Notify>,
    cancelled: AtomicBool,
}

impl Mailbox {
    pub(crate) fn put_split(&self, request: u64, answer: Result<NextSplit, SplitError>) {
        self.splits().push((request, answer));
        self.wake.notify_one();
    }

    pub(crate) fn take_splits(&self) -> Vec<SplitAnswer> {
        std::mem::take(&mut *self.splits())
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Waits until the task is told to stop. Only for the time before the loop runs: it takes every wake.
    pub(crate) async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.wake.notified().await;
        }
    }

    pub(crate) fn wake(&self) -> &Arc<Notify> {
        &self.wake
    }

    fn splits(&self) -> MutexGuard<'_, Vec<SplitAnswer>> {
        self.splits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
