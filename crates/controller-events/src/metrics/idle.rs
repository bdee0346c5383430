//! How much of its time a loop has nothing to do.
//!
//! Weighted by time and with the present wait in it: a ratio of single waits says nothing about a loop that waits
//! for an hour, or that never does.

use crate::sync::lock;
use runtime_core::Tick;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The ratio is taken over at least this long once the loop has lived so long, and at most over twice as long.
const WINDOW: Duration = Duration::from_secs(60);
/// Stands for "is not idle".
const BUSY: u64 = u64::MAX;

/// A moment, and how long the loop had been idle in all by then.
#[derive(Clone, Copy)]
struct Mark {
    at: Tick,
    idle: u64,
}

pub(crate) struct Idle {
    /// Ended waits, in nanoseconds.
    ended: AtomicU64,
    /// When the present wait began.
    since: AtomicU64,
    /// Where the ratio's interval begins, and where the next one will.
    marks: Mutex<[Mark; 2]>,
}

impl Idle {
    pub(super) fn new(now: Tick) -> Self {
        let mark = Mark { at: now, idle: 0 };
        Self {
            ended: AtomicU64::new(0),
            since: AtomicU64::new(now.as_nanos().min(BUSY - 1)),
            marks: Mutex::new([mark; 2]),
        }
    }

    /// There is nothing to do from now on.
    pub(crate) fn begins(&self, now: Tick) {
        if self.since.load(Ordering::Relaxed) == BUSY {
            self.since.store(now.as_nanos().min(BUSY - 1), Ordering::Relaxed);
        }
    }

    /// There is something to do.
    pub(crate) fn ends(&self, now: Tick) {
        let since = self.since.load(Ordering::Relaxed);
        if since != BUSY {
            let ended = self.ended.load(Ordering::Relaxed) + now.as_nanos().saturating_sub(since);
            self.ended.store(ended, Ordering::Relaxed);
            self.since.store(BUSY, Ordering::Relaxed);
        }
    }

    /// Since when there has been nothing to do.
    pub(crate) fn since(&self) -> Option<Tick> {
        Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != BUSY).map(Tick::from_nanos)
    }

    /// All the time without anything to do.
    pub(super) fn total(&self, now: Tick) -> Duration {
        Duration::from_nanos(self.nanos(now))
    }

    /// The share of the last minute or two.
    pub(super) fn ratio(&self, now: Tick) -> f64 {
        let idle = self.nanos(now);
        let mut marks = lock(&self.marks);
        let [from, next] = *marks;
        if now.since(next.at) >= WINDOW {
            *marks = [next, Mark { at: now, idle }];
        }
        let passed = now.since(from.at).as_nanos();
        if passed == 0 {
            return 1.0;
        }
        (idle.saturating_sub(from.idle) as f64 / passed as f64).min(1.0)
    }

    fn nanos(&self, now: Tick) -> u64 {
        let present = self.since().map_or(0, |since| now.as_nanos().saturating_sub(since.as_nanos()));
        self.ended.load(Ordering::Relaxed).saturating_add(present)
    }
}
