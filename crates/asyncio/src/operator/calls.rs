//! What the operator wants done, and how calls end.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use runtime_core::Tick;

use super::AsyncWaitOperator;
use super::admission::nanos;
use crate::entry::{EntryId, NONE, State};
use crate::key::KeySelector;
use crate::options::FailurePolicy;
use crate::output::{CallError, FailureReason, Outcome, Output};
use crate::panics::text_of;
use crate::retry::{Retry, RetryPredicate, Verdict};

/// What whoever drives the operator has to do.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options, Retry};
/// use runtime_core::{Record, StreamElement, Tick};
/// use std::time::Duration;
///
/// let options = Options::ordered()
///     .timeout(Duration::from_millis(20))
///     .attempt_timeout(Duration::from_millis(10))
///     .retry(Retry::FixedDelay { max_retries: 1, delay: Duration::from_millis(5) })
///     .build()?;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options).asking_on_timeout();
/// operator.push(StreamElement::Record(Record::new(7)), Tick::ZERO).unwrap();
/// let mut seen = Vec::new();
/// // No call is ever answered.
/// for millis in [0, 10, 15, 20] {
///     operator.advance(Tick::from_millis(millis));
///     while let Some(effect) = operator.next_effect() {
///         seen.push(match effect {
///             Effect::Start { attempt, .. } => format!("{millis}: start {attempt}"),
///             Effect::Abandon { attempt, .. } => format!("{millis}: abandon {attempt}"),
///             Effect::TimedOut { .. } => format!("{millis}: what now?"),
///         });
///     }
/// }
/// assert_eq!(seen, ["0: start 1", "10: abandon 1", "15: start 2", "20: what now?"]);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Make a call about the [input](AsyncWaitOperator::input) of this entry and hand in its
    /// [completion](AsyncWaitOperator::complete) under the entry's name and the attempt's number. The
    /// [context](AsyncWaitOperator::context) says what the call may know of itself.
    Start {
        /// Whose call.
        entry: EntryId,
        /// Which attempt since the record was taken in, from 1.
        attempt: u32,
    },
    /// Nobody waits for this attempt any more: drop the call, if it runs.
    Abandon {
        /// Whose call.
        entry: EntryId,
        /// Which attempt.
        attempt: u32,
    },
    /// The record's budget has ended: say what follows by completing this attempt. Only where the operator
    /// [asks](AsyncWaitOperator::asking_on_timeout).
    TimedOut {
        /// Whose budget.
        entry: EntryId,
        /// The newest attempt, which may still run; 0 where no call was made for it.
        attempt: u32,
    },
}

/// What an attempt's result leads to.
pub(super) enum Judged {
    Final,
    /// Another attempt, not sooner than this.
    Retry(Duration),
    /// The predicate panicked with this text.
    Panicked(String),
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// The next thing to do, in the order in which it was decided. Take effects until there is none after every call that
    /// can cause some: push, park, restore, complete, advance, end of input, close.
    ///
    /// The deadlines of an attempt are armed when the next effect is asked for, so complete a call that is ready at once
    /// before that: it then costs no timer.
    pub fn next_effect(&mut self) -> Option<Effect> {
        if self.unarmed.is_some() {
            self.arm();
        }
        loop {
            let effect = self.effects.pop_front()?;
            if let Effect::Start { entry, attempt } = effect {
                if !self.entries.find(entry).is_some_and(|entry| entry.awaits(attempt)) {
                    continue;
                }
                self.unarmed = Some((entry, attempt));
            }
            return Some(effect);
        }
    }

    /// Whether there is something to do.
    #[cfg(feature = "tokio")]
    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Arms the deadlines of the attempt handed out last, if it still runs.
    pub(super) fn arm(&mut self) {
        let Some((id, attempt)) = self.unarmed.take() else { return };
        let Some(entry) = self.entries.find(id).filter(|entry| entry.runs(attempt)) else { return };
        let (first_at, last_at) = (entry.first_at, entry.last_at);
        self.arm_attempt(id.slot, first_at, last_at);
    }

    /// Arms the deadlines of an attempt that runs.
    pub(super) fn arm_attempt(&mut self, slot: u32, first_at: Tick, last_at: Tick) {
        if let Some(limit) = self.options.attempt_timeout() {
            self.attempt_limits.set(slot, last_at + limit);
        }
        self.arm_budget(slot, first_at);
    }

    pub(super) fn arm_budget(&mut self, slot: u32, first_at: Tick) {
        if let Some(timeout) = self.options.timeout()
            && !self.budgets.is_set(slot)
        {
            self.budgets.set(slot, first_at + timeout);
        }
    }

    /// Takes leadership from the record in this place: who follows it, oldest first.
    pub(super) fn resign(&mut self, slot: u32) -> VecDeque<EntryId> {
        let Some(coalescing) = &mut self.coalescing else { return VecDeque::new() };
        let input = self.entries.get(slot).and_then(|entry| entry.input.as_ref());
        input.map(|input| coalescing.resign(&input.value, slot)).unwrap_or_default()
    }
}

impl<I, R, E, S: KeySelector<I>, P: RetryPredicate<R, E>> AsyncWaitOperator<I, R, E, S, P> {
    /// An attempt has ended. Says whether anybody waited for it: the first completion of the newest attempt counts, all
    /// others are ignored and counted.
    ///
    /// Only changes what is held. The record leaves through [`next_output`](Self::next_output), or starts again through
    /// [`next_effect`](Self::next_effect).
    ///
    /// ```
    /// # use asyncio::{AsyncWaitOperator, Effect, Options};
    /// # use runtime_core::{Record, StreamElement, Tick};
    /// # let now = Tick::ZERO;
    /// # let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// # operator.push(StreamElement::Record(Record::new(21)), now).unwrap();
    /// # let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
    /// assert!(operator.complete(entry, attempt, Ok(42), now));
    /// assert!(!operator.complete(entry, attempt, Ok(43), now), "the first one counts");
    /// assert_eq!(operator.figures(now).ignored_completions, 1);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn complete(
        &mut self,
        entry: EntryId,
        attempt: u32,
        result: Result<R, CallError<E>>,
        now: Tick,
    ) -> bool {
        let now = self.at(now);
        let Some(found) = self.entries.find_mut(entry).filter(|entry| entry.awaits(attempt)) else {
            // A handle that was dropped because its call was abandoned completes nothing.
            if !matches!(result, Err(CallError::HandleDropped)) {
                self.figures.ignored_completions += 1;
            }
            return false;
        };
        match result {
            // What most calls come to takes a short way.
            Ok(answer) if self.coalescing.is_none() && *self.options.retry() == Retry::None => {
                if matches!(found.state, State::TimedOut) {
                    self.effects.push_back(Effect::Abandon { entry, attempt });
                }
                found.state = State::Done(Outcome::Completed(answer));
                self.attempt_limits.cancel(entry.slot);
                self.finish(entry.slot, now);
            }
            result => self.settle(entry, result, now),
        }
        true
    }

    /// As [`complete`](Self::complete) for any result.
    ///
    /// Decides what becomes of the awaited attempt's result: the record's outcome, or a pause before another attempt.
    pub(super) fn settle(&mut self, id: EntryId, result: Result<R, CallError<E>>, now: Tick) {
        self.attempt_limits.cancel(id.slot);
        let Some(entry) = self.entries.find(id) else { return };
        let judged = match entry.state {
            // After the budget's end nothing is retried, and nobody is asked.
            State::TimedOut => {
                // Who answers for a call that still runs makes it useless; one that shared a call has none of its own.
                if entry.attempt > 0 {
                    self.effects.push_back(Effect::Abandon { entry: id, attempt: entry.attempt });
                }
                Judged::Final
            }
            _ => self.judge(entry.attempt, &result),
        };
        self.apply(id, judged, result, now);
    }

    /// What this result of this attempt leads to, whatever time it is.
    #[inline]
    pub(super) fn judge(&self, attempt: u32, result: &Result<R, CallError<E>>) -> Judged {
        let retry = self.options.retry();
        let hurries = self.ended && !self.options.retry_after_end();
        if *retry == Retry::None || hurries || !retry.can_retry(attempt) {
            return Judged::Final;
        }
        if result.as_ref().is_err_and(|error| !error.may_be_retried()) {
            return Judged::Final;
        }
        match catch_unwind(AssertUnwindSafe(|| self.predicate.judge(result))) {
            Ok(Verdict::Final) => Judged::Final,
            Ok(Verdict::Retry) => Judged::Retry(Duration::ZERO),
            Ok(Verdict::RetryAfter(hint)) => Judged::Retry(hint),
            Err(panic) => Judged::Panicked(text_of(&*panic)),
        }
    }

    pub(super) fn apply(&mut self, id: EntryId, judged: Judged, result: Result<R, CallError<E>>, now: Tick) {
        let outcome = match judged {
            Judged::Retry(hint) if self.may_retry_once_more() => return self.pause(id, hint, now),
            Judged::Panicked(text) => self.failure(FailureReason::PredicatePanicked(text)),
            Judged::Final | Judged::Retry(_) => self.outcome(result),
        };
        self.conclude(id.slot, outcome, now);
    }

    fn may_retry_once_more(&mut self) -> bool {
        let allowed = self.allowance.as_mut().is_none_or(|allowance| allowance.take());
        if !allowed {
            self.figures.retries_refused += 1;
        }
        allowed
    }

    fn pause(&mut self, id: EntryId, hint: Duration, now: Tick) {
        let Some(entry) = self.entries.find_mut(id) else { return };
        entry.state = State::Backoff;
        let due = now + self.options.retry().delay(entry.attempt, id.sequence).max(hint);
        // A pause that reaches beyond the budget never ends: the timeout decides.
        let first_at = entry.first_at;
        if self.options.timeout().is_none_or(|timeout| due < first_at + timeout) {
            self.retries.push(Reverse((due, id.sequence, id.slot)));
        }
        self.arm_budget(id.slot, first_at);
    }

    /// What a record's last result means for it.
    pub(super) fn outcome(&self, result: Result<R, CallError<E>>) -> Outcome<R, E> {
        match result {
            Ok(answer) => Outcome::Completed(answer),
            Err(error) => self.failure(error.into()),
        }
    }

    pub(super) fn failure(&self, reason: FailureReason<E>) -> Outcome<R, E> {
        let policy =
            catch_unwind(AssertUnwindSafe(|| self.predicate.policy(&reason, self.options.on_failure())));
        // A policy that panics leaves it open what should become of the record, so nothing goes on.
        Outcome::Failed { policy: policy.unwrap_or(FailurePolicy::Fail), reason }
    }

    /// The record in this place has its outcome, and so have those that follow it.
    pub(super) fn conclude(&mut self, slot: u32, outcome: Outcome<R, E>, now: Tick) {
        let followers = self.resign(slot);
        if followers.is_empty() {
            return self.conclude_one(slot, outcome, now);
        }
        let attempt = self.entries.get(slot).map(|entry| (entry.attempt, entry.last_at));
        let copy = |outcome| self.coalescing.as_ref().map(|coalescing| coalescing.copy(outcome));
        let copies: Vec<_> = followers.into_iter().filter_map(|id| Some((id, copy(&outcome)?))).collect();
        self.conclude_one(slot, outcome, now);
        for (id, outcome) in copies {
            let Some(entry) = self.entries.find_mut(id) else { continue };
            if matches!(entry.state, State::Following) {
                if let Some((attempt, last_at)) = attempt {
                    (entry.attempt, entry.last_at) = (attempt, last_at);
                }
                self.conclude_one(id.slot, outcome, now);
            }
        }
    }

    fn conclude_one(&mut self, slot: u32, outcome: Outcome<R, E>, now: Tick) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        self.figures.failures += u64::from(matches!(outcome, Outcome::Failed { .. }));
        if let Outcome::Failed { policy: FailurePolicy::Fail, .. } = outcome {
            // It is told at once, and its place is as good as free: others must not hang on it (Flink: FLINK-6435).
            self.failed = true;
            let attempts = entry.attempts();
            entry.state = State::Gone;
            if let Some(input) = entry.input.take() {
                self.leaving.push_back(Output::Record { input, outcome, attempts });
            }
        } else {
            entry.state = State::Done(outcome);
        }
        self.finish(slot, now);
    }

    /// The record in this place has just got its outcome: what follows for its timers, its key and its turn.
    fn finish(&mut self, slot: u32, now: Tick) {
        let Some(entry) = self.entries.get(slot) else { return };
        self.budgets.cancel(slot);
        self.figures.in_flight -= 1;
        self.figures.completed_waiting += usize::from(!matches!(entry.state, State::Gone));
        self.latency.record_alone(nanos(now, entry.first_at));
        let place = entry.key;
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
