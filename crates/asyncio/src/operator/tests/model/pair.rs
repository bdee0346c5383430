//! The operator beside the plain model: both are told the same and must agree on everything that can be seen.
//!
//! What is checked beyond the agreement does not ask the model: that no attempt starts at or after its record's end, that
//! nothing is retried after the end of input but what paused then, that attempts and keys go on after a restore, and that
//! the figures are what was seen to happen.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

use runtime_core::element::LatencyMarker;
use runtime_core::id::JobId;
use runtime_core::{Barrier, EpochMillis, Record, StreamElement, Tick};

use super::plain::{Plain, State};
use super::setup::{Answer, Asks, Element, FALLBACK, Operator, Seen, Setup};
use crate::*;

pub(in crate::operator::tests) struct Pair {
    setup: Setup,
    operator: Operator,
    pub(in crate::operator::tests) plain: Plain,
    pub(in crate::operator::tests) now: Tick,
    /// Every attempt that this operator has started, with its record and when it did.
    pub(in crate::operator::tests) started: Vec<(u32, EntryId, u32, Tick)>,
    /// Those whose call runs.
    running: BTreeSet<(u32, u32)>,
    /// The names of records, as far as they were told.
    names: BTreeMap<u32, EntryId>,
    /// The attempts of a record, those before restores included.
    attempts: BTreeMap<u32, u32>,
    keys: BTreeMap<u32, IdempotencyKey>,
    /// How often each record that was taken in has left.
    pub(in crate::operator::tests) outcomes: BTreeMap<u32, usize>,
    /// Records that have left this operator, and how many of them had failed.
    left: (u64, u64),
    /// Records that may be retried once although the input has ended.
    may_retry_once: BTreeSet<u32>,
    closed: bool,
    /// Whether what happens now was checked before, in an earlier run of the same history.
    pub(in crate::operator::tests) replays: bool,
    /// How often a record has passed without being held.
    pub(super) passed: usize,
}

impl Pair {
    pub(in crate::operator::tests) fn new(setup: Setup) -> Self {
        Self {
            operator: setup.operator(),
            plain: Plain::new(setup.clone()),
            setup,
            now: Tick::ZERO,
            started: Vec::new(),
            running: BTreeSet::new(),
            names: BTreeMap::new(),
            attempts: BTreeMap::new(),
            keys: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            left: (0, 0),
            may_retry_once: BTreeSet::new(),
            closed: false,
            replays: false,
            passed: 0,
        }
    }

    pub(in crate::operator::tests) fn push(&mut self, element: Element) -> bool {
        let taken = self.operator.push(element.offered(), self.now).is_ok();
        assert_eq!(taken, self.plain.push(element, self.now), "{element:?} is taken in");
        self.taken_in(element, taken)
    }

    pub(super) fn park(&mut self, element: Element) -> bool {
        let taken = self.operator.park(element.offered(), self.now).is_ok();
        assert_eq!(taken, self.plain.park(element, self.now), "{element:?} is parked");
        self.taken_in(element, taken)
    }

    fn taken_in(&mut self, element: Element, taken: bool) -> bool {
        if let Element::Record(value) = element
            && taken
        {
            self.outcomes.insert(value, 0);
        }
        self.compare();
        taken
    }

    /// Offers a record whose call is ready with this answer, or not ready.
    pub(super) fn offer(&mut self, value: u32, answer: Option<Answer>) -> bool {
        let (now, mut called) = (self.now, None);
        let record = Record::at(value, EpochMillis(value.into()));
        let call = |&input: &u32, entry| {
            assert_eq!(input, value);
            called = Some(entry);
            answer.clone().map_or(Poll::Pending, Poll::Ready)
        };
        let offered = self.operator.offer(record, || now, call);
        assert_eq!(offered.is_ok(), self.plain.is_available(), "{value} is taken in");
        let Ok(offered) = offered else { return false };
        if let Some(entry) = called {
            self.start(value, entry, 1);
            if answer.is_some() {
                self.running.remove(&(value, 1));
            }
        }
        // What passes tells no time.
        let told = if matches!(offered, Offered::Held) { now } else { self.plain.told() };
        assert!(self.plain.push(Element::Record(value), told));
        self.outcomes.insert(value, 0);
        if let (Some(_), Some(answer)) = (called, answer) {
            // Its attempt has started, and is not among the effects.
            let _ = self.plain.complete(value, 1, answer, told);
        }
        if let Offered::Passed { input, answer } = offered {
            let attempts = Attempts { count: 1, first_at: told, last_at: told };
            let seen = Seen::Record(input.value, Outcome::Completed(answer), attempts);
            assert_eq!(Some(&seen), self.plain.emit().as_ref(), "{value} passes");
            self.leaves(&seen);
            self.passed += 1;
        }
        self.compare_from(called.into_iter().map(|_| (value, 1)).collect());
        true
    }

    pub(super) fn marker(&mut self) {
        let marker = LatencyMarker { marked_at: EpochMillis(0), subtask: 0 };
        let taken = self.operator.push(StreamElement::LatencyMarker(marker), self.now).is_ok();
        assert_eq!(taken, self.plain.overtake(Seen::Marker, self.now));
        self.compare();
    }

    pub(super) fn barrier(&mut self, checkpoint: u64) {
        let barrier = Barrier { job: JobId::from_u128(1), checkpoint, begun_at: EpochMillis(0) };
        let taken = self.operator.push(StreamElement::Barrier(barrier), self.now).is_ok();
        assert_eq!(taken, self.plain.overtake(Seen::Barrier(checkpoint), self.now));
        self.compare();
    }

    /// Completes this attempt, whatever has become of it.
    pub(in crate::operator::tests) fn complete(
        &mut self,
        value: u32,
        entry: EntryId,
        attempt: u32,
        answer: &Answer,
    ) -> bool {
        self.running.remove(&(value, attempt));
        let counted = self.operator.complete(entry, attempt, answer.clone(), self.now);
        let expected = self.plain.complete(value, attempt, answer.clone(), self.now);
        assert_eq!(counted, expected, "attempt {attempt} of {value} is awaited");
        self.compare();
        counted
    }

    /// Sets the clock; the operator is not told.
    pub(in crate::operator::tests) fn sleep(&mut self, until: Tick) {
        self.now = until;
        self.compare();
    }

    pub(in crate::operator::tests) fn advance(&mut self, to: Tick) {
        self.now = to;
        self.operator.advance(to);
        self.plain.advance(to);
        self.compare();
    }

    pub(in crate::operator::tests) fn next_wakeup(&mut self) -> Option<Tick> {
        self.operator.next_wakeup()
    }

    pub(in crate::operator::tests) fn emit(&mut self) -> Option<Seen> {
        let seen = self.operator.next_output().map(Seen::of);
        assert_eq!(seen, self.plain.emit(), "the next output");
        if let Some(seen) = &seen {
            self.leaves(seen);
        }
        self.compare();
        seen
    }

    fn leaves(&mut self, seen: &Seen) {
        if let Seen::Record(value, outcome, _) = seen {
            *self.outcomes.get_mut(value).expect("it was taken in") += 1;
            assert_eq!(self.outcomes[value], 1, "outcomes of {value}");
            self.left.0 += 1;
            self.left.1 += u64::from(matches!(outcome, Outcome::Failed { .. }));
        }
    }

    pub(in crate::operator::tests) fn end(&mut self) {
        let ends_now = !self.plain.ended;
        let pausing = self.plain.items.iter().filter(|item| matches!(item.state, State::Backoff(_)));
        let pausing: BTreeSet<u32> = pausing.filter_map(|item| item.value()).collect();
        if ends_now {
            self.may_retry_once = pausing;
        }
        self.operator.end_of_input(self.now);
        self.plain.end_of_input(self.now);
        self.compare();
    }

    /// Stores what is held and goes on with another operator, if there is anything to store by now.
    pub(in crate::operator::tests) fn restore(&mut self, setup: &Setup) -> bool {
        let snapshot = self.operator.snapshot().map(Snapshot::cloned);
        let stored = self.plain.snapshot();
        assert_eq!(snapshot.is_ok(), stored.is_some(), "a snapshot is taken");
        let (Ok(snapshot), Some(stored)) = (snapshot, stored) else { return false };
        let elements: Vec<Element> = snapshot.elements().map(|element| Element::stored(&element)).collect();
        assert_eq!(elements, stored.iter().map(|&(element, _)| element).collect::<Vec<_>>(), "stored");
        let records = stored.iter().filter(|(element, _)| matches!(element, Element::Record(_)));
        let attempts: Vec<u32> = records.map(|&(_, attempts)| attempts).collect();
        assert_eq!(snapshot.attempts().collect::<Vec<_>>(), attempts, "stored attempts");
        for &(element, attempts) in &stored {
            if let Element::Record(value) = element {
                // One that shares the call of another counts that one's.
                let seen = self.attempts.entry(value).or_default();
                assert!(if self.setup.coalesces { attempts >= *seen } else { attempts == *seen }, "{value}");
                *seen = attempts;
            }
        }
        self.setup = setup.clone();
        self.operator = setup.operator();
        self.plain = Plain::new(setup.clone());
        // What ran belonged to the operator that is gone, and so does what it has counted.
        self.started.clear();
        self.running.clear();
        self.names.clear();
        self.left = (0, 0);
        self.may_retry_once.clear();
        let held = |&value: &u32| elements.contains(&Element::Record(value));
        // A record that is neither stored nor gone was given up by a close.
        self.outcomes.retain(|value, left| *left == 1 || held(value));
        self.closed = false;
        self.operator.restore(snapshot, self.now).expect("it is new");
        self.plain.restore(stored, self.now);
        self.compare();
        true
    }

    pub(in crate::operator::tests) fn close(&mut self) {
        self.operator.close();
        self.plain.close();
        self.closed = true;
        self.compare();
        assert!(self.operator.is_drained() && self.running.is_empty(), "a closed operator holds nothing");
        assert_eq!(self.operator.next_output(), None);
    }

    fn start(&mut self, value: u32, entry: EntryId, attempt: u32) {
        self.started.push((value, entry, attempt, self.now));
        self.names.insert(value, entry);
        self.running.insert((value, attempt));
        *self.attempts.entry(value).or_default() += 1;
        if self.plain.ended && attempt > 1 {
            assert!(self.may_retry_once.remove(&value), "{value} is retried after the end of input");
        }
    }

    /// What an attempt that starts now may know of itself.
    fn check_start(&mut self, value: u32, entry: EntryId, attempt: u32) {
        let context = self.operator.context(entry).expect("a start names a held record");
        assert_eq!(context.attempt(), self.attempts[&value], "attempts of {value} so far");
        assert!(attempt == 1 || self.setup.options.retry().can_retry(attempt - 1), "{value}: {attempt}");
        let item = self.plain.find(value).expect("it is held");
        assert_eq!(context.deadline(), self.plain.deadline(item), "deadline of {value}");
        assert!(context.deadline().is_none_or(|end| self.now < end), "{value} starts after its end");
        let key = context.idempotency_key();
        assert_eq!(*self.keys.entry(value).or_insert(key), key, "idempotency key of {value}");
        assert!(self.keys.iter().all(|(other, of)| (*of == key) == (*other == value)), "{key} of {value}");
    }

    fn compare(&mut self) {
        self.compare_from(Vec::new());
    }

    /// Carries out effects and compares what is left. These attempts have started already.
    fn compare_from(&mut self, mut new: Vec<(u32, u32)>) {
        loop {
            let mut asked = Vec::new();
            while let Some(effect) = self.operator.next_effect() {
                match effect {
                    Effect::Start { entry, attempt } => {
                        let value = self.operator.input(entry).expect("a start names a held record").value;
                        self.start(value, entry, attempt);
                        if !self.replays {
                            self.check_start(value, entry, attempt);
                        }
                        new.push((value, attempt));
                    }
                    Effect::TimedOut { entry, attempt } => {
                        let value = self.operator.input(entry).expect("a timeout names a held record").value;
                        self.names.insert(value, entry);
                        asked.push((value, attempt));
                    }
                    Effect::Abandon { entry, attempt } => {
                        let mut started = self.started.iter();
                        let of = started.find(|&&(_, e, a, _)| (e, a) == (entry, attempt));
                        let &(value, ..) = of.expect("an abandoned attempt was started");
                        self.running.remove(&(value, attempt));
                    }
                }
            }
            assert_eq!(new, self.plain.take_started(), "attempts started, in order");
            assert_eq!(asked, self.plain.take_asked(), "records whose end was asked about");
            if asked.is_empty() || self.setup.asks == Asks::Silent {
                break;
            }
            for (value, attempt) in asked {
                assert!(self.operator.complete(self.names[&value], attempt, Ok(FALLBACK), self.now));
                assert!(self.plain.complete(value, attempt, Ok(FALLBACK), self.now));
            }
            new.clear();
        }
        if self.replays {
            return;
        }
        let running: Vec<(u32, u32)> = self.running.iter().copied().collect();
        assert_eq!(running, self.plain.running(), "calls that run");
        assert_eq!(self.operator.next_wakeup(), self.plain.next_wakeup(), "next wake-up");
        self.check_figures();
    }

    fn check_figures(&mut self) {
        let figures = self.operator.figures(self.now);
        assert_eq!(figures, self.plain.figures(self.now));
        assert_eq!(self.operator.len(), figures.occupied);
        assert_eq!(self.operator.in_flight(), figures.in_flight);
        assert!(figures.occupied <= figures.capacity, "no more than there are places");
        let retries = self.started.iter().filter(|&&(_, _, attempt, _)| attempt > 1).count() as u64;
        assert_eq!((figures.calls, figures.retries), (self.started.len() as u64, retries), "calls, retries");
        assert_eq!(figures.records_out, self.left.0, "records out");
        assert!(
            figures.failures >= self.left.1 && figures.timeouts >= figures.oldest_in_flight.map_or(0, |_| 0)
        );
        if !self.closed {
            assert_eq!(figures.failures, self.left.1 + self.plain.failed_waiting(), "failures");
            assert_eq!(figures.records_in, figures.records_out + self.plain.held_records(), "records in");
        }
        if figures.in_flight == 0 && figures.parked == 0 {
            assert_eq!(self.operator.next_wakeup(), None, "no timer is left without a record in flight");
            assert_eq!(figures.oldest_in_flight, None);
        }
        let held = self.operator.held_watermark(self.now);
        let held = held.map(|held| {
            let record = held.held_by.and_then(|entry| self.operator.input(entry)).map(|record| record.value);
            assert_eq!(record.is_some(), held.held_by.is_some(), "who holds a watermark is held");
            (held.watermark.0.0, record)
        });
        assert_eq!(held, self.plain.held_watermark(), "what holds the watermark");
    }

    /// Completes every call that runs, and takes what leaves.
    pub(super) fn settle(&mut self, answer: &Answer) {
        for (value, attempt) in self.plain.running() {
            // One may have ended by the completion of another: it shared that one's call.
            let _ = self.complete(value, self.names[&value], attempt, answer);
        }
        while self.emit().is_some() {}
    }

    /// Ends the input and every call after it: every record that was taken in has left once.
    pub(in crate::operator::tests) fn finish_by_completions(mut self, answer: &Answer) {
        self.end();
        for _ in 0..10_000 {
            let awaited = |state: &State| matches!(state, State::InFlight | State::TimedOut { .. });
            let awaited = self.plain.items.iter().find(|item| awaited(&item.state));
            if let Some((value, attempt)) = awaited.and_then(|item| Some((item.value()?, item.attempt))) {
                assert!(self.complete(value, self.names[&value], attempt, answer));
            } else if self.emit().is_none() {
                if self.operator.is_empty() {
                    return self.all_have_left();
                }
                let next = self.operator.next_wakeup().expect("an element is stuck");
                self.advance(self.now.max(next));
            }
        }
        panic!("the operator does not come to its end");
    }

    /// Lets time pass until every record that was taken in has left. Needs a timeout, and somebody who answers for it.
    pub(in crate::operator::tests) fn finish_by_time(mut self) {
        self.end();
        for _ in 0..10_000 {
            if self.emit().is_some() {
                continue;
            }
            let Some(next) = self.operator.next_wakeup() else { return self.all_have_left() };
            self.advance(self.now.max(next));
        }
        panic!("the operator does not come to its end");
    }

    fn all_have_left(mut self) {
        assert!(self.operator.is_drained(), "nothing is held");
        assert_eq!(self.operator.next_wakeup(), None, "no timer is left");
        if !self.closed {
            for (value, outcomes) in &self.outcomes {
                assert_eq!(*outcomes, 1, "outcomes of {value}");
            }
        }
    }
}
