//! Events that wait for their time, and those that are found by their tag.

use super::admission::{Full, refusal};
use super::{Phase, Queue, Queued};
use crate::put::{PutError, When};
use crate::tag::Tag;
use runtime_core::Tick;

impl<E> Queue<E> {
    /// Schedules an event, as the tick of a chain if it is one. Returns the one that had its tag, and whether the loop has
    /// to hear of it now.
    pub(crate) fn schedule(
        &self,
        mut queued: Queued<E>,
        when: &When,
        tag: Option<Tag>,
        chain: Option<u64>,
        exempt: bool,
    ) -> Result<(Option<Queued<E>>, bool), PutError<E>> {
        let mut guarded = self.lock_guarded();
        if guarded.phase != Phase::Open {
            return Err(refusal(guarded.phase, queued.event));
        }
        if let Some(capacity) = self.limits.timer_capacity
            && let depth = guarded.store.scheduled()
            && depth >= capacity
            && !exempt
            && !tag.as_ref().is_some_and(|tag| guarded.store.is_tagged(tag))
        {
            return Err(Full { depth, capacity }.refusal(queued.event));
        }
        let at = guarded.store.moment(tag.as_ref(), when);
        queued.waiting_since = queued.waiting_since.max(at);
        let replaced = guarded.store.schedule(queued, at, tag, chain);
        guarded.accepted += 1;
        self.note_store(&mut guarded);
        Ok((replaced, at < guarded.waits_until))
    }

    /// The moment of the event that waits under a tag.
    pub(crate) fn deadline_of(&self, tag: &Tag) -> Option<Tick> {
        self.lock_guarded().store.deadline_of(tag)
    }

    pub(crate) fn cancel(&self, tag: &Tag) -> Option<Queued<E>> {
        let mut guarded = self.lock_guarded();
        let cancelled = guarded.store.cancel(tag);
        self.note_store(&mut guarded);
        cancelled
    }

    /// Takes out the waiting tick of a chain.
    pub(crate) fn cancel_tick(&self, tag: &Tag, chain: u64) -> Option<Queued<E>> {
        let mut guarded = self.lock_guarded();
        if !guarded.store.is_tick_of(tag, chain) {
            return None;
        }
        guarded.store.cancel(tag)
    }

    /// Gives the waiting tick of a chain another moment.
    pub(crate) fn postpone(&self, tag: &Tag, at: Tick, chain: u64) {
        let mut guarded = self.lock_guarded();
        if guarded.store.is_tick_of(tag, chain)
            && let Some(mut tick) = guarded.store.cancel(tag)
        {
            tick.waiting_since = at;
            guarded.store.schedule(tick, at, Some(tag.clone()), Some(chain));
        }
    }

    /// When the earliest scheduled event is due. Looks at many of them: not for every turn.
    pub(crate) fn next_timer(&self) -> Option<Tick> {
        self.lock_guarded().store.next_timer()
    }
}
