//! Deadlines of equal length, in the order in which they end.
//!
//! Timeouts of one operator are all equally long, so the one that was set first ends first, and a list does what a wheel
//! would. It is linked through the places of the records: to set a deadline or to take one back costs the same however
//! many there are, and what is in it are exactly those that still count, so nothing is left when nothing waits.

use runtime_core::Tick;

use crate::entry::NONE;

/// Stands in [`Link::next`] for "not in the list".
const UNSET: u32 = NONE - 1;

#[derive(Debug, Clone, Copy)]
struct Link {
    at: Tick,
    previous: u32,
    next: u32,
}

const NO_LINK: Link = Link { at: Tick::ZERO, previous: NONE, next: UNSET };

/// At most one deadline for each place.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// By place; grown when first needed.
    links: Vec<Link>,
    first: u32,
    last: u32,
}

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self { links: Vec::new(), first: NONE, last: NONE }
    }

    fn link(&self, slot: u32) -> Option<&Link> {
        self.links.get(slot as usize)
    }

    pub(crate) fn is_set(&self, slot: u32) -> bool {
        self.link(slot).is_some_and(|link| link.next != UNSET)
    }

    /// Sets the place's deadline, which has none.
    pub(crate) fn set(&mut self, slot: u32, at: Tick) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, NO_LINK);
        }
        // Almost always the last; time only runs forward.
        let mut previous = self.last;
        while let Some(link) = self.link(previous).filter(|link| link.at > at) {
            previous = link.previous;
        }
        let next = self.link(previous).map_or(self.first, |link| link.next);
        if let Some(link) = self.links.get_mut(slot as usize) {
            *link = Link { at, previous, next };
        }
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = slot,
            None => self.first = slot,
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = slot,
            None => self.last = slot,
        }
    }

    /// Takes the place's deadline back, if it has one.
    pub(crate) fn cancel(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize).filter(|link| link.next != UNSET) else { return };
        let Link { previous, next, .. } = std::mem::replace(link, NO_LINK);
        match self.links.get_mut(previous as usize) {
            Some(link) => link.next = next,
            None => self.first = next,
        }
        match self.links.get_mut(next as usize) {
            Some(link) => link.previous = previous,
            None => self.last = previous,
        }
    }

    /// When the first one ends.
    pub(crate) fn first(&self) -> Option<Tick> {
        self.link(self.first).map(|link| link.at)
    }

    /// Takes out the first one if it has ended, at its time, not only after it: the place that it was set for.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<u32> {
        let due = self.first;
        if self.first()? > now {
            return None;
        }
        self.cancel(due);
        Some(due)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(deadlines: &mut Deadlines, nanos: u64) -> Vec<u32> {
        std::iter::from_fn(|| deadlines.pop_due(Tick::from_nanos(nanos))).collect()
    }

    #[test]
    fn deadlines_end_at_their_time_in_the_order_in_which_they_were_set() {
        let mut deadlines = Deadlines::new();
        for slot in [3, 0, 7] {
            deadlines.set(slot, Tick::from_nanos(10 + u64::from(slot == 7)));
        }
        assert_eq!(deadlines.first(), Some(Tick::from_nanos(10)));
        assert_eq!(due(&mut deadlines, 9), [0_u32; 0]);
        assert_eq!(due(&mut deadlines, 10), [3, 0]);
        assert!(!deadlines.is_set(3) && deadlines.is_set(7));
        assert_eq!(due(&mut deadlines, u64::MAX), [7]);
        assert_eq!(deadlines.first(), None);
    }

    #[test]
    fn one_that_is_taken_back_leaves_the_others_linked_wherever_it_stood() {
        for taken in 0..3 {
            let mut deadlines = Deadlines::new();
            (0..3).for_each(|slot| deadlines.set(slot, Tick::from_nanos(slot.into())));
            deadlines.cancel(taken);
            deadlines.cancel(taken);
            deadlines.set(3, Tick::from_nanos(3));
            let left: Vec<u32> = (0..4).filter(|&slot| slot != taken).collect();
            assert_eq!(due(&mut deadlines, 3), left);
        }
    }

    #[test]
    fn one_that_ends_before_the_last_finds_its_place() {
        let mut deadlines = Deadlines::new();
        for (slot, at) in [(0, 10), (1, 30), (2, 20), (3, 5)] {
            deadlines.set(slot, Tick::from_nanos(at));
        }
        assert_eq!(due(&mut deadlines, 100), [3, 0, 2, 1]);
    }

    #[test]
    fn memory_follows_the_places_not_the_deadlines() {
        let mut deadlines = Deadlines::new();
        for n in 0..100_000_u32 {
            deadlines.set(n % 100, Tick::from_nanos(n.into()));
            if n >= 50 {
                deadlines.cancel((n - 50) % 100);
            }
        }
        assert_eq!(deadlines.links.len(), 100);
    }
}
