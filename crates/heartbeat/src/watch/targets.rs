//! What is known of the targets, beside their stamps and timers: what every heartbeat reads apart from what is rarely touched.

use crate::detector::Gaps;
use crate::monitor::HeartbeatMonitor;
use crate::slab::{Slab, grow};
use runtime_core::Tick;

/// Whom a heartbeat has to come from. Aligned so that with an id of three words or less, held in place, none lies across
/// two cache lines.
#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Known<K, N> {
    pub(super) id: K,
    pub(super) incarnation: N,
}

#[derive(Debug)]
pub(super) struct Rest {
    /// When the next request is due; the end of time where none is sent.
    pub(super) request_at: Tick,
    /// What few targets have.
    pub(super) extra: Option<Box<Extra>>,
    pub(super) monitor: HeartbeatMonitor,
}

#[derive(Debug, Default)]
pub(super) struct Extra {
    pub(super) last_error: Option<Box<str>>,
    pub(super) gaps: Option<Gaps>,
}

/// Both by place. At a place that is free the rest is what it last was.
#[derive(Debug)]
pub(super) struct Targets<K, N> {
    known: Slab<Known<K, N>>,
    rest: Vec<Rest>,
}

impl<K, N> Targets<K, N> {
    pub(super) const fn new() -> Self {
        Self { known: Slab::new(), rest: Vec::new() }
    }

    pub(super) fn insert(&mut self, known: Known<K, N>, rest: Rest) -> usize {
        let place = self.known.insert(known);
        match self.rest.get_mut(place) {
            Some(before) => *before = rest,
            None => {
                grow(&mut self.rest);
                self.rest.push(rest);
            }
        }
        place
    }

    /// The monitor of a target that is no longer of interest.
    pub(super) fn remove(&mut self, place: usize) -> Option<HeartbeatMonitor> {
        self.known.remove(place)?;
        let rest = self.rest.get_mut(place)?;
        rest.extra = None;
        Some(rest.monitor)
    }

    #[inline]
    pub(super) fn known(&self, place: usize) -> Option<&Known<K, N>> {
        self.known.get(place)
    }

    pub(super) fn rest(&self, place: usize) -> Option<&Rest> {
        self.rest.get(place)
    }

    pub(super) fn rest_mut(&mut self, place: usize) -> Option<&mut Rest> {
        self.rest.get_mut(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Known<K, N>, &Rest)> + '_ {
        self.known.iter().zip(&self.rest).map(|((place, known), rest)| (place, known, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::ResourceId;

    #[test]
    fn what_is_known_of_a_target_fits_in_little() {
        assert_eq!(size_of::<Option<Known<ResourceId, u64>>>(), 32, "none across two lines");
        assert_eq!(size_of::<Rest>(), 24);
        assert_eq!(size_of::<crate::stamp::Stamp>(), 32);
    }
}
