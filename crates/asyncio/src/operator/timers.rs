//! What time does to the operator, and its end.

use std::cmp::Reverse;

use runtime_core::Tick;

use super::{AsyncWaitOperator, Effect};
use crate::entry::{EntryId, State};
use crate::key::KeySelector;
use crate::output::{CallError, FailureReason};
use crate::queue::Queue;
use crate::retry::RetryPredicate;

impl<I, R, E, S: KeySelector<I>, P: RetryPredicate<R, E>> AsyncWaitOperator<I, R, E, S, P> {
    /// Fires the timers that are due at `now`: deadlines at their time, not only after it. Parked elements take the places
    /// that have come free.
    ///
    /// Budgets come first: a record whose budget has ended gets no other attempt, however late the clock is looked at.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, FailureReason, Options, Outcome, Output};
    /// use runtime_core::{Record, StreamElement, Tick};
    /// use std::time::Duration;
    ///
    /// let options = Options::ordered().timeout(Duration::from_millis(10)).build()?;
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options);
    /// operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
    /// while operator.next_effect().is_some() {}
    /// assert_eq!(operator.next_wakeup(), Some(Tick::from_millis(10)));
    /// operator.advance(Tick::from_millis(9));
    /// assert!(operator.next_output().is_none());
    /// operator.advance(Tick::from_millis(10));
    /// let Some(Output::Record { outcome: Outcome::Failed { reason, .. }, .. }) = operator.next_output() else {
    ///     panic!("its time is over");
    /// };
    /// assert_eq!(reason, FailureReason::Timeout);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn advance(&mut self, now: Tick) {
        let now = self.at(now);
        self.arm();
        while let Some(slot) = self.budgets.pop_due(now) {
            self.time_out(slot, now);
        }
        while let Some(slot) = self.attempt_limits.pop_due(now) {
            let Some(entry) = self.entries.get(slot) else { continue };
            let (id, attempt) = (EntryId { sequence: entry.sequence, slot }, entry.attempt);
            self.figures.attempt_timeouts += 1;
            self.effects.push_back(Effect::Abandon { entry: id, attempt });
            self.settle(id, Err(CallError::AttemptTimeout), now);
        }
        while let Some(&Reverse((due, sequence, slot))) = self.retries.peek() {
            if due > now {
                break;
            }
            self.retries.pop();
            if self.pauses(EntryId { sequence, slot }) {
                self.start(slot, now);
            }
        }
        self.admit_parked(now);
    }

    /// Tells that no further element will come. Nothing is retried from now on: records that pause before a retry are
    /// called once more at once, and that attempt's outcome stands, like those of the attempts that run (Flink: `endInput`,
    /// which makes a further attempt for some that run, too). Unless
    /// [`retry_after_end`](crate::OptionsBuilder::retry_after_end) lets retries go on.
    ///
    /// Go on driving the operator until [`is_drained`](Self::is_drained). Timers still fire.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, CallError, Effect, Options, Retry};
    /// use runtime_core::{Record, StreamElement, Tick};
    /// use std::time::Duration;
    ///
    /// let now = Tick::ZERO;
    /// let options = Options::ordered()
    ///     .timeout(Duration::from_secs(7_200))
    ///     .retry(Retry::FixedDelay { max_retries: 5, delay: Duration::from_secs(3_600) })
    ///     .build()?;
    /// let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(options);
    /// operator.push(StreamElement::Record(Record::new(1)), now).unwrap();
    /// let Some(Effect::Start { entry, attempt: 1 }) = operator.next_effect() else { panic!("it starts") };
    /// operator.complete(entry, 1, Err(CallError::Error("busy")), now);
    /// assert!(operator.next_effect().is_none(), "it pauses for an hour");
    ///
    /// operator.end_of_input(now);
    /// assert_eq!(operator.next_effect(), Some(Effect::Start { entry, attempt: 2 }));
    /// operator.complete(entry, 2, Ok(10), now);
    /// assert!(operator.next_output().is_some());
    /// assert!(operator.is_drained());
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn end_of_input(&mut self, now: Tick) {
        if self.ended {
            return;
        }
        let now = self.at(now);
        self.arm();
        self.ended = true;
        if self.options.retry_after_end() {
            return;
        }
        self.retries.clear();
        // A record whose budget has ended gets no other attempt here either: its timeout is due.
        let pausing = self.entries.iter().filter(|(_, entry)| {
            matches!(entry.state, State::Backoff) && !self.budget_has_ended(entry.first_at)
        });
        let mut pausing: Vec<EntryId> = pausing.map(|(id, _)| id).collect();
        pausing.sort_unstable_by_key(|id| id.sequence);
        for id in pausing {
            self.start(id.slot, now);
        }
    }

    fn time_out(&mut self, slot: u32, now: Tick) {
        self.attempt_limits.cancel(slot);
        let Some(entry) = self.entries.get(slot) else { return };
        let id = EntryId { sequence: entry.sequence, slot };
        self.figures.timeouts += 1;
        let (attempt, runs) = (entry.attempt, entry.runs(entry.attempt));
        // Its followers' budgets are their own: the first of them makes a call for all.
        self.lead_on(id, now);
        if self.asks_on_timeout {
            if let Some(entry) = self.entries.find_mut(id) {
                entry.state = State::TimedOut;
                self.effects.push_back(Effect::TimedOut { entry: id, attempt });
            }
            return;
        }
        if runs {
            self.effects.push_back(Effect::Abandon { entry: id, attempt });
        }
        let outcome = self.failure(FailureReason::Timeout);
        self.conclude(id.slot, outcome, now);
    }

    /// The first of those that follow this record, and still wait, leads the others from now on. One whose budget has ended
    /// too only waits for its timeout.
    fn lead_on(&mut self, id: EntryId, now: Tick) {
        let mut followers = self.resign(id.slot);
        while let Some(next) = followers.pop_front() {
            let waits = self.entries.find(next).is_some_and(|entry| {
                matches!(entry.state, State::Following) && !self.budget_has_ended(entry.first_at)
            });
            if !waits {
                continue;
            }
            if let (Some(coalescing), Some(input)) =
                (&mut self.coalescing, self.entries.find(next).and_then(|entry| entry.input.as_ref()))
            {
                let _ = coalescing.follows(&input.value, next);
                coalescing.lead(next.slot, followers);
            }
            return self.start(next.slot, now);
        }
    }
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// Whether the budget of a record that first started then has ended.
    fn budget_has_ended(&self, first_at: Tick) -> bool {
        self.options.timeout().is_some_and(|timeout| first_at + timeout <= self.now)
    }

    fn pauses(&self, id: EntryId) -> bool {
        self.entries.find(id).is_some_and(|entry| matches!(entry.state, State::Backoff))
    }

    /// When [`advance`](Self::advance) has something to do next; absent: not before something else happens.
    pub fn next_wakeup(&mut self) -> Option<Tick> {
        self.arm();
        if !self.parked.is_empty() && self.has_place() {
            return Some(self.now);
        }
        // Those here end before the budgets of their records, so each record among them still pauses.
        let retry = self.retries.peek().map(|&Reverse((due, ..))| due);
        [self.budgets.first(), self.attempt_limits.first(), retry].into_iter().flatten().min()
    }

    /// Whether the input has ended and every element has left.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.ended && self.is_empty()
    }

    /// Gives up everything that is held: nothing of it leaves any more, and later completions are ignored (Flink: `close`
    /// does not drain either, FLINK-14230). The calls that run are abandoned through [`next_effect`](Self::next_effect).
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Effect, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let now = Tick::ZERO;
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
    /// operator.push(StreamElement::Record(Record::new(1)), now).unwrap();
    /// let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
    /// operator.close();
    /// assert_eq!(operator.next_effect(), Some(Effect::Abandon { entry, attempt }));
    /// assert!(!operator.complete(entry, attempt, Ok(1), now));
    /// assert!(operator.next_output().is_none());
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    pub fn close(&mut self) {
        self.ended = true;
        self.unarmed = None;
        self.effects.retain(|effect| matches!(effect, Effect::Abandon { .. }));
        // A record whose budget has ended may have shared its call: then it has none of its own.
        let running = self.entries.iter().filter(|(_, entry)| {
            matches!(entry.state, State::InFlight | State::TimedOut) && entry.attempt > 0
        });
        let mut running: Vec<(EntryId, u32)> = running.map(|(id, entry)| (id, entry.attempt)).collect();
        running.sort_unstable_by_key(|(id, _)| id.sequence);
        for (entry, attempt) in running {
            self.effects.push_back(Effect::Abandon { entry, attempt });
        }
        self.entries.clear();
        self.queue = Queue::new(self.options.order());
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
        if let Some(coalescing) = &mut self.coalescing {
            coalescing.clear();
        }
        // Parked elements have numbers already, which no later one may get.
        self.next_sequence += self.parked.len() as u64;
        self.parked.clear();
        self.leaving.clear();
        self.budgets.clear();
        self.attempt_limits.clear();
        self.retries.clear();
        self.occupied = 0;
        self.figures.in_flight = 0;
        self.figures.completed_waiting = 0;
        self.no_longer_full();
    }
}
