//! The events that can leave from the middle: scheduled ones, and those in line with a deadline, a tag or an epoch.
//!
//! They lie here; the line and the moments hold their keys only. A key whose event has left is stale, and whoever meets
//! it passes over it. So cancelling and replacing touch one entry, whatever waits besides.

use super::Queued;
use crate::tag::Tag;
use runtime_core::{Epoch, Tick};

/// Names one kept event for ever: the serial is never used again. Keys compare by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) serial: u64,
    pub(super) index: u32,
}

/// Where a kept event waits, and what only those have that wait there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Line {
        epoch: Option<Epoch>,
    },
    Timer {
        /// The chain of ticks that it belongs to.
        chain: Option<u64>,
    },
}

/// Eighty bytes and the event: at a million of them each further line of memory is felt.
pub(super) struct Kept<E> {
    pub(super) queued: Queued<E>,
    pub(super) place: Place,
    /// The moment of a scheduled event. The latest start of one in line: without one that is the end of time.
    pub(super) at: Tick,
    pub(super) tag: Option<Tag>,
}

impl<E> Kept<E> {
    /// When it is due, or its latest start if it has one.
    pub(super) fn moment(&self) -> Option<Tick> {
        Some(self.at).filter(|at| self.is_scheduled() || *at != Tick::MAX)
    }

    pub(super) const fn is_scheduled(&self) -> bool {
        matches!(self.place, Place::Timer { .. })
    }
}

/// No event has this serial.
const NONE: u64 = 0;
/// An empty shelf of more entries gives its memory back.
const WORTH_KEEPING: usize = 16_384;

pub(super) struct Shelf<E> {
    entries: Vec<Option<Kept<E>>>,
    /// The serial of each entry. Apart, because whether a key is stale is asked far more often than what it names.
    serials: Vec<u64>,
    free: Vec<u32>,
    last_serial: u64,
    len: usize,
}

impl<E> Default for Shelf<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), serials: Vec::new(), free: Vec::new(), last_serial: NONE, len: 0 }
    }
}

impl<E> Shelf<E> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Puts an event on the shelf. `None`, and the event is dropped, only beyond four thousand million of them.
    pub(super) fn insert(&mut self, kept: Kept<E>) -> Option<Key> {
        self.last_serial += 1;
        let serial = self.last_serial;
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.entries.len()).ok()?;
                self.entries.push(None);
                self.serials.push(NONE);
                index
            }
        };
        *self.entries.get_mut(index as usize)? = Some(kept);
        *self.serials.get_mut(index as usize)? = serial;
        self.len += 1;
        Some(Key { serial, index })
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Kept<E>> {
        if !self.is_live(key) {
            return None;
        }
        let kept = self.entries.get_mut(key.index as usize)?.take();
        if let Some(serial) = self.serials.get_mut(key.index as usize) {
            *serial = NONE;
        }
        self.free.push(key.index);
        self.len -= 1;
        if self.len == 0 && self.entries.len() > WORTH_KEEPING {
            *self = Self { last_serial: self.last_serial, ..Self::default() };
        }
        kept
    }

    pub(super) fn get(&self, key: Key) -> Option<&Kept<E>> {
        self.entries.get(key.index as usize)?.as_ref().filter(|_| self.is_live(key))
    }

    /// What lies at an index, with its key.
    pub(super) fn at(&self, index: u32) -> Option<(Key, &Kept<E>)> {
        let kept = self.entries.get(index as usize)?.as_ref()?;
        let serial = self.serials.get(index as usize).copied()?;
        Some((Key { serial, index }, kept))
    }

    pub(super) fn is_live(&self, key: Key) -> bool {
        self.serials.get(key.index as usize) == Some(&key.serial)
    }

    /// The keys of what lies here, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = (Key, &Kept<E>)> {
        (0..self.entries.len()).filter_map(|index| self.at(u32::try_from(index).ok()?))
    }
}
