//! The ordered mode: elements leave as they came, the head holds up all others.

use std::collections::VecDeque;

use super::{Next, NumberedControl};
use crate::entries::Entries;
use crate::entry::{Entry, NONE};

#[derive(Debug)]
pub(crate) struct Fifo {
    /// Places of records, and [`NONE`] for the next of the control elements: most of what waits are records.
    items: VecDeque<u32>,
    controls: VecDeque<NumberedControl>,
}

impl Fifo {
    pub(super) const fn new() -> Self {
        Self { items: VecDeque::new(), controls: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn admit(&mut self, slot: u32) {
        self.items.push_back(slot);
    }

    pub(super) fn admit_control(&mut self, control: NumberedControl) {
        self.items.push_back(NONE);
        self.controls.push_back(control);
    }

    pub(super) fn pop<I, R, E>(&mut self, entries: &Entries<I, R, E>) -> Option<Next> {
        let slot = *self.items.front()?;
        let next = if slot == NONE {
            Next::Control(self.controls.pop_front()?.1)
        } else if entries.get(slot).is_some_and(Entry::is_done) {
            Next::Record(slot)
        } else {
            return None;
        };
        self.items.pop_front();
        Some(next)
    }

    pub(super) fn controls(&self) -> impl Iterator<Item = NumberedControl> + '_ {
        self.controls.iter().copied()
    }
}
