//! How a loop that has nothing to do waits, and how it is told that there is something.
//!
//! The loop *arms* itself, looks once more for work, and only then waits. Whoever puts something looks at the flag
//! afterwards. Both touch the queue's lock in between, so either the loop sees the event or the producer sees the flag;
//! a loop that is busy costs its producers one load.

use crate::sync::{AtomicBool, lock, wait};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};
use std::task::Waker;
use std::time::Duration;

/// Longer waits are cut: the operating system's timers do not know the end of time.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

pub(crate) struct Wake {
    armed: AtomicBool,
    called: Mutex<Called>,
    condvar: Condvar,
}

#[derive(Default)]
struct Called {
    yes: bool,
    task: Option<Waker>,
}

impl Default for Wake {
    fn default() -> Self {
        Self { armed: AtomicBool::new(false), called: Mutex::default(), condvar: Condvar::new() }
    }
}

impl Wake {
    /// From now on a [`call`](Self::call) is noticed. A task passes its waker, a thread none.
    pub(crate) fn arm(&self, task: Option<&Waker>) {
        let mut called = lock(&self.called);
        called.yes = false;
        match (&mut called.task, task) {
            (Some(old), Some(new)) => old.clone_from(new),
            (old, new) => *old = new.cloned(),
        }
        self.armed.store(true, Ordering::SeqCst);
    }

    /// The loop found work after all.
    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Wakes the loop if it waits or is about to.
    pub(crate) fn call(&self) {
        if !self.armed.load(Ordering::SeqCst) || !self.armed.swap(false, Ordering::SeqCst) {
            return;
        }
        let task = {
            let mut called = lock(&self.called);
            called.yes = true;
            called.task.take()
        };
        // Outside the lock, which the woken thread wants at once.
        self.condvar.notify_one();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Blocks until called since the last arming, or until `limit` of real time has passed.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let called = lock(&self.called);
        let limit = limit.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        drop(wait(&self.condvar, called, limit, |called| !called.yes));
        self.disarm();
    }

    /// Whether the loop has been called since it was armed.
    #[cfg(test)]
    #[cfg(feature = "model")]
    pub(crate) fn was_called(&self) -> bool {
        lock(&self.called).yes
    }
}
