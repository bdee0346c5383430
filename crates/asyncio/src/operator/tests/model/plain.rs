//! The operator in its plainest form: one list, searched from the front for everything.

mod life;

use std::time::Duration;

use runtime_core::Tick;

use super::setup::{Element, Seen, Setup, key_of};
use crate::*;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::operator::tests) enum State {
    /// A watermark or a status.
    Control,
    Queued,
    InFlight,
    Backoff(Tick),
    /// Shares the call of this record.
    Following(u32),
    /// Its budget has ended and somebody was asked; its call may still run.
    TimedOut {
        runs: bool,
    },
    Done(Outcome<u32, u8>),
    /// Its failure has left ahead of the order.
    Gone,
}

#[derive(Debug, Clone)]
pub(in crate::operator::tests) struct Item {
    pub(in crate::operator::tests) element: Element,
    pub(in crate::operator::tests) state: State,
    /// Attempts before the restore that brought it, and since.
    pub(in crate::operator::tests) past: u32,
    pub(in crate::operator::tests) attempt: u32,
    pub(in crate::operator::tests) first_at: Tick,
    pub(in crate::operator::tests) last_at: Tick,
    /// Whether equal records share its call.
    pub(in crate::operator::tests) leads: bool,
    /// When its budget and its newest attempt's time were set, among all that were: equal ones end in that order.
    pub(in crate::operator::tests) budget_set: Option<usize>,
    pub(in crate::operator::tests) limit_set: usize,
    /// When it was allowed to leave, among all that were.
    pub(in crate::operator::tests) ready: Option<usize>,
}

impl Item {
    pub(in crate::operator::tests) fn value(&self) -> Option<u32> {
        match self.element {
            Element::Record(value) => Some(value),
            _ => None,
        }
    }

    fn is_control(&self) -> bool {
        self.state == State::Control
    }

    pub(in crate::operator::tests) fn is_over(&self) -> bool {
        matches!(self.state, State::Done(_) | State::Gone)
    }

    pub(in crate::operator::tests) fn is_in_flight(&self) -> bool {
        !matches!(self.state, State::Control | State::Queued) && !self.is_over()
    }

    /// Whether its budget can still end.
    fn has_budget(&self) -> bool {
        self.is_in_flight() && !matches!(self.state, State::TimedOut { .. })
    }

    fn runs(&self) -> bool {
        matches!(self.state, State::InFlight | State::TimedOut { runs: true })
    }

    fn attempts(&self) -> Attempts {
        Attempts { count: self.past + self.attempt, first_at: self.first_at, last_at: self.last_at }
    }
}

pub(in crate::operator::tests) struct Plain {
    setup: Setup,
    /// In the order of admission.
    pub(in crate::operator::tests) items: Vec<Item>,
    /// Beyond the capacity, with the attempts made for them.
    pub(in crate::operator::tests) parked: Vec<(Element, u32)>,
    /// Ahead of the order.
    pub(in crate::operator::tests) leaving: Vec<Seen>,
    /// The latest time that was told.
    told: Tick,
    counter: usize,
    started: Vec<(u32, u32)>,
    asked: Vec<(u32, u32)>,
    pub(in crate::operator::tests) ended: bool,
    pub(in crate::operator::tests) failed: bool,
    /// Retries left to all records together, in quarters.
    allowance: Option<u32>,
    full_since: Option<Tick>,
    figures: Figures,
}

impl Plain {
    pub(super) fn new(setup: Setup) -> Self {
        let capacity = setup.options.capacity();
        Self {
            allowance: setup.options.retry_budget().map(|budget| 4 * budget.reserve),
            setup,
            items: Vec::new(),
            parked: Vec::new(),
            leaving: Vec::new(),
            told: Tick::ZERO,
            counter: 0,
            started: Vec::new(),
            asked: Vec::new(),
            ended: false,
            failed: false,
            full_since: None,
            figures: Figures { capacity, ..Figures::default() },
        }
    }

    pub(in crate::operator::tests) fn told(&self) -> Tick {
        self.told
    }

    fn tell(&mut self, now: Tick) {
        self.told = self.told.max(now);
    }

    fn count(&mut self) -> usize {
        self.counter += 1;
        self.counter
    }

    fn has_place(&self) -> bool {
        self.items.len() < self.setup.options.capacity()
    }

    pub(in crate::operator::tests) fn is_available(&self) -> bool {
        self.has_place() && self.parked.is_empty() && !self.ended
    }

    pub(super) fn push(&mut self, element: Element, now: Tick) -> bool {
        self.tell(now);
        if !self.ended {
            self.admit_parked();
        }
        let available = self.is_available();
        if available {
            self.admit(element, 0);
        }
        available
    }

    pub(super) fn park(&mut self, element: Element, now: Tick) -> bool {
        self.tell(now);
        if !self.ended {
            self.parked.push((element, 0));
            self.admit_parked();
        }
        !self.ended
    }

    pub(super) fn overtake(&mut self, seen: Seen, now: Tick) -> bool {
        self.tell(now);
        if !self.ended {
            self.leaving.push(seen);
        }
        !self.ended
    }

    fn admit_parked(&mut self) {
        while self.has_place() && !self.parked.is_empty() {
            let (element, past) = self.parked.remove(0);
            self.admit(element, past);
        }
    }

    fn admit(&mut self, element: Element, past: u32) {
        let state = if matches!(element, Element::Record(_)) { State::Queued } else { State::Control };
        let at = self.told;
        self.items.push(Item {
            element,
            state,
            past,
            attempt: 0,
            first_at: at,
            last_at: at,
            leads: false,
            budget_set: None,
            limit_set: 0,
            ready: None,
        });
        self.figures.records_in += u64::from(matches!(element, Element::Record(_)));
        if !self.has_place() {
            self.full_since = Some(at);
        }
        self.start_what_may();
    }

    /// The key that keeps the record in order.
    fn key(&self, item: &Item) -> Option<u32> {
        let ordered_by_key = self.setup.options.order() == Order::Keyed;
        item.value().filter(|_| ordered_by_key).and_then(|value| key_of(&value))
    }

    /// The element that may leave next.
    fn next_to_leave(&self) -> Option<usize> {
        let first = self.items.first()?;
        if first.is_control() {
            return Some(0);
        }
        if self.setup.options.order() == Order::Ordered {
            return first.ready.map(|_| 0);
        }
        let segment = self.items.iter().take_while(|item| !item.is_control()).enumerate();
        segment.filter_map(|(at, item)| Some((item.ready?, at))).min().map(|(_, at)| at)
    }

    pub(super) fn emit(&mut self) -> Option<Seen> {
        if !self.leaving.is_empty() {
            let seen = self.leaving.remove(0);
            self.figures.records_out += u64::from(matches!(seen, Seen::Record(..)));
            return Some(seen);
        }
        loop {
            let at = self.next_to_leave()?;
            let item = self.items.remove(at);
            if let Some(since) = self.full_since.take() {
                self.figures.blocked += self.told.since(since);
            }
            let attempts = item.attempts();
            match (item.element, item.state) {
                (Element::Record(value), State::Done(outcome)) => {
                    self.figures.completed_waiting -= 1;
                    self.figures.records_out += 1;
                    return Some(Seen::Record(value, outcome, attempts));
                }
                (Element::Record(_), State::Gone) => {}
                (Element::Record(value), state) => panic!("{value} leaves as {state:?}"),
                (control, _) => return Some(Seen::Control(control)),
            }
        }
    }

    /// What a snapshot holds: elements and the attempts made for them.
    pub(super) fn snapshot(&self) -> Option<Vec<(Element, u32)>> {
        let held = self.items.iter().map(|item| (item.element, item.past + item.attempt));
        (!self.failed).then(|| held.chain(self.parked.iter().copied()).collect())
    }

    pub(super) fn restore(&mut self, stored: Vec<(Element, u32)>, now: Tick) {
        self.tell(now);
        self.parked = stored;
        self.admit_parked();
    }

    pub(super) fn end_of_input(&mut self, now: Tick) {
        if self.ended {
            return;
        }
        self.tell(now);
        self.ended = true;
        for at in 0..self.items.len() {
            let in_time = self.budget_end(&self.items[at]).is_none_or(|end| end > self.told);
            if matches!(self.items[at].state, State::Backoff(_)) && in_time {
                self.start(at);
            }
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(since) = self.full_since.take() {
            self.figures.blocked += self.told.since(since);
        }
        self.ended = true;
        self.items.clear();
        self.parked.clear();
        self.leaving.clear();
        self.started.clear();
        self.asked.clear();
        self.figures.completed_waiting = 0;
    }

    /// The attempts started since the last look, in order. Their timers are set in that order.
    pub(super) fn take_started(&mut self) -> Vec<(u32, u32)> {
        let started = std::mem::take(&mut self.started);
        for &(value, attempt) in &started {
            let number = self.count();
            let mut items = self.items.iter_mut();
            if let Some(item) = items.find(|item| item.value() == Some(value) && item.attempt == attempt) {
                item.limit_set = number;
                item.budget_set.get_or_insert(number);
            }
        }
        started
    }

    /// The records whose budgets have ended, with their newest attempts, where somebody is to be asked.
    pub(super) fn take_asked(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.asked)
    }

    pub(in crate::operator::tests) fn running(&self) -> Vec<(u32, u32)> {
        let running = self.items.iter().filter(|item| item.runs());
        let mut running: Vec<_> = running.filter_map(|item| Some((item.value()?, item.attempt))).collect();
        running.sort_unstable();
        running
    }

    pub(in crate::operator::tests) fn find(&self, value: u32) -> Option<&Item> {
        self.items.iter().find(|item| item.value() == Some(value))
    }

    /// Records that were taken in and have not left.
    pub(super) fn held_records(&self) -> u64 {
        let held = self.items.iter().filter(|item| !item.is_control() && item.state != State::Gone).count();
        let leaving = self.leaving.iter().filter(|seen| matches!(seen, Seen::Record(..))).count();
        (held + leaving) as u64
    }

    /// Those among them that have failed.
    pub(super) fn failed_waiting(&self) -> u64 {
        let failed = |item: &&Item| matches!(item.state, State::Done(Outcome::Failed { .. }));
        let leaving = self.leaving.iter().filter(|seen| matches!(seen, Seen::Record(..))).count();
        (self.items.iter().filter(failed).count() + leaving) as u64
    }

    pub(super) fn figures(&self, now: Tick) -> Figures {
        let in_flight = || self.items.iter().filter(|item| item.is_in_flight());
        Figures {
            occupied: self.items.len(),
            parked: self.parked.len(),
            in_flight: in_flight().count(),
            oldest_in_flight: in_flight().map(|item| item.first_at).min().map(|at| now.since(at)),
            blocked: self.figures.blocked + self.full_since.map_or(Duration::ZERO, |at| now.since(at)),
            ..self.figures
        }
    }

    /// The first watermark that waits and the oldest record before it without an outcome.
    pub(super) fn held_watermark(&self) -> Option<(i64, Option<u32>)> {
        let mut holder = None;
        for item in &self.items {
            match item.element {
                Element::Watermark(at) => return Some((at, holder)),
                Element::Record(value) if !item.is_over() => {
                    holder.get_or_insert(value);
                }
                _ => {}
            }
        }
        None
    }
}
