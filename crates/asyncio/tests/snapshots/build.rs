//! Snapshots of operators that have lived a little, and seeded property tests.

use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use asyncio::{AsyncWaitOperator, DecodeError, Effect, EntryId, Options, Retry, Snapshot};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use runtime_core::{EpochMillis, Record, StreamElement, Tick, Watermark, WatermarkStatus};

pub(crate) type Operator = AsyncWaitOperator<Vec<u8>, u32, &'static str>;

/// One element of an operator, before it is pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Element {
    /// Value, timestamp, attempts made (at least 1).
    Record(Vec<u8>, Option<i64>, u32),
    Watermark(i64),
    Status(WatermarkStatus),
}

pub(crate) fn operator(name: &str, scope: u64) -> Operator {
    let retry = Retry::FixedDelay { max_retries: 1000, delay: Duration::from_millis(1) };
    let options = Options::ordered()
        .capacity(100_000)
        .timeout(Duration::from_secs(1000))
        .retry(retry)
        .name(name.to_owned())
        .idempotency_scope(scope);
    AsyncWaitOperator::new(options.build().unwrap())
}

fn start(operator: &mut Operator) -> (EntryId, u32) {
    let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("nothing started") };
    assert_eq!(operator.next_effect(), None);
    (entry, attempt)
}

/// An operator that holds these elements, after `left` records that have left already.
pub(crate) fn holding(name: &str, scope: u64, left: usize, elements: &[Element]) -> Operator {
    let mut operator = operator(name, scope);
    let mut now = Tick::ZERO;
    for _ in 0..left {
        operator.push(StreamElement::Record(Record::new(Vec::new())), now).unwrap();
        let (entry, attempt) = start(&mut operator);
        assert!(operator.complete(entry, attempt, Ok(0), now));
        assert!(operator.next_output().is_some());
    }
    for element in elements {
        match element {
            Element::Record(value, timestamp, attempts) => {
                let record = Record { value: value.clone(), timestamp: timestamp.map(EpochMillis) };
                operator.push(StreamElement::Record(record), now).unwrap();
                for _ in 1..*attempts {
                    let (entry, attempt) = start(&mut operator);
                    assert!(operator.complete(entry, attempt, Err(asyncio::CallError::Error("again")), now));
                    now = now + Duration::from_millis(1);
                    operator.advance(now);
                }
                start(&mut operator);
            }
            Element::Watermark(at) => {
                operator.push(StreamElement::Watermark(Watermark(EpochMillis(*at))), now).unwrap();
            }
            Element::Status(status) => operator.push(StreamElement::Status(*status), now).unwrap(),
        }
    }
    operator
}

pub(crate) fn snapshot(name: &str, scope: u64, left: usize, elements: &[Element]) -> Snapshot<Vec<u8>> {
    holding(name, scope, left, elements).snapshot().unwrap().cloned()
}

pub(crate) fn encoded(snapshot: &Snapshot<Vec<u8>>) -> Vec<u8> {
    let write = |value: &Vec<u8>, into: &mut Vec<u8>| -> Result<(), Infallible> {
        into.extend(value);
        Ok(())
    };
    snapshot.encode(write).unwrap()
}

pub(crate) fn decoded(bytes: &[u8]) -> Result<Snapshot<Vec<u8>>, DecodeError<Infallible>> {
    Snapshot::decode(bytes, |value| Ok(value.to_vec()))
}

pub(crate) fn element() -> impl Strategy<Value = Element> {
    let record = (prop::collection::vec(any::<u8>(), 0..6), any::<Option<i64>>(), 1..4_u32);
    prop_oneof![
        5 => record.prop_map(|(value, at, attempts)| Element::Record(value, at, attempts)),
        2 => any::<i64>().prop_map(Element::Watermark),
        1 => Just(Element::Status(WatermarkStatus::Idle)),
        1 => Just(Element::Status(WatermarkStatus::Active)),
    ]
}

/// What one subtask held: its scope, the records that had left, and its elements.
pub(crate) type Unit = (u64, usize, Vec<Element>);

/// Up to three subtasks.
pub(crate) fn units() -> impl Strategy<Value = Vec<Unit>> {
    prop::collection::vec((any::<u64>(), 0..4_usize, prop::collection::vec(element(), 0..8)), 0..4)
}

pub(crate) fn combined(name: &str, units: &[Unit]) -> Snapshot<Vec<u8>> {
    Snapshot::combined(units.iter().map(|(scope, left, elements)| snapshot(name, *scope, *left, elements)))
}

/// `ASYNCIO_SEED` chooses other cases; a failure names its seed and the smallest case that shows it.
pub(crate) fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let seed: u64 =
        std::env::var("ASYNCIO_SEED").map_or(1, |text| text.parse().expect("ASYNCIO_SEED is a number"));
    println!("ASYNCIO_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner.run(&strategy, |value| {
        property(value);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("ASYNCIO_SEED={seed}: {failure}");
    }
}
