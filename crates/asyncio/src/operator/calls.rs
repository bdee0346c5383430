//! What the operator wants done, and how calls end.

use std::cmp::Reverse;
use std::time::Duration;

use runtime_core::Tick;

use super::AsyncWaitOperator;
use crate::deadlines::Deadline;
use crate::entry::{EntryId, NONE, State, find, find_mut};
use crate::key::KeySelector;
use crate::output::{CallError, Outcome};
use crate::retry::{RetryPredicate, Verdict};

/// What whoever drives the operator has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Make a call about the [input](AsyncWaitOperator::input) of this entry and hand in its
    /// [completion](AsyncWaitOperator::complete) under the entry's name and the attempt's number.
    Start {
        /// Whose call.
        entry: EntryId,
        /// Which attempt, from 1.
        attempt: u32,
        /// When nobody will wait for it any more: the end of the budget or of the attempt's time, whichever is first.
        deadline: Option<Tick>,
    },
    /// Nobody waits for this attempt any more: drop the call, if it runs.
    Abandon {
        /// Whose call.
        entry: EntryId,
        /// Which attempt.
        attempt: u32,
    },
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// The next thing to do, in the order in which it was decided. Take effects until there is none after every call that
    /// can cause some: push, complete, advance, end of input, close.
    ///
    /// The deadlines of an attempt are armed when the next effect is asked for, so complete a call that is ready at once
    /// before that: it then costs no timer.
    pub fn next_effect(&mut self) -> Option<Effect> {
        if self.unarmed.is_some() {
            self.arm();
        }
        loop {
            let effect = self.effects.pop_front()?;
            if let Effect::Start { entry, attempt, .. } = effect {
                if !find(&self.entries, entry).is_some_and(|entry| entry.runs(attempt)) {
                    continue;
                }
                self.unarmed = Some((entry, attempt));
            }
            return Some(effect);
        }
    }

    /// Arms the deadlines of the attempt handed out last, if it still runs.
    pub(super) fn arm(&mut self) {
        let Some((id, attempt)) = self.unarmed.take() else { return };
        let Some(entry) = find(&self.entries, id).filter(|entry| entry.runs(attempt)) else { return };
        if let Some(limit) = self.options.attempt_timeout() {
            let deadline = Deadline { at: entry.last_at + limit, entry: id, attempt };
            self.attempt_limits
                .push(deadline, |d| find(&self.entries, d.entry).is_some_and(|e| e.runs(d.attempt)));
        }
        self.arm_budget(id);
    }

    fn arm_budget(&mut self, id: EntryId) {
        let Some(timeout) = self.options.timeout() else { return };
        let Some(entry) = find_mut(&mut self.entries, id).filter(|entry| !entry.budget_armed) else { return };
        entry.budget_armed = true;
        let deadline = Deadline { at: entry.first_at + timeout, entry: id, attempt: 0 };
        self.budgets.push(deadline, |d| find(&self.entries, d.entry).is_some_and(|e| !e.is_done()));
    }

    /// The record in this place has its outcome.
    pub(super) fn conclude(&mut self, slot: u32, outcome: Outcome<R, E>, now: Tick) {
        let Some(entry) = self.entries.get_mut(slot as usize) else { return };
        if matches!(outcome, Outcome::Failed(_)) {
            self.figures.failures += 1;
        }
        entry.state = State::Done(outcome);
        let place = entry.key;
        self.figures.in_flight -= 1;
        self.figures.completed_waiting += 1;
        let Some(keys) = self.keys.as_mut().filter(|_| place != NONE) else {
            self.queue.ready(slot, &mut self.entries);
            return;
        };
        keys.finished(place);
        while let Some(slot) = keys.let_go(place, &mut self.entries) {
            self.queue.ready(slot, &mut self.entries);
        }
        self.start_of_key(place, now);
    }
}

impl<I, R, E, S: KeySelector<I>, P: RetryPredicate<R, E>> AsyncWaitOperator<I, R, E, S, P> {
    /// An attempt has ended. Says whether anybody waited for it: the first completion of the newest attempt counts, all
    /// others are ignored and counted.
    ///
    /// Only changes what is held. The record leaves through [`next_output`](Self::next_output), or starts again through
    /// [`next_effect`](Self::next_effect).
    pub fn complete(
        &mut self,
        entry: EntryId,
        attempt: u32,
        result: Result<R, CallError<E>>,
        now: Tick,
    ) -> bool {
        let now = self.at(now);
        if !find(&self.entries, entry).is_some_and(|entry| entry.runs(attempt)) {
            // A handle that was dropped because its call was abandoned completes nothing.
            if !matches!(result, Err(CallError::HandleDropped)) {
                self.figures.ignored_completions += 1;
            }
            return false;
        }
        self.settle(entry, result, now);
        true
    }

    /// Decides what becomes of the running attempt's result: the record's outcome, or a pause before another attempt.
    pub(super) fn settle(&mut self, id: EntryId, result: Result<R, CallError<E>>, now: Tick) {
        let Some(entry) = find_mut(&mut self.entries, id) else { return };
        let retry = self.options.retry();
        let may_retry = !self.ended && retry.can_retry(entry.attempt);
        let hint = match if may_retry { self.predicate.judge(&result) } else { Verdict::Final } {
            Verdict::Final => {
                let outcome = match result {
                    Ok(answer) => Outcome::Completed(answer),
                    Err(error) => Outcome::Failed(error.into()),
                };
                return self.conclude(id.slot, outcome, now);
            }
            Verdict::Retry => Duration::ZERO,
            Verdict::RetryAfter(hint) => hint,
        };
        entry.state = State::Backoff;
        let due = now + retry.delay(entry.attempt, id.sequence).max(hint);
        // A pause that reaches beyond the budget never ends: the timeout decides.
        if self.options.timeout().is_none_or(|timeout| due < entry.first_at + timeout) {
            self.retries.push(Reverse((due, id.sequence, id.slot)));
        }
        self.arm_budget(id);
    }
}
