//! The events that wait in line. A pure structure: no lock, no clock.
//!
//! Most events are plain. Those with a deadline or a tag can leave from the middle, so they lie in an index of their
//! own and the line holds their number only; a number without an entry is skipped.

use crate::event::NotRun;
use crate::tag::Tag;
use crate::ticket::TicketCell;
use runtime_core::{Epoch, Tick};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// An accepted event and what belongs to it.
pub(crate) struct Queued<E> {
    pub(crate) event: E,
    pub(crate) ticket: Option<Arc<TicketCell>>,
    /// Since when it could have run.
    pub(crate) waiting_since: Tick,
    pub(crate) epoch: Option<Epoch>,
}

/// An event that is not to run, and why.
pub(crate) type Rejected<E> = (Queued<E>, NotRun);

/// A place in the line.
pub(crate) enum Slot<E> {
    Plain(Queued<E>),
    Indexed(u64),
}

/// An event that can leave from the middle of the line.
pub(crate) struct Indexed<E> {
    pub(crate) queued: Queued<E>,
    pub(crate) deadline: Option<Tick>,
    pub(crate) tag: Option<Tag>,
}

/// A line that was once long gives its memory back when it is at most this share full.
const SHRINK_BELOW: usize = 8;
/// Lines up to this length are not worth shrinking.
const KEPT_SLOTS: usize = 4096;

pub(crate) struct Fifo<E> {
    slots: VecDeque<Slot<E>>,
    indexed: HashMap<u64, Indexed<E>>,
    deadlines: BTreeSet<(Tick, u64)>,
    /// Slots whose event has left.
    vacant: usize,
}

impl<E> Default for Fifo<E> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), indexed: HashMap::new(), deadlines: BTreeSet::new(), vacant: 0 }
    }
}

impl<E> Fifo<E> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.vacant
    }

    /// Takes over what producers have pushed meanwhile, behind what is here. If nothing is here, the two buffers
    /// change places and nothing is moved.
    pub(crate) fn take_over(&mut self, inbox: &mut VecDeque<Slot<E>>) {
        if self.len() > 0 {
            self.slots.append(inbox);
            return;
        }
        self.slots.clear();
        self.vacant = 0;
        std::mem::swap(&mut self.slots, inbox);
        if inbox.capacity() > KEPT_SLOTS && self.slots.len() < inbox.capacity() / SHRINK_BELOW {
            *inbox = VecDeque::new();
        }
    }

    pub(crate) fn push_front(&mut self, queued: Queued<E>) {
        self.slots.push_front(Slot::Plain(queued));
    }

    pub(crate) fn push_back(&mut self, queued: Queued<E>) {
        self.slots.push_back(Slot::Plain(queued));
    }

    pub(crate) fn push_back_indexed(&mut self, id: u64, entry: Indexed<E>) {
        if let Some(deadline) = entry.deadline {
            self.deadlines.insert((deadline, id));
        }
        self.indexed.insert(id, entry);
        self.slots.push_back(Slot::Indexed(id));
    }

    /// The first event, with the tag under which it could be found.
    pub(crate) fn pop(&mut self) -> Option<(Queued<E>, Option<Tag>)> {
        loop {
            match self.slots.pop_front()? {
                Slot::Plain(queued) => return Some((queued, None)),
                Slot::Indexed(id) => match self.unindex(id) {
                    Some(entry) => return Some((entry.queued, entry.tag)),
                    None => self.vacant -= 1,
                },
            }
        }
    }

    /// Takes an event out of the middle.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Indexed<E>> {
        let entry = self.unindex(id)?;
        self.vacant += 1;
        // Cancelling and putting again behind a long handler must not grow the line.
        if self.vacant > 64 && self.vacant > self.slots.len() / 2 {
            let Self { slots, indexed, .. } = self;
            slots.retain(|slot| match slot {
                Slot::Plain(_) => true,
                Slot::Indexed(id) => indexed.contains_key(id),
            });
            self.vacant = 0;
        }
        Some(entry)
    }

    /// Takes out an event whose deadline has come; the earliest first.
    pub(crate) fn pop_expired(&mut self, now: Tick) -> Option<Indexed<E>> {
        let (deadline, id) = *self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        self.remove(id)
    }

    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn deadline_of(&self, id: u64) -> Option<Tick> {
        self.indexed.get(&id)?.deadline
    }

    /// Since when the first event waits.
    pub(crate) fn oldest(&self) -> Option<Tick> {
        self.slots.iter().find_map(|slot| match slot {
            Slot::Plain(queued) => Some(queued.waiting_since),
            Slot::Indexed(id) => self.indexed.get(id).map(|entry| entry.queued.waiting_since),
        })
    }

    /// Takes out everything, in order, with its memory.
    pub(crate) fn drain(&mut self) -> Vec<Queued<E>> {
        let Self { slots, mut indexed, .. } = std::mem::take(self);
        let event = |slot| match slot {
            Slot::Plain(queued) => Some(queued),
            Slot::Indexed(id) => indexed.remove(&id).map(|entry| entry.queued),
        };
        slots.into_iter().filter_map(event).collect()
    }

    fn unindex(&mut self, id: u64) -> Option<Indexed<E>> {
        let entry = self.indexed.remove(&id)?;
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(entry)
    }
}
