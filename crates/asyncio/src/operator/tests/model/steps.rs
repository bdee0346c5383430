//! What happens in a random history.

use std::cell::Cell;
use std::fmt;

use proptest::prelude::*;
use proptest::sample::Index;
use runtime_core::WatermarkStatus;

use super::pair::Pair;
use super::setup::{Answer, Asks, Element, Setup};
use crate::operator::tests::driver::{fixed, ms};
use crate::*;

#[derive(Debug, Clone)]
enum Kind {
    /// A new record; its key is drawn.
    Record(u32),
    Watermark,
    Status(bool),
}

#[derive(Debug, Clone)]
enum Step {
    Push(Kind),
    Park(Kind),
    /// Offer a new record whose call is ready with the answer, or is not ready.
    Offer(u32, Option<Answer>),
    Marker,
    Barrier,
    /// Complete one of all attempts ever started, running or not.
    Complete(Index, Answer),
    Advance(u64),
    /// Time passes and the operator is not told.
    Sleep(u64),
    Emit(usize),
    /// Complete every call that runs, and take all that leaves by that.
    Settle(Answer),
    End,
    Restore(Setup),
    Close,
}

#[derive(Clone)]
pub(super) struct History {
    setup: Setup,
    steps: Vec<Step>,
}

/// A step a line.
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.setup)?;
        self.steps.iter().try_for_each(|step| write!(f, "\n    {step:?}"))
    }
}

pub(super) fn histories() -> impl Strategy<Value = History> {
    (setup(), prop::collection::vec(step(), 0..120)).prop_map(|(setup, steps)| History { setup, steps })
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        8 => Just(Ok(7)),
        8 => (0..3_u8).prop_map(|error| Err(CallError::Error(error))),
        2 => Just(Err(CallError::HandleDropped)),
        1 => Just(Err(CallError::NotBegun(1))),
        1 => Just(Err(CallError::Panicked("boom".into()))),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => (0..4_u32).prop_map(Kind::Record),
        1 => Just(Kind::Watermark),
        1 => any::<bool>().prop_map(Kind::Status),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        240 => kind().prop_map(Step::Push),
        100 => (0..4_u32, prop::option::of(answer())).prop_map(|(key, answer)| Step::Offer(key, answer)),
        16 => kind().prop_map(Step::Park),
        10 => Just(Step::Marker),
        10 => Just(Step::Barrier),
        280 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Complete(which, answer)),
        80 => (0..12_u64).prop_map(Step::Advance),
        20 => (0..12_u64).prop_map(Step::Sleep),
        180 => (1..5_usize).prop_map(Step::Emit),
        60 => answer().prop_map(Step::Settle),
        2 => Just(Step::End),
        8 => setup().prop_map(Step::Restore),
        1 => Just(Step::Close),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let order = prop_oneof![Just(Order::Ordered), Just(Order::Unordered), Just(Order::Keyed)];
    let policy = prop_oneof![
        3 => Just(FailurePolicy::Keep),
        1 => Just(FailurePolicy::Fail),
        1 => Just(FailurePolicy::Drop),
        1 => Just(FailurePolicy::DeadLetter),
    ];
    let exponential = Retry::ExponentialDelay {
        max_retries: 3,
        initial: ms(2),
        max: ms(5),
        multiplier: 2.0,
        jitter: 0.0,
        seed: 0,
    };
    let retry = prop_oneof![1 => Just(Retry::None), 2 => Just(fixed(2, 5)), 1 => Just(exponential)];
    // Quarters and a reserve, so that the model may count in whole numbers.
    let budget = prop::option::weighted(0.3, (0..3_u32, 0..3_u32));
    let asks = prop_oneof![2 => Just(Asks::Nobody), 1 => Just(Asks::Answers), 1 => Just(Asks::Silent)];
    let switches = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.4));
    (order, policy, retry, budget, asks, switches, 1..9_usize, 1..4_usize).prop_map(
        |(order, policy, retry, budget, asks, (timeout, limit, coalesces), capacity, per_key)| {
            let mut options = Options::with_order(order).capacity(capacity).max_in_flight_per_key(per_key);
            options = options.on_failure(policy);
            if timeout {
                options = options.timeout(ms(20)).retry(retry);
            }
            if limit {
                options = options.attempt_timeout(ms(7));
            }
            if let Some((quarters, reserve)) = budget.filter(|_| timeout && retry != Retry::None) {
                let per_record = f64::from(quarters) / 4.0;
                options = options.retry_budget(RetryBudget { per_record, reserve });
            }
            Setup { options: options.build().expect("options make sense"), asks, coalesces }
        },
    )
}

/// What has happened in all histories together, so that they cannot quietly come to nothing.
#[derive(Debug, Default)]
pub(super) struct Seen {
    left: Cell<usize>,
    passed: Cell<usize>,
    restored: Cell<usize>,
}

impl Seen {
    pub(super) fn check(&self) {
        println!("{self:?}");
        assert!(self.left.get() > 6_000, "records have left: {self:?}");
        assert!(self.passed.get() > 200, "records have passed: {self:?}");
        assert!(self.restored.get() > 400, "operators were restored: {self:?}");
    }
}

fn add(count: &Cell<usize>, more: usize) {
    count.set(count.get() + more);
}

impl History {
    pub(super) fn run(self, seen: &Seen) {
        let mut pair = Pair::new(self.setup);
        let mut offered = 0;
        for step in self.steps {
            let mut next = |key: u32| {
                offered += 1;
                4 * offered + key
            };
            let mut element = |kind| match kind {
                Kind::Record(key) => Element::Record(next(key)),
                Kind::Watermark => Element::Watermark(next(0).into()),
                Kind::Status(true) => Element::Status(WatermarkStatus::Active),
                Kind::Status(false) => Element::Status(WatermarkStatus::Idle),
            };
            match step {
                Step::Push(kind) => drop(pair.push(element(kind))),
                Step::Park(kind) => drop(pair.park(element(kind))),
                Step::Offer(key, answer) => drop(pair.offer(next(key), answer)),
                Step::Marker => pair.marker(),
                Step::Barrier => pair.barrier(next(0).into()),
                Step::Complete(which, answer) => {
                    if !pair.started.is_empty() {
                        let (value, entry, attempt, _) = *which.get(&pair.started);
                        let _ = pair.complete(value, entry, attempt, &answer);
                    }
                }
                Step::Advance(millis) => pair.advance(pair.now + ms(millis)),
                Step::Sleep(millis) => pair.sleep(pair.now + ms(millis)),
                Step::Emit(count) => (0..count).for_each(|_| drop(pair.emit())),
                Step::Settle(answer) => pair.settle(&answer),
                Step::End => pair.end(),
                Step::Restore(setup) => add(&seen.restored, pair.restore(&setup).into()),
                Step::Close => pair.close(),
            }
        }
        add(&seen.left, pair.outcomes.values().sum());
        add(&seen.passed, pair.passed);
        pair.finish_by_completions(&Err(CallError::Error(1)));
    }
}
