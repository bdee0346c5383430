//! From the first attempt of a record to its outcome.

use super::{Plain, State};
use crate::operator::tests::model::setup::{Answer, Asks, Seen, judge, shared_key_of};
use crate::*;
use runtime_core::Tick;

use super::Item;

impl Plain {
    pub(super) fn start_what_may(&mut self) {
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if item.state != State::Queued {
                continue;
            }
            if let Some(key) = self.key(item) {
                let same = |item: &&Item| self.key(item) == Some(key);
                let running = self.items.iter().filter(same).filter(|item| item.is_in_flight()).count();
                let earlier = self.items[..at].iter().filter(same).any(|item| item.state == State::Queued);
                if earlier || running >= self.setup.options.max_in_flight_per_key() {
                    continue;
                }
            }
            self.begin(at);
        }
    }

    /// The record's own time begins, with a call of its own or with that of an equal record.
    fn begin(&mut self, at: usize) {
        self.items[at].first_at = self.told;
        self.pay_in();
        let value = self.items[at].value().expect("controls are never queued");
        if let Some(key) = shared_key_of(&value).filter(|_| self.setup.coalesces) {
            let equal = |value: &u32| shared_key_of(value) == Some(key);
            let mut leaders = self.items.iter().filter(|item| item.leads).filter_map(Item::value);
            if let Some(leader) = leaders.find(equal) {
                self.figures.coalesced += 1;
                self.items[at].state = State::Following(leader);
                self.items[at].budget_set = Some(self.count());
                return;
            }
            self.items[at].leads = true;
        }
        self.start(at);
    }

    /// The next attempt begins.
    pub(super) fn start(&mut self, at: usize) {
        let told = self.told;
        let item = &mut self.items[at];
        item.state = State::InFlight;
        item.attempt += 1;
        item.last_at = told;
        self.figures.calls += 1;
        self.figures.retries += u64::from(item.attempt > 1);
        self.started.push((item.value().expect("only records start"), item.attempt));
    }

    /// Ends attempt `attempt` of this record. Says whether anybody waited for it.
    pub(in crate::operator::tests::model) fn complete(
        &mut self,
        value: u32,
        attempt: u32,
        answer: Answer,
        now: Tick,
    ) -> bool {
        self.tell(now);
        let awaited = |item: &Item| {
            item.value() == Some(value)
                && item.attempt == attempt
                && matches!(item.state, State::InFlight | State::TimedOut { .. })
        };
        let Some(at) = self.items.iter().position(awaited) else {
            self.figures.ignored_completions += u64::from(answer != Err(CallError::HandleDropped));
            return false;
        };
        self.settle(at, answer);
        true
    }

    /// A pause before another attempt, if there is to be one, or the outcome.
    fn settle(&mut self, at: usize, answer: Answer) {
        let options = &self.setup.options;
        let attempt = self.items[at].attempt;
        let hopeless = matches!(answer, Err(CallError::NotBegun(_) | CallError::Panicked(_)));
        let timed_out = matches!(self.items[at].state, State::TimedOut { .. });
        if !self.ended && !timed_out && !hopeless && options.retry().can_retry(attempt) {
            let pause = options.retry().delay(attempt, 0);
            let pause = match judge(&answer) {
                Verdict::Final => None,
                Verdict::Retry => Some(pause),
                Verdict::RetryAfter(hint) => Some(pause.max(hint)),
            };
            if let Some(pause) = pause {
                if self.may_retry_once_more() {
                    self.items[at].state = State::Backoff(self.told + pause);
                    return;
                }
                self.figures.retries_refused += 1;
            }
        }
        let outcome = match answer {
            Ok(value) => Outcome::Completed(value),
            Err(error) => self.failure(error.into()),
        };
        self.conclude(at, outcome);
    }

    fn failure(&self, reason: FailureReason<u8>) -> Outcome<u32, u8> {
        Outcome::Failed { reason, policy: self.setup.options.on_failure() }
    }

    fn pay_in(&mut self) {
        if let (Some(left), Some(budget)) = (&mut self.allowance, self.setup.options.retry_budget()) {
            *left = (*left + (4.0 * budget.per_record) as u32).min(4 * budget.reserve.max(1));
        }
    }

    fn may_retry_once_more(&mut self) -> bool {
        let Some(left) = &mut self.allowance else { return true };
        let allowed = *left >= 4;
        *left -= if allowed { 4 } else { 0 };
        allowed
    }

    /// Those that share the call of this record, in the order in which they came to. It leads no longer.
    fn resign(&mut self, at: usize) -> Vec<usize> {
        if !std::mem::take(&mut self.items[at].leads) {
            return Vec::new();
        }
        let follows = State::Following(self.items[at].value().expect("only records lead"));
        let all = self.items.iter().enumerate().filter(|(_, item)| item.state == follows);
        let mut followers: Vec<_> = all.map(|(at, item)| (item.budget_set, at)).collect();
        followers.sort_unstable();
        followers.into_iter().map(|(_, at)| at).collect()
    }

    /// The record has its outcome, and so have those that share its call.
    fn conclude(&mut self, at: usize, outcome: Outcome<u32, u8>) {
        let followers = self.resign(at);
        self.conclude_one(at, outcome.clone());
        for follower in followers {
            self.items[follower].attempt = self.items[at].attempt;
            self.items[follower].last_at = self.items[at].last_at;
            self.conclude_one(follower, outcome.clone());
        }
    }

    fn conclude_one(&mut self, at: usize, outcome: Outcome<u32, u8>) {
        self.figures.failures += u64::from(matches!(outcome, Outcome::Failed { .. }));
        if let Outcome::Failed { policy: FailurePolicy::Fail, .. } = outcome {
            let item = &mut self.items[at];
            item.state = State::Gone;
            self.failed = true;
            let value = item.value().expect("only records have outcomes");
            self.leaving.push(Seen::Record(value, outcome, item.attempts()));
        } else {
            self.items[at].state = State::Done(outcome);
            self.figures.completed_waiting += 1;
        }
        match self.key(&self.items[at]) {
            None => self.items[at].ready = Some(self.count()),
            Some(key) => self.let_go(key),
        }
        self.start_what_may();
    }

    /// Those of a key that have their outcomes may leave, up to the first that has none.
    fn let_go(&mut self, key: u32) {
        for at in 0..self.items.len() {
            if self.key(&self.items[at]) != Some(key) || self.items[at].ready.is_some() {
                continue;
            }
            if !self.items[at].is_over() {
                return;
            }
            self.items[at].ready = Some(self.count());
        }
    }

    pub(in crate::operator::tests) fn budget_end(&self, item: &Item) -> Option<Tick> {
        self.setup.options.timeout().filter(|_| item.has_budget()).map(|timeout| item.first_at + timeout)
    }

    fn attempt_end(&self, item: &Item) -> Option<Tick> {
        let runs = item.state == State::InFlight;
        self.setup.options.attempt_timeout().filter(|_| runs).map(|limit| item.last_at + limit)
    }

    /// When its pause ends. One that would reach the end of the budget never does.
    fn pause_end(&self, item: &Item) -> Option<Tick> {
        let State::Backoff(due) = item.state else { return None };
        Some(due).filter(|&due| !self.ended && self.budget_end(item).is_none_or(|end| due < end))
    }

    /// What a call that starts now is told of its end.
    pub(in crate::operator::tests::model) fn deadline(&self, item: &Item) -> Option<Tick> {
        [self.budget_end(item), self.attempt_end(item)].into_iter().flatten().min()
    }

    /// Its timers: budget, attempt, pause.
    pub(in crate::operator::tests) fn timers(
        &self,
        item: &Item,
    ) -> (Option<Tick>, Option<Tick>, Option<Tick>) {
        (self.budget_end(item), self.attempt_end(item), self.pause_end(item))
    }

    /// The item whose timer of this kind ends first, if it has ended.
    fn first_due(&self, timer: impl Fn(&Item) -> Option<(Tick, Option<usize>)>) -> Option<usize> {
        let timers = self.items.iter().enumerate();
        let first = timers.filter_map(|(at, item)| Some((timer(item)?, at))).min();
        first.filter(|((due, _), _)| *due <= self.told).map(|(_, at)| at)
    }

    /// Fires what is due: budgets, then attempts' times, then pauses.
    pub(in crate::operator::tests::model) fn advance(&mut self, now: Tick) {
        self.tell(now);
        while let Some(at) = self.first_due(|item| Some((self.budget_end(item)?, item.budget_set))) {
            self.time_out(at);
        }
        while let Some(at) = self.first_due(|item| Some((self.attempt_end(item)?, Some(item.limit_set)))) {
            self.figures.attempt_timeouts += 1;
            self.settle(at, Err(CallError::AttemptTimeout));
        }
        while let Some(at) = self.first_due(|item| Some((self.pause_end(item)?, None))) {
            self.start(at);
        }
        self.admit_parked();
    }

    fn time_out(&mut self, at: usize) {
        self.figures.timeouts += 1;
        let value = self.items[at].value().expect("only records have budgets");
        let runs = self.items[at].runs();
        let followers = self.resign(at);
        // Those whose budgets have ended, too, time out by themselves.
        let told = self.told;
        let in_time = |&at: &usize| self.budget_end(&self.items[at]).is_some_and(|end| end > told);
        let followers: Vec<usize> = followers.into_iter().filter(in_time).collect();
        if let Some(&next) = followers.first() {
            let leader = self.items[next].value().expect("only records follow");
            followers.iter().for_each(|&at| self.items[at].state = State::Following(leader));
            self.items[next].leads = true;
            self.start(next);
        }
        if self.setup.asks == Asks::Nobody {
            self.conclude(at, self.failure(FailureReason::Timeout));
        } else {
            self.items[at].state = State::TimedOut { runs };
            self.asked.push((value, self.items[at].attempt));
        }
    }

    /// The time of the next timer.
    pub(in crate::operator::tests) fn next_wakeup(&self) -> Option<Tick> {
        if !self.parked.is_empty() && self.has_place() {
            return Some(self.told);
        }
        let all = |item| [self.budget_end(item), self.attempt_end(item), self.pause_end(item)];
        self.items.iter().flat_map(all).flatten().min()
    }
}
