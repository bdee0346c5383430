//! The queue of each key in the keyed mode.
//!
//! The records of a key that have not yet been let go are linked in the order of admission. They start in that order, at
//! most so many at a time, and are let go in that order: one that completes before an earlier one of its key waits for
//! it. A key is forgotten when its last record has been let go.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;

use crate::entries::{Entries, List};
use crate::entry::NONE;

#[derive(Debug)]
struct KeyQueue<K> {
    key: K,
    hash: u64,
    /// Not yet let go, oldest first.
    records: List,
    /// The first that has not started, or [`NONE`].
    unstarted: u32,
    in_flight: usize,
}

#[derive(Debug)]
pub(crate) struct Keys<K> {
    /// The places of the queues, found by their keys: each key is kept once.
    places: HashTable<u32>,
    queues: Slab<KeyQueue<K>>,
    hasher: DefaultHashBuilder,
    max_in_flight: usize,
}

impl<K: Eq + Hash> Keys<K> {
    pub(crate) fn new(max_in_flight: usize) -> Self {
        Self {
            places: HashTable::new(),
            queues: Slab::new(),
            hasher: DefaultHashBuilder::default(),
            max_in_flight,
        }
    }

    /// Whether no record of any key is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether a record of this key is held.
    pub(crate) fn holds(&self, key: &K) -> bool {
        !self.is_empty() && self.place_of(key, self.hasher.hash_one(key)).is_some()
    }

    fn place_of(&self, key: &K, hash: u64) -> Option<u32> {
        let same = |&place: &u32| self.queues.get(place as usize).is_some_and(|queue| queue.key == *key);
        self.places.find(hash, same).copied()
    }

    /// Puts the record in this place at the end of its key's queue. It does not start by that: see [`start`](Self::start).
    pub(crate) fn admit<I, R, E>(&mut self, key: K, slot: u32, entries: &mut Entries<I, R, E>) -> u32 {
        let hash = self.hasher.hash_one(&key);
        let place = self.place_of(&key, hash).unwrap_or_else(|| {
            let queue = KeyQueue { key, hash, records: List::EMPTY, unstarted: NONE, in_flight: 0 };
            // There are no more keys than records, and the capacity keeps those below 2^32 - 1.
            let place = self.queues.insert(queue) as u32;
            let queues = &self.queues;
            let hash_of = |&place: &u32| queues.get(place as usize).map_or(0, |queue| queue.hash);
            self.places.insert_unique(hash, place, hash_of);
            place
        });
        if let Some(queue) = self.queues.get_mut(place as usize) {
            queue.records.push(slot, entries);
            if queue.unstarted == NONE {
                queue.unstarted = slot;
            }
        }
        place
    }

    /// The next record of this key that may start. It counts as started.
    pub(crate) fn start<I, R, E>(&mut self, place: u32, entries: &Entries<I, R, E>) -> Option<u32> {
        let queue = self.queues.get_mut(place as usize)?;
        if queue.in_flight >= self.max_in_flight {
            return None;
        }
        let slot = queue.unstarted;
        queue.unstarted = entries.behind(slot)?;
        queue.in_flight += 1;
        Some(slot)
    }

    /// A started record of this key has its outcome.
    pub(crate) fn finished(&mut self, place: u32) {
        if let Some(queue) = self.queues.get_mut(place as usize) {
            queue.in_flight -= 1;
        }
    }

    /// Takes out the key's oldest record if it has its outcome.
    pub(crate) fn let_go<I, R, E>(&mut self, place: u32, entries: &mut Entries<I, R, E>) -> Option<u32> {
        let queue = self.queues.get_mut(place as usize)?;
        if !entries.get(queue.records.head)?.is_done() {
            return None;
        }
        let slot = queue.records.pop(entries);
        if queue.records.is_empty() {
            let queue = self.queues.remove(place as usize);
            if let Ok(found) = self.places.find_entry(queue.hash, |&other| other == place) {
                found.remove();
            }
        }
        slot
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.queues.clear();
    }
}
