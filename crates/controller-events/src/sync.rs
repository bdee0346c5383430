//! The locks and atomics of this crate, and the one way it takes a lock.
//!
//! In tests with the feature `model` the queue and the wake-up are built on loom's, whose tests try every order of their steps.

use std::sync::PoisonError;
use std::time::Duration;

#[cfg(all(test, feature = "model"))]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicUsize},
    thread::yield_now,
};
#[cfg(not(all(test, feature = "model")))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicUsize},
    thread::yield_now,
};

#[cfg(not(all(test, feature = "model")))]
pub(crate) use crate::brief::{Brief, BriefGuard};
#[cfg(all(test, feature = "model"))]
pub(crate) use loom::sync::MutexGuard as BriefGuard;

/// In a model of something else, loom's lock stands for the brief one, which has a model of its own: to try every order of
/// two spinning locks as well takes hours.
#[cfg(all(test, feature = "model"))]
pub(crate) struct Brief<T>(loom::sync::Mutex<T>);

#[cfg(all(test, feature = "model"))]
impl<T> Brief<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
        self.0.lock().unwrap()
    }
}

/// The standard cell with the face of loom's.
#[cfg(not(all(test, feature = "model")))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(all(test, feature = "model")))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// Keeps the processor from looking at anything for a moment.
pub(crate) fn look_away(pauses: u32) {
    // In a model, where nothing takes time, another thread has to go on.
    if cfg!(all(test, feature = "model")) {
        yield_now();
    }
    (0..pauses).for_each(|_| std::hint::spin_loop());
}

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
