//! Deadlines of equal length, in the order in which they were set.
//!
//! Timeouts of one operator are all equally long, so the one that was set first ends first and a queue does what a wheel
//! would. A deadline is not taken out when its call completes: that would need links. It is skipped when it reaches the
//! front, and when the queue has grown to twice what was alive at the last sweep the dead ones are swept out. So the cost
//! of a deadline stays constant and the memory proportional to what is in flight, however long the timeout.

use std::collections::VecDeque;

use runtime_core::Tick;

use crate::entry::EntryId;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Tick,
    pub(crate) entry: EntryId,
    pub(crate) attempt: u32,
}

/// Below this length a sweep is not worth its while.
const SMALL: usize = 64;

#[derive(Debug)]
pub(crate) struct Deadlines {
    items: VecDeque<Deadline>,
    sweep_at: usize,
}

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self { items: VecDeque::new(), sweep_at: SMALL }
    }

    /// Sets a deadline that does not end before those set earlier.
    pub(crate) fn push(&mut self, deadline: Deadline, is_live: impl Fn(&Deadline) -> bool) {
        if self.items.len() >= self.sweep_at {
            self.items.retain(is_live);
            self.sweep_at = (2 * self.items.len()).max(SMALL);
        }
        self.items.push_back(deadline);
    }

    /// When the first live one ends.
    pub(crate) fn next(&mut self, is_live: impl Fn(&Deadline) -> bool) -> Option<Tick> {
        while let Some(first) = self.items.front() {
            if is_live(first) {
                return Some(first.at);
            }
            self.items.pop_front();
        }
        None
    }

    /// Takes out the first live one if it has ended: at its time, not only after it.
    pub(crate) fn pop_due(&mut self, now: Tick, is_live: impl Fn(&Deadline) -> bool) -> Option<Deadline> {
        while let Some(first) = self.items.front() {
            if !is_live(first) {
                self.items.pop_front();
            } else if first.at <= now {
                return self.items.pop_front();
            } else {
                return None;
            }
        }
        None
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(n: u64) -> Deadline {
        Deadline { at: Tick::from_nanos(n), entry: EntryId { sequence: n, slot: 0 }, attempt: 1 }
    }

    #[test]
    fn memory_stays_proportional_to_what_is_alive() {
        let mut deadlines = Deadlines::new();
        for n in 0..100_000 {
            deadlines.push(deadline(n), |d| d.entry.sequence + 100 > n);
            assert!(deadlines.items.len() <= 201, "{} at {n}", deadlines.items.len());
        }
    }

    #[test]
    fn a_sweep_keeps_what_is_alive_in_order() {
        let mut deadlines = Deadlines::new();
        let even = |d: &Deadline| d.entry.sequence.is_multiple_of(2);
        for n in 0..200 {
            deadlines.push(deadline(n), even);
        }
        let mut seen = Vec::new();
        while let Some(due) = deadlines.pop_due(Tick::from_nanos(150), even) {
            seen.push(due.entry.sequence);
        }
        assert_eq!(seen, (0..=150).step_by(2).collect::<Vec<_>>());
        assert_eq!(deadlines.next(even), Some(Tick::from_nanos(152)));
    }
}
