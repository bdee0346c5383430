//! What takes out everything at once: barriers, drains and ends.
//!
//! Each takes both locks, decides under them, and hands out what it took: callbacks run outside. Until they have all
//! returned the loop starts nothing.

use super::admission::refusal;
use super::{Guarded, Phase, Queue, Queued, Rejected};
use crate::event::NotRun;
use crate::put::{ClearScope, PutError};
use runtime_core::Tick;

/// What closing found.
pub(crate) struct Closing<E> {
    pub(crate) rejected: Vec<Rejected<E>>,
    /// Whether a thread of its own drives the loop and will end it.
    pub(crate) driven_by_thread: bool,
}

impl<E> Queue<E> {
    /// The barrier's critical section: takes out everything in scope and puts `queued` behind it. The loop starts
    /// nothing until [`end_clear`](Self::end_clear).
    pub(crate) fn begin_clear(
        &self,
        queued: Queued<E>,
        scope: ClearScope,
    ) -> Result<Vec<Rejected<E>>, PutError<E>> {
        let mut guarded = self.lock_guarded();
        let mut inbox = self.lock_inbox();
        if guarded.phase != Phase::Open {
            return Err(refusal(guarded.phase, queued.event));
        }
        self.fetch(&mut guarded, &mut inbox);
        let cleared = guarded.store.clear(scope, NotRun::Preempted);
        guarded.store.prepend(queued);
        guarded.accepted += 1;
        guarded.clears += 1;
        self.note_store(&mut guarded);
        Ok(cleared)
    }

    pub(crate) fn end_clear(&self) {
        self.lock_guarded().clears -= 1;
    }

    /// Accepts nothing more, and takes out what would only be due later; what is `deadlined` too, if so wanted. To be
    /// followed by [`end_clear`](Self::end_clear).
    pub(crate) fn begin_drain(&self, now: Tick, deadlined: bool) -> Vec<Rejected<E>> {
        let mut guarded = self.lock_guarded();
        guarded.clears += 1;
        if guarded.phase != Phase::Open {
            return Vec::new();
        }
        guarded.phase = Phase::Draining;
        self.lock_inbox().phase = Phase::Draining;
        let rejected = guarded.store.clear_for_drain(now, deadlined);
        self.note_store(&mut guarded);
        rejected
    }

    /// Accepts nothing more and takes out everything. To be followed by [`end_clear`](Self::end_clear).
    pub(crate) fn close(&self) -> Closing<E> {
        let mut guarded = self.lock_guarded();
        let rejected = self.finish(&mut guarded, Phase::Closed);
        Closing { rejected, driven_by_thread: guarded.driven_by_thread }
    }

    /// As [`close`](Self::close), because the loop ends of a fault.
    pub(crate) fn die(&self) -> Vec<Rejected<E>> {
        let mut rejected = self.finish(&mut self.lock_guarded(), Phase::Dead);
        rejected.iter_mut().for_each(|(_, why)| *why = NotRun::LoopDied);
        rejected
    }

    fn finish(&self, guarded: &mut Guarded<E>, phase: Phase) -> Vec<Rejected<E>> {
        let mut inbox = self.lock_inbox();
        guarded.clears += 1;
        if matches!(guarded.phase, Phase::Open | Phase::Draining) {
            guarded.phase = phase;
            inbox.phase = phase;
        }
        self.fetch(guarded, &mut inbox);
        let rejected = guarded.store.clear(ClearScope::All, NotRun::ShuttingDown);
        self.note_store(guarded);
        rejected
    }
}
