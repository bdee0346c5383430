//! The events that wait for their time. A pure structure: no lock, no clock.
//!
//! Ordered by moment and then by sequence, so that events of one moment run in the order of their scheduling and a
//! thousand of them cost no more than a thousand others. (Kafka bumps colliding deadlines by a nanosecond each.)

use crate::fifo::Queued;
use crate::tag::Tag;
use runtime_core::Tick;
use std::collections::BTreeMap;

/// The place of a scheduled event.
pub(crate) type TimerKey = (Tick, u64);

pub(crate) struct Timer<E> {
    pub(crate) queued: Queued<E>,
    pub(crate) tag: Option<Tag>,
}

pub(crate) struct Timers<E>(BTreeMap<TimerKey, Timer<E>>);

impl<E> Default for Timers<E> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<E> Timers<E> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn insert(&mut self, key: TimerKey, timer: Timer<E>) {
        self.0.insert(key, timer);
    }

    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Timer<E>> {
        self.0.remove(&key)
    }

    pub(crate) fn next(&self) -> Option<Tick> {
        self.0.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<Timer<E>> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }

    /// Takes out those that are due after `now`, or all of them without a `now`.
    pub(crate) fn drain_after(&mut self, now: Option<Tick>) -> Vec<Timer<E>> {
        let drained = match now {
            None => std::mem::take(&mut self.0),
            // No sequence number reaches the greatest: everything due at `now` stays.
            Some(now) => self.0.split_off(&(now, u64::MAX)),
        };
        drained.into_values().collect()
    }
}
