//! Random histories: the operator and a plain model must agree on everything that can be seen.

mod plain;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use runtime_core::{EpochMillis, Record, StreamElement, Tick, Watermark};

use super::driver::{fixed, ms};
use crate::*;
use plain::Plain;

type Answer = Result<u32, CallError<u8>>;

/// Errors 0 are final, errors 1 may be retried, errors 2 not before a while.
pub(super) fn judge(answer: &Answer) -> Verdict {
    match answer {
        Ok(_) | Err(CallError::Error(0)) => Verdict::Final,
        Err(CallError::Error(2)) => Verdict::RetryAfter(ms(9)),
        Err(_) => Verdict::Retry,
    }
}

/// Inputs of the last residue have no key.
pub(super) fn key_of(value: &u32) -> Option<u32> {
    Some(value % 4).filter(|&key| key < 3)
}

#[derive(Debug, Clone)]
enum Step {
    /// Offer a record; its key is drawn.
    Record(u32),
    Watermark,
    /// Complete one of all attempts ever started, running or not.
    Complete(prop::sample::Index, Answer),
    Advance(u64),
    Emit(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop_oneof![
        4 => Just(Ok(7)),
        4 => (0..3_u8).prop_map(|error| Err(CallError::Error(error))),
        1 => Just(Err(CallError::HandleDropped)),
    ];
    prop_oneof![
        6 => (0..4_u32).prop_map(Step::Record),
        1 => Just(Step::Watermark),
        6 => (any::<prop::sample::Index>(), answer).prop_map(|(which, answer)| Step::Complete(which, answer)),
        2 => (0..12_u64).prop_map(Step::Advance),
        3 => (1..4_usize).prop_map(Step::Emit),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let order = prop_oneof![Just(Order::Ordered), Just(Order::Unordered), Just(Order::Keyed)];
    (order, 1..9_usize, 1..4_usize, any::<[bool; 3]>()).prop_map(
        |(order, capacity, per_key, [budget, limit, retry])| {
            let mut options = Options::with_order(order).capacity(capacity).max_in_flight_per_key(per_key);
            options = options.on_failure(FailurePolicy::Keep);
            if budget {
                options = options.timeout(ms(20));
            }
            if limit {
                options = options.attempt_timeout(ms(7));
            }
            if budget && retry {
                options = options.retry(fixed(2, 5));
            }
            options.build().unwrap()
        },
    )
}

/// What can be seen of an element that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Record(u32, Outcome<u32, u8>, Attempts),
    Watermark(i64),
}

type Operator = AsyncWaitOperator<u32, u32, u8, fn(&u32) -> Option<u32>, fn(&Answer) -> Verdict>;

struct Pair {
    operator: Operator,
    plain: Plain,
    now: Tick,
    offered: u32,
    taken: BTreeMap<u32, usize>,
    /// Every attempt that the operator had started, with its input.
    started: Vec<(u32, EntryId, u32)>,
    /// Those whose call runs.
    running: BTreeMap<(u32, u32), ()>,
}

impl Pair {
    fn new(options: Options) -> Self {
        Self {
            operator: AsyncWaitOperator::with(options.clone(), key_of, judge),
            plain: Plain::new(options),
            now: Tick::ZERO,
            offered: 0,
            taken: BTreeMap::new(),
            started: Vec::new(),
            running: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Record(key) => {
                let value = self.offered * 4 + key;
                self.offered += 1;
                let pushed = self.operator.push(StreamElement::Record(Record::new(value)), self.now).is_ok();
                assert_eq!(pushed, self.plain.push_record(value, self.now));
                if pushed {
                    self.taken.insert(value, 0);
                }
            }
            Step::Watermark => {
                let at = i64::from(self.offered);
                let element = StreamElement::Watermark(Watermark(EpochMillis(at)));
                assert_eq!(self.operator.push(element, self.now).is_ok(), self.plain.push_watermark(at));
            }
            Step::Complete(which, answer) => {
                if !self.started.is_empty() {
                    let (value, entry, attempt) = *which.get(&self.started);
                    self.running.remove(&(value, attempt));
                    let counted = self.operator.complete(entry, attempt, answer.clone(), self.now);
                    assert_eq!(counted, self.plain.complete(value, attempt, answer, self.now));
                }
            }
            Step::Advance(millis) => {
                self.now = self.now + ms(millis);
                self.operator.advance(self.now);
                self.plain.advance(self.now);
            }
            Step::Emit(count) => (0..count).for_each(|_| self.emit()),
        }
        self.compare();
    }

    fn emit(&mut self) {
        let seen = self.operator.next_output().map(|output| match output {
            Output::Record { input, outcome, attempts } => Seen::Record(input.value, outcome, attempts),
            Output::Watermark(watermark) => Seen::Watermark(watermark.0.0),
            other => panic!("{other:?} was never pushed"),
        });
        if let Some(Seen::Record(value, ..)) = seen {
            *self.taken.get_mut(&value).expect("it was taken in") += 1;
        }
        assert_eq!(seen, self.plain.emit());
    }

    /// Carries out effects and compares what is left.
    fn compare(&mut self) {
        let first_new = self.started.len();
        while let Some(effect) = self.operator.next_effect() {
            match effect {
                Effect::Start { entry, attempt } => {
                    let value = self.operator.input(entry).expect("a start names a held record").value;
                    self.started.push((value, entry, attempt));
                    self.running.insert((value, attempt), ());
                }
                Effect::TimedOut { .. } => panic!("it was not told to ask"),
                Effect::Abandon { entry, attempt } => {
                    let of = self.started.iter().find(|&&(_, e, a)| (e, a) == (entry, attempt));
                    // A call that was never made cannot be abandoned.
                    let &(value, ..) = of.expect("an abandoned attempt was started");
                    self.running.remove(&(value, attempt));
                }
            }
        }
        let new: Vec<(u32, u32)> =
            self.started[first_new..].iter().map(|&(value, _, attempt)| (value, attempt)).collect();
        assert_eq!(new, self.plain.take_started(), "attempts started, in order");
        assert_eq!(self.running.keys().copied().collect::<Vec<_>>(), self.plain.running(), "calls that run");
        assert_eq!(self.operator.next_wakeup(), self.plain.next_wakeup(), "next wake-up");
        assert_eq!(self.operator.len(), self.plain.len(), "places taken");
        assert_eq!(self.operator.in_flight(), self.plain.in_flight(), "records in flight");
    }

    /// Ends the input, and every call after it.
    fn finish(&mut self) {
        self.operator.end_of_input(self.now);
        self.plain.end_of_input(self.now);
        self.compare();
        while let Some((value, attempt)) = self.running.keys().next().copied() {
            let &(_, entry, _) =
                self.started.iter().find(|&&(v, _, a)| (v, a) == (value, attempt)).expect("started");
            self.running.remove(&(value, attempt));
            assert!(self.operator.complete(entry, attempt, Err(CallError::Error(1)), self.now));
            assert!(self.plain.complete(value, attempt, Err(CallError::Error(1)), self.now));
            self.compare();
        }
        while !self.operator.is_empty() {
            let held = self.operator.len();
            self.emit();
            assert!(self.operator.len() < held, "an element is stuck");
        }
        assert!(self.operator.is_drained());
        assert_eq!(self.operator.next_wakeup(), None);
        for (value, outcomes) in &self.taken {
            assert_eq!(*outcomes, 1, "outcomes of {value}");
        }
    }
}

/// `ASYNCIO_SEED` chooses other histories; a failure names its seed and the smallest history that shows it.
#[test]
fn operator_and_plain_model_agree_on_random_histories() {
    let seed: u64 =
        std::env::var("ASYNCIO_SEED").map_or(1, |text| text.parse().expect("ASYNCIO_SEED is a number"));
    println!("ASYNCIO_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let histories = (options(), prop::collection::vec(step(), 0..120));
    let outcome = runner.run(&histories, |(options, steps)| {
        let mut pair = Pair::new(options);
        steps.into_iter().for_each(|step| pair.step(step));
        pair.finish();
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("ASYNCIO_SEED={seed}: {failure}");
    }
}
