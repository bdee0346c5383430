//! The unordered and the keyed mode: records leave as they are ready, but never across a control element.
//!
//! A segment is the records between two control elements together with the control element that ends it (Flink gives the
//! control element a segment of its own; what leaves is the same). Only the first segment gives out records; its
//! control element leaves when all of them have, and the next segment is the first. The last segment has no end yet and
//! is kept even when empty.

use std::collections::VecDeque;

use super::{Next, NumberedControl};
use crate::entries::{Entries, List};

#[derive(Debug)]
struct Segment {
    /// Records that are not ready yet.
    pending: usize,
    ready: List,
    end: Option<NumberedControl>,
}

impl Segment {
    const EMPTY: Self = Self { pending: 0, ready: List::EMPTY, end: None };
}

#[derive(Debug)]
pub(crate) struct Segments {
    /// The number of the first segment that is left.
    first: u64,
    first_segment: Segment,
    later: VecDeque<Segment>,
}

impl Segments {
    pub(super) const fn new() -> Self {
        // The first segment stands apart from the later ones, so that there always is one.
        Self { first: 0, first_segment: Segment::EMPTY, later: VecDeque::new() }
    }

    pub(super) fn last(&self) -> u64 {
        self.first + self.later.len() as u64
    }

    fn last_segment(&mut self) -> &mut Segment {
        self.later.back_mut().unwrap_or(&mut self.first_segment)
    }

    pub(super) fn lets_pass(&self) -> bool {
        self.first_segment.end.is_none() && self.first_segment.ready.is_empty()
    }

    pub(super) fn admit(&mut self) {
        self.last_segment().pending += 1;
    }

    pub(super) fn admit_control(&mut self, control: NumberedControl) {
        self.last_segment().end = Some(control);
        self.later.push_back(Segment::EMPTY);
    }

    pub(super) fn ready<I, R, E>(&mut self, slot: u32, entries: &mut Entries<I, R, E>) {
        let Some(number) = entries.get(slot).map(|entry| entry.segment) else { return };
        let segment = match number.checked_sub(self.first) {
            None => return,
            Some(0) => &mut self.first_segment,
            Some(ahead) => match usize::try_from(ahead - 1).ok().and_then(|at| self.later.get_mut(at)) {
                Some(segment) => segment,
                None => return,
            },
        };
        segment.pending -= 1;
        segment.ready.push(slot, entries);
    }

    pub(super) fn pop<I, R, E>(&mut self, entries: &mut Entries<I, R, E>) -> Option<Next> {
        let segment = &mut self.first_segment;
        if let Some(slot) = segment.ready.pop(entries) {
            return Some(Next::Record(slot));
        }
        if segment.pending > 0 {
            return None;
        }
        let (_, control) = segment.end?;
        self.first += 1;
        self.first_segment = self.later.pop_front().unwrap_or(Segment::EMPTY);
        Some(Next::Control(control))
    }

    pub(super) fn controls(&self) -> impl Iterator<Item = NumberedControl> + '_ {
        std::iter::once(&self.first_segment).chain(&self.later).filter_map(|segment| segment.end)
    }
}
