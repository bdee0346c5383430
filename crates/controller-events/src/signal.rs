//! A small number that only grows and that threads and tasks can wait for.
//!
//! Tickets, replies and the end of a loop are told through it. It is level-triggered: whoever comes late sees what has
//! already happened, as often as it asks.

use crate::sync::lock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The level and who waits for it to rise.
#[derive(Default)]
pub(crate) struct Signal {
    level: AtomicU8,
    waiters: Mutex<Waiters>,
    risen: Condvar,
}

#[derive(Default)]
struct Waiters {
    threads: usize,
    tasks: Vec<Waker>,
}

impl Signal {
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Acquire)
    }

    /// Raises the level and wakes everyone, each of whom looks for itself whether that is enough.
    pub(crate) fn raise(&self, level: u8) {
        let tasks = {
            let mut waiters = lock(&self.waiters);
            self.level.store(level, Ordering::Release);
            if waiters.threads > 0 {
                self.risen.notify_all();
            }
            std::mem::take(&mut waiters.tasks)
        };
        for task in tasks {
            task.wake();
        }
    }

    /// Blocks until the level is at least `level`; returns the level then.
    pub(crate) fn wait(&self, level: u8) -> u8 {
        let mut waiters = lock(&self.waiters);
        while self.level() < level {
            waiters.threads += 1;
            waiters = self.risen.wait(waiters).unwrap_or_else(PoisonError::into_inner);
            waiters.threads -= 1;
        }
        self.level()
    }

    /// As [`wait`](Self::wait), but for at most `limit` of real time; `None` if the level was not reached in it.
    pub(crate) fn wait_timeout(&self, level: u8, limit: Duration) -> Option<u8> {
        let mut waiters = lock(&self.waiters);
        waiters.threads += 1;
        let (mut waiters, _) = self
            .risen
            .wait_timeout_while(waiters, limit, |_| self.level() < level)
            .unwrap_or_else(PoisonError::into_inner);
        waiters.threads -= 1;
        Some(self.level()).filter(|reached| *reached >= level)
    }

    /// Ready with the level as soon as it is at least `level`.
    pub(crate) fn poll(&self, level: u8, cx: &mut Context<'_>) -> Poll<u8> {
        let mut waiters = lock(&self.waiters);
        let reached = self.level();
        if reached >= level {
            return Poll::Ready(reached);
        }
        if !waiters.tasks.iter().any(|task| task.will_wake(cx.waker())) {
            waiters.tasks.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
