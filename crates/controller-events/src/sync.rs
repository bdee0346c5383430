//! The locks and atomics of this crate, and the one way it takes a lock.
//!
//! In tests with the feature `model` the queue and the wake-up are built on loom's, whose tests try every order of their steps.

use std::sync::PoisonError;
use std::time::Duration;

#[cfg(all(test, feature = "model"))]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize};
#[cfg(all(test, feature = "model"))]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(all(test, feature = "model")))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize};
#[cfg(not(all(test, feature = "model")))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Takes a lock. No user code ever runs while one of this crate's locks is held, so a poisoned one guards nothing
/// half-done and is taken all the same.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits with a lock, at most `limit`, while `condition` holds.
pub(crate) fn wait<'a, T>(
    condvar: &std::sync::Condvar,
    guard: std::sync::MutexGuard<'a, T>,
    limit: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> std::sync::MutexGuard<'a, T> {
    condvar.wait_timeout_while(guard, limit, condition).unwrap_or_else(PoisonError::into_inner).0
}

/// Apart from its neighbours by two cache lines, which is what processors fetch at once: what one thread writes all the
/// time must not lie beside what others read.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
