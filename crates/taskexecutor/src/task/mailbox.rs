//! What comes to a task from other threads.
//!
//! All that can wake a task's loop pings one [`Notify`]: the answer about a split, completed calls, batches in its input
//! channels, room in its output channels, orders about checkpoints, the order to stop (Flink: `TaskMailbox`). So the loop waits at one place and
//! looks everywhere after each wake.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime_core::EpochMillis;
use tokio::sync::Notify;

use super::savepoint::SavepointTarget;
use super::services::{NextSplit, SplitError};

/// The answer to one request for a split, with the request's number.
pub(crate) type SplitAnswer = (u64, Result<NextSplit, SplitError>);

/// What the job master says about a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// It has begun.
    Trigger { checkpoint: u64, begun_at: EpochMillis },
    /// It is complete and its output visible.
    Confirm(u64),
    /// It is given up.
    Abort(u64),
    /// It will begin, as a savepoint.
    Announce { checkpoint: u64, target: SavepointTarget },
    /// A source reads no further.
    Drain,
}

/// What has come since the last look.
#[derive(Default)]
pub(crate) struct Mail {
    pub(crate) splits: Vec<SplitAnswer>,
    pub(crate) orders: Vec<Order>,
}

/// The mailbox of one task.
#[derive(Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    wake: Arc<Notify>,
    cancelled: AtomicBool,
}

impl Mailbox {
    pub(crate) fn put_split(&self, request: u64, answer: Result<NextSplit, SplitError>) {
        self.mail().splits.push((request, answer));
        self.wake.notify_one();
    }

    pub(crate) fn put_order(&self, order: Order) {
        self.mail().orders.push(order);
        self.wake.notify_one();
    }

    pub(crate) fn take(&self) -> Mail {
        std::mem::take(&mut *self.mail())
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

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
