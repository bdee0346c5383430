//! A lock for a few nanoseconds of work.
//!
//! The standard lock asks at its release whether somebody sleeps, which is a second locked instruction, and looks twice
//! for panics: 21 ns where one locked instruction is 7.5. An event passes two locks on its way, each held for a push or a
//! pop, and with this one both cost half. Whoever finds it taken looks away for a moment, long enough for the owner to
//! do its work ten times without its cache line being taken away, and then gives its thread away until it is free: so it
//! is only for work that is short, runs no foreign code and cannot block.
//!
//! A panic under it leaves it taken no longer than the unwinding, and marks nothing: no foreign code runs under it, so
//! nothing is left half-done.
//!
//! The one module with `unsafe` besides the clock's counter: a safe lock cannot be built on atomics. `brief::model` tries
//! every order of its steps, and `cargo xtask test --memory` runs the queue on it under a memory checker.
#![allow(unsafe_code)]

use crate::sync::{AtomicBool, UnsafeCell, look_away, yield_now};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

/// How often to look for the lock, and how long to look away in between, before giving the thread away each time.
const LOOKS: u32 = 3;
const PAUSES: u32 = 8;

pub(crate) struct Brief<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one guard at a time: sharing the lock is sending the
// value to and fro. So the value has to be `Send` and need not be `Sync`, as with the standard lock.
unsafe impl<T: Send> Sync for Brief<T> {}

pub(crate) struct BriefGuard<'a, T> {
    of: &'a Brief<T>,
    /// What it stands for: it is shared and sent as a `&mut T` is.
    borrowed: PhantomData<&'a mut T>,
}

impl<T> Brief<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
        if self.take() { self.guard() } else { self.lock_later() }
    }

    #[inline]
    fn take(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn guard(&self) -> BriefGuard<'_, T> {
        BriefGuard { of: self, borrowed: PhantomData }
    }

    #[cold]
    fn lock_later(&self) -> BriefGuard<'_, T> {
        let mut looks = 0;
        loop {
            if looks < LOOKS {
                looks += 1;
                look_away(PAUSES);
            } else {
                // Its owner may wait for this very processor.
                yield_now();
            }
            // A look that takes nothing leaves the cache line with the owner.
            if !self.taken.load(Ordering::Relaxed) && self.take() {
                return self.guard();
            }
        }
    }
}

impl<T> Deref for BriefGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: while this guard lives `taken` is set, so no other guard exists, and only guards reach the value; the
        // borrow of the guard lasts as long as that of the value.
        self.of.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for BriefGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this borrow of the guard is the only one.
        self.of.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for BriefGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.of.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(feature = "model")]
mod model {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    #[test]
    fn one_at_a_time_has_the_value_and_sees_what_the_one_before_did() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let number = Arc::new(Brief::new(0));
            let other = {
                let number = Arc::clone(&number);
                thread::spawn(move || {
                    let mut number = number.lock();
                    let seen = *number;
                    *number = seen + 1;
                })
            };
            *number.lock() += 1;
            other.join().unwrap();
            assert_eq!(*number.lock(), 2);
        });
    }
}
