//! The element queue by itself, for measuring.
//!
//! What an operator does for an element beside queueing it (deadlines, attempts, figures, keys) is measured with the
//! operator. This is the part that Flink calls `StreamElementQueue`, so that it can be set beside that. It is no way to
//! use the crate.

use runtime_core::{Record, Tick};

use crate::entries::Entries;
use crate::entry::State;
use crate::options::Order;
use crate::output::Outcome;
use crate::queue::{Next, Queue};

/// Puts elements, completes them by their places, and emits them in the order.
#[derive(Debug)]
pub struct ElementQueue<I, R> {
    entries: Entries<I, R, std::convert::Infallible>,
    queue: Queue,
    next_sequence: u64,
}

impl<I, R> ElementQueue<I, R> {
    /// An empty queue.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { entries: Entries::new(), queue: Queue::new(order), next_sequence: 0 }
    }

    /// Puts a record at the end; its place.
    #[inline]
    pub fn put(&mut self, value: I) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let slot = self.entries.insert(sequence, Record::new(value), self.queue.segment(), Tick::ZERO);
        self.queue.admit(slot);
        slot
    }

    /// The record in this place has its answer.
    #[inline]
    pub fn complete(&mut self, slot: u32, answer: R) {
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.state = State::Done(Outcome::Completed(answer));
            self.queue.ready(slot, &mut self.entries);
        }
    }

    /// Takes out the answer that leaves next.
    #[inline]
    pub fn emit(&mut self) -> Option<R> {
        let Next::Record(slot) = self.queue.pop(&mut self.entries)? else { return None };
        let entry = self.entries.get_mut(slot)?;
        entry.input = None;
        let state = std::mem::replace(&mut entry.state, State::Gone);
        self.entries.free(slot);
        match state {
            State::Done(Outcome::Completed(answer)) => Some(answer),
            _ => None,
        }
    }
}
