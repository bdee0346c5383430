//! The operator in its plainest form: one list, searched from the front for everything.

use runtime_core::Tick;

use super::{Answer, Seen, judge, key_of};
use crate::*;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Queued,
    InFlight,
    Backoff(Tick),
    Done(Outcome<u32, u8>),
}

#[derive(Debug, Clone)]
struct Item {
    /// Watermarks have their time here and no record.
    watermark: Option<i64>,
    value: u32,
    state: State,
    attempts: Attempts,
    /// When its first and its newest attempt started, among all starts.
    first_start: usize,
    last_start: usize,
    /// When it was allowed to leave, among all that were.
    ready: Option<usize>,
}

pub(super) struct Plain {
    options: Options,
    /// In the order of admission.
    items: Vec<Item>,
    starts: usize,
    readies: usize,
    started: Vec<(u32, u32)>,
    ended: bool,
}

impl Plain {
    pub(super) fn new(options: Options) -> Self {
        Self { options, items: Vec::new(), starts: 0, readies: 0, started: Vec::new(), ended: false }
    }

    fn push(&mut self, watermark: Option<i64>, value: u32) -> bool {
        if self.items.len() >= self.options.capacity() {
            return false;
        }
        let attempts = Attempts { count: 0, first_at: Tick::ZERO, last_at: Tick::ZERO };
        let state = State::Queued;
        self.items.push(Item {
            watermark,
            value,
            state,
            attempts,
            first_start: 0,
            last_start: 0,
            ready: None,
        });
        true
    }

    pub(super) fn push_watermark(&mut self, at: i64) -> bool {
        self.push(Some(at), 0)
    }

    pub(super) fn push_record(&mut self, value: u32, now: Tick) -> bool {
        let pushed = self.push(None, value);
        self.start_what_may(now);
        pushed
    }

    fn key(&self, value: u32) -> Option<u32> {
        key_of(&value).filter(|_| self.options.order() == Order::Keyed)
    }

    fn start_what_may(&mut self, now: Tick) {
        for at in 0..self.items.len() {
            let item = &self.items[at];
            if item.watermark.is_some() || item.state != State::Queued {
                continue;
            }
            if let Some(key) = self.key(item.value) {
                let same = |item: &&Item| item.watermark.is_none() && self.key(item.value) == Some(key);
                let active = |item: &&Item| matches!(item.state, State::InFlight | State::Backoff(_));
                let running = self.items.iter().filter(same).filter(active).count();
                let earlier = self.items[..at].iter().filter(same).any(|item| item.state == State::Queued);
                if earlier || running >= self.options.max_in_flight_per_key() {
                    continue;
                }
            }
            self.start(at, now);
        }
    }

    fn start(&mut self, at: usize, now: Tick) {
        self.starts += 1;
        let item = &mut self.items[at];
        item.state = State::InFlight;
        item.attempts.count += 1;
        item.attempts.last_at = now;
        item.last_start = self.starts;
        if item.attempts.count == 1 {
            item.attempts.first_at = now;
            item.first_start = self.starts;
        }
        self.started.push((item.value, item.attempts.count));
    }

    fn running_at(&self, value: u32, attempt: u32) -> Option<usize> {
        self.items.iter().position(|item| {
            item.watermark.is_none()
                && item.value == value
                && item.state == State::InFlight
                && item.attempts.count == attempt
        })
    }

    pub(super) fn complete(&mut self, value: u32, attempt: u32, answer: Answer, now: Tick) -> bool {
        let Some(at) = self.running_at(value, attempt) else { return false };
        self.settle(at, answer, now);
        true
    }

    fn settle(&mut self, at: usize, answer: Answer, now: Tick) {
        let attempt = self.items[at].attempts.count;
        if !self.ended && self.options.retry().can_retry(attempt) {
            let pause = self.options.retry().delay(attempt, 0);
            match judge(&answer) {
                Verdict::Final => {}
                Verdict::Retry => return self.items[at].state = State::Backoff(now + pause),
                Verdict::RetryAfter(hint) => {
                    return self.items[at].state = State::Backoff(now + pause.max(hint));
                }
            }
        }
        let outcome = match answer {
            Ok(value) => Outcome::Completed(value),
            Err(error) => Outcome::Failed { reason: error.into(), policy: self.options.on_failure() },
        };
        self.conclude(at, outcome, now);
    }

    fn conclude(&mut self, at: usize, outcome: Outcome<u32, u8>, now: Tick) {
        self.items[at].state = State::Done(outcome);
        match self.key(self.items[at].value) {
            None => self.make_ready(at),
            Some(key) => {
                for at in 0..self.items.len() {
                    let item = &self.items[at];
                    if item.watermark.is_some() || self.key(item.value) != Some(key) || item.ready.is_some() {
                        continue;
                    }
                    if !matches!(item.state, State::Done(_)) {
                        break;
                    }
                    self.make_ready(at);
                }
            }
        }
        self.start_what_may(now);
    }

    fn make_ready(&mut self, at: usize) {
        self.readies += 1;
        self.items[at].ready = Some(self.readies);
    }

    fn budget_end(&self, item: &Item) -> Option<Tick> {
        let alive = matches!(item.state, State::InFlight | State::Backoff(_)) && item.watermark.is_none();
        self.options.timeout().filter(|_| alive).map(|timeout| item.attempts.first_at + timeout)
    }

    fn attempt_end(&self, item: &Item) -> Option<Tick> {
        let runs = item.state == State::InFlight;
        self.options.attempt_timeout().filter(|_| runs).map(|limit| item.attempts.last_at + limit)
    }

    fn pause_end(&self, item: &Item) -> Option<Tick> {
        let State::Backoff(due) = item.state else { return None };
        Some(due).filter(|&due| self.budget_end(item).is_none_or(|end| due < end))
    }

    /// The item whose timer of this kind ends first, if it has ended.
    fn first_due(&self, now: Tick, timer: impl Fn(&Item) -> Option<(Tick, usize)>) -> Option<usize> {
        let timers =
            self.items.iter().enumerate().filter_map(|(at, item)| timer(item).map(|timer| (timer, at)));
        timers.min().filter(|((due, _), _)| *due <= now).map(|(_, at)| at)
    }

    pub(super) fn advance(&mut self, now: Tick) {
        while let Some(at) = self.first_due(now, |item| Some((self.budget_end(item)?, item.first_start))) {
            let policy = self.options.on_failure();
            self.conclude(at, Outcome::Failed { reason: FailureReason::Timeout, policy }, now);
        }
        while let Some(at) = self.first_due(now, |item| Some((self.attempt_end(item)?, item.last_start))) {
            self.settle(at, Err(CallError::AttemptTimeout), now);
        }
        while let Some(at) = self.first_due(now, |item| Some((self.pause_end(item)?, 0))) {
            self.start(at, now);
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Tick> {
        let all = |item| [self.budget_end(item), self.attempt_end(item), self.pause_end(item)];
        self.items.iter().flat_map(all).flatten().min()
    }

    pub(super) fn end_of_input(&mut self, now: Tick) {
        self.ended = true;
        for at in 0..self.items.len() {
            if matches!(self.items[at].state, State::Backoff(_)) {
                self.start(at, now);
            }
        }
    }

    pub(super) fn emit(&mut self) -> Option<Seen> {
        let at = match self.options.order() {
            Order::Ordered => {
                let first = self.items.first()?;
                (first.watermark.is_some() || first.ready.is_some()).then_some(0)?
            }
            Order::Unordered | Order::Keyed => {
                if self.items.first()?.watermark.is_some() {
                    0
                } else {
                    let segment = self.items.iter().take_while(|item| item.watermark.is_none()).enumerate();
                    segment.filter_map(|(at, item)| Some((item.ready?, at))).min()?.1
                }
            }
        };
        let item = self.items.remove(at);
        match (item.watermark, item.state) {
            (Some(at), _) => Some(Seen::Watermark(at)),
            (None, State::Done(outcome)) => Some(Seen::Record(item.value, outcome, item.attempts)),
            (None, state) => panic!("{} leaves as {state:?}", item.value),
        }
    }

    pub(super) fn take_started(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.started)
    }

    pub(super) fn running(&self) -> Vec<(u32, u32)> {
        let running = self.items.iter().filter(|item| item.state == State::InFlight);
        let mut running: Vec<_> = running.map(|item| (item.value, item.attempts.count)).collect();
        running.sort_unstable();
        running
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.items.iter().filter(|item| matches!(item.state, State::InFlight | State::Backoff(_))).count()
    }
}
