//! Where producers wait for room in a full line.

use crate::sync::{lock, wait};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Counts the changes after which a put may succeed, and lets threads wait for the next one.
#[derive(Default)]
pub(crate) struct Room {
    changes: Mutex<u64>,
    changed: Condvar,
}

impl Room {
    /// The changes so far: taken before looking whether there is room.
    pub(crate) fn seen(&self) -> u64 {
        *lock(&self.changes)
    }

    /// There may be room now, or it may be too late.
    pub(crate) fn changed(&self) {
        *lock(&self.changes) += 1;
        self.changed.notify_all();
    }

    /// Blocks until there was a change after `seen`, or `limit` of real time has passed.
    pub(crate) fn wait(&self, seen: u64, limit: Duration) {
        drop(wait(&self.changed, lock(&self.changes), limit, |changes| *changes == seen));
    }
}
