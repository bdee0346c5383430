//! The records that an operator holds, by their places.
//!
//! As a slab, but a record is never moved: it is filled into its place piece by piece and taken out of it the same way,
//! since moving it as a whole would cost more than everything else that is done for it.

use runtime_core::{Record, Tick};

use crate::entry::{Entry, EntryId, NONE, State};

/// The sequence number of an empty place.
const VACANT: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Entries<I, R, E> {
    places: Vec<Entry<I, R, E>>,
    /// For each place the one behind it: in its key's queue until it is ready, then among its segment's ready ones, then
    /// among the empty places. Apart from the records, so that whoever goes along a list need not wait for one record to
    /// come from memory before it knows where the next one lies.
    behind: Vec<u32>,
    /// The first empty place.
    free: u32,
}

impl<I, R, E> Entries<I, R, E> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), behind: Vec::new(), free: NONE }
    }

    /// The place that the next record will have.
    pub(crate) fn next_place(&self) -> u32 {
        // The capacity keeps places below 2^32 - 1.
        if self.free == NONE { self.places.len() as u32 } else { self.free }
    }

    /// Fills the record, which has not started, into the next place.
    pub(crate) fn insert(&mut self, sequence: u64, input: Record<I>, segment: u64, now: Tick) -> u32 {
        let slot = self.next_place();
        let Some(entry) = self.places.get_mut(slot as usize) else {
            self.places.push(Entry::new(sequence, input, segment, now));
            self.behind.push(NONE);
            return slot;
        };
        if let Some(behind) = self.behind.get_mut(slot as usize) {
            self.free = std::mem::replace(behind, NONE);
        }
        entry.sequence = sequence;
        entry.input = Some(input);
        entry.state = State::Queued;
        entry.attempt = 0;
        (entry.first_at, entry.last_at) = (now, now);
        entry.segment = segment;
        entry.key = NONE;
        slot
    }

    /// Frees the place, out of which everything of use was taken.
    pub(crate) fn free(&mut self, slot: u32) {
        let (place, behind) = (self.places.get_mut(slot as usize), self.behind.get_mut(slot as usize));
        if let (Some(entry), Some(behind)) = (place, behind) {
            entry.sequence = VACANT;
            entry.past = None;
            *behind = self.free;
            self.free = slot;
        }
    }

    /// The place behind this one in the list that it is in.
    pub(crate) fn behind(&self, slot: u32) -> Option<u32> {
        self.behind.get(slot as usize).copied()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Entry<I, R, E>> {
        self.places.get(slot as usize)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry<I, R, E>> {
        self.places.get_mut(slot as usize)
    }

    /// The record that goes by this name, unless it has left.
    pub(crate) fn find(&self, id: EntryId) -> Option<&Entry<I, R, E>> {
        self.get(id.slot).filter(|entry| entry.sequence == id.sequence)
    }

    /// As [`find`](Self::find), to change it.
    pub(crate) fn find_mut(&mut self, id: EntryId) -> Option<&mut Entry<I, R, E>> {
        self.get_mut(id.slot).filter(|entry| entry.sequence == id.sequence)
    }

    /// The records that are held, with their names, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, &Entry<I, R, E>)> + '_ {
        let held = self.places.iter().zip(0..).filter(|(entry, _)| entry.sequence != VACANT);
        held.map(|(entry, slot)| (EntryId { sequence: entry.sequence, slot }, entry))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// A first-in, first-out list of places that are linked by [`Entries::behind`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub(crate) head: u32,
    tail: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };

    pub(crate) const fn is_empty(self) -> bool {
        self.head == NONE
    }

    pub(crate) fn push<I, R, E>(&mut self, slot: u32, entries: &mut Entries<I, R, E>) {
        if let Some(behind) = entries.behind.get_mut(self.tail as usize) {
            *behind = slot;
        } else {
            self.head = slot;
        }
        self.tail = slot;
    }

    pub(crate) fn pop<I, R, E>(&mut self, entries: &mut Entries<I, R, E>) -> Option<u32> {
        let slot = self.head;
        let behind = entries.behind.get_mut(slot as usize)?;
        self.head = std::mem::replace(behind, NONE);
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(slot)
    }
}
