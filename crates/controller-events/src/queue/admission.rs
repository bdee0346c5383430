//! Who is let in: how much may wait, and what is said to those for whom there is no room.

use super::{Inbox, Phase, Queue};
use crate::put::{Lane, PutError};
use std::sync::atomic::Ordering;

/// How much may wait.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) capacity: Option<usize>,
    pub(crate) low: Option<usize>,
    pub(crate) timer_capacity: Option<usize>,
}

impl<E> Queue<E> {
    /// Asks for [`Room::changed`] when the line gets shorter or the loop ends. `false` if a put has a chance at once.
    pub(crate) fn want_room(&self, lane: Lane) -> bool {
        let mut guarded = self.lock_guarded();
        let inbox = self.lock_inbox();
        // Under both locks: whatever makes room comes before this and is seen, or after it and sees the wish.
        let full = self.limit(lane).is_some_and(|limit| self.depth_with(&inbox) >= limit);
        let wanted = full && inbox.phase == Phase::Open;
        guarded.room_wanted |= wanted;
        wanted
    }

    pub(super) fn depth_with(&self, inbox: &Inbox<E>) -> usize {
        // Exact as far as producers go: the inbox changes hands only under its lock, and the store shrinks by itself.
        inbox.line.len() + self.by_the_loop.0.0.load(Ordering::Acquire)
    }

    pub(super) fn is_full(&self, inbox: &Inbox<E>, lane: Lane) -> Option<Full> {
        let capacity = self.limit(lane)?;
        let depth = self.depth_with(inbox);
        (depth >= capacity).then_some(Full { depth, capacity })
    }

    fn limit(&self, lane: Lane) -> Option<usize> {
        match lane {
            Lane::Control => None,
            Lane::Normal => self.limits.capacity,
            Lane::Low => self.limits.low.or(self.limits.capacity.map(|capacity| capacity / 2)),
        }
    }
}

/// There is no room.
pub(super) struct Full {
    pub(super) depth: usize,
    pub(super) capacity: usize,
}

impl Full {
    #[cold]
    pub(super) fn refusal<E>(self, event: E) -> PutError<E> {
        PutError::Overloaded { event, depth: self.depth, capacity: self.capacity }
    }
}

#[cold]
pub(super) fn refusal<E>(phase: Phase, event: E) -> PutError<E> {
    if phase == Phase::Dead { PutError::Dead(event) } else { PutError::Closed(event) }
}
