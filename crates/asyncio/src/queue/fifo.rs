//! The ordered mode: elements leave as they came, the head holds up all others.

use std::collections::VecDeque;

use super::{Next, NumberedControl};
use crate::entry::{Entries, Entry};

#[derive(Debug, Clone, Copy)]
enum Item {
    Record(u32),
    Control(NumberedControl),
}

#[derive(Debug)]
pub(crate) struct Fifo {
    items: VecDeque<Item>,
}

impl Fifo {
    pub(super) const fn new() -> Self {
        Self { items: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn admit(&mut self, slot: u32) {
        self.items.push_back(Item::Record(slot));
    }

    pub(super) fn admit_control(&mut self, control: NumberedControl) {
        self.items.push_back(Item::Control(control));
    }

    pub(super) fn pop<I, R, E>(&mut self, entries: &Entries<I, R, E>) -> Option<Next> {
        let next = match *self.items.front()? {
            Item::Record(slot) if entries.get(slot as usize).is_some_and(Entry::is_done) => {
                Next::Record(slot)
            }
            Item::Record(_) => return None,
            Item::Control((_, control)) => Next::Control(control),
        };
        self.items.pop_front();
        Some(next)
    }

    pub(super) fn controls(&self) -> impl Iterator<Item = NumberedControl> + '_ {
        self.items.iter().filter_map(|item| match *item {
            Item::Control(control) => Some(control),
            Item::Record(_) => None,
        })
    }
}
