//! A small number that only grows and that threads and tasks can wait for.
//!
//! Tickets, replies and the end of a loop are told through it. It is level-triggered: whoever comes late sees what has
//! already happened, as often as it asks.

use crate::sync::{lock, wait};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Added to the level while somebody waits: whoever raises it looks for them only then.
const WAITED_FOR: u8 = 0x80;

/// The level and who waits for it to rise.
#[derive(Default)]
pub(crate) struct Signal {
    level: AtomicU8,
    waiters: Mutex<Waiters>,
    risen: Condvar,
}

#[derive(Default)]
struct Waiters {
    tasks: Vec<Waker>,
}

impl Signal {
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Acquire) & !WAITED_FOR
    }

    /// Raises the level and wakes everyone, each of whom looks for itself whether that is enough. Nobody else may raise
    /// the same signal meanwhile.
    pub(crate) fn raise(&self, level: u8) {
        if self.level.swap(level, Ordering::AcqRel) & WAITED_FOR == 0 {
            return;
        }
        let tasks = {
            let mut waiters = lock(&self.waiters);
            self.risen.notify_all();
            std::mem::take(&mut waiters.tasks)
        };
        for task in tasks {
            task.wake();
        }
    }

    /// Blocks until the level is at least `level`; returns the level then.
    pub(crate) fn wait(&self, level: u8) -> u8 {
        let mut waiters = lock(&self.waiters);
        while self.is_below(level) {
            waiters = self.risen.wait(waiters).unwrap_or_else(PoisonError::into_inner);
        }
        self.level()
    }

    /// As [`wait`](Self::wait), but for at most `limit` of real time; `None` if the level was not reached in it.
    pub(crate) fn wait_timeout(&self, level: u8, limit: Duration) -> Option<u8> {
        drop(wait(&self.risen, lock(&self.waiters), limit, |_| self.is_below(level)));
        Some(self.level()).filter(|reached| *reached >= level)
    }

    /// Ready with the level as soon as it is at least `level`.
    pub(crate) fn poll(&self, level: u8, cx: &mut Context<'_>) -> Poll<u8> {
        let mut waiters = lock(&self.waiters);
        if !self.is_below(level) {
            return Poll::Ready(self.level());
        }
        if !waiters.tasks.iter().any(|task| task.will_wake(cx.waker())) {
            waiters.tasks.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Whether there is something to wait for; if so, whoever raises the level will know. Under the lock of the
    /// waiters, who cannot miss the call then.
    fn is_below(&self, level: u8) -> bool {
        self.level() < level && self.level.fetch_or(WAITED_FOR, Ordering::AcqRel) & !WAITED_FOR < level
    }
}
