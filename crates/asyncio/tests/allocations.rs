//! What a record costs in allocations: nothing where its call is ready at once, nothing in the core once it is warm.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::task::Poll;
use std::time::Duration;

use asyncio::{AsyncWaitOperator, Effect, EntryId, FailurePolicy, Offered, Options, Order};
use asyncio::{CallError, KeySelector, Retry, RetryErrors};
use runtime_core::{Record, StreamElement, Tick};
use support::allocations_of;

const ORDERS: [Order; 3] = [Order::Ordered, Order::Unordered, Order::Keyed];
const CAPACITY: usize = 256;
/// Records before it is warm, and records counted.
const WARM: u64 = 20_000;
const COUNTED: u64 = 20_000;

fn key_of(value: &u64) -> Option<u64> {
    Some(value % 61)
}

fn options(order: Order) -> Options {
    let retry = Retry::FixedDelay { max_retries: 2, delay: Duration::from_micros(300) };
    let options = Options::with_order(order).capacity(CAPACITY).timeout(Duration::from_secs(30)).retry(retry);
    options.attempt_timeout(Duration::from_secs(10)).on_failure(FailurePolicy::Keep).build().unwrap()
}

type Operator<S> = AsyncWaitOperator<u64, u64, u8, S, RetryErrors>;

fn operator(order: Order) -> Operator<fn(&u64) -> Option<u64>> {
    Operator::with(options(order), key_of, RetryErrors)
}

/// Counts what `records` costs once it has run for a while; it is told the first record and how many.
fn when_warm(mut records: impl FnMut(u64, u64)) -> u64 {
    records(0, WARM);
    allocations_of(|| records(WARM, COUNTED))
}

#[test]
fn a_record_that_is_ready_when_it_is_offered_allocates_nothing() {
    for order in ORDERS {
        let mut operator = operator(order);
        let allocations = when_warm(|first, count| {
            for value in first..first + count {
                let now = || Tick::from_nanos(100 * value);
                let offered = operator.offer(Record::new(value), now, |value, _| Poll::Ready(Ok(value + 1)));
                assert!(matches!(offered, Ok(Offered::Passed { .. })));
            }
        });
        assert_eq!(allocations, 0, "{order:?}: {COUNTED} records");
    }
}

#[test]
fn a_record_that_is_ready_when_its_call_is_started_allocates_nothing() {
    for order in ORDERS {
        let mut operator = operator(order);
        let allocations = when_warm(|first, count| {
            for value in first..first + count {
                let now = Tick::from_nanos(100 * value);
                operator.push(StreamElement::Record(Record::new(value)), now).unwrap();
                while let Some(effect) = operator.next_effect() {
                    let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
                    operator.complete(entry, attempt, Ok(value + 1), now);
                }
                assert!(operator.next_output().is_some());
            }
        });
        assert_eq!(allocations, 0, "{order:?}: {COUNTED} records");
    }
}

/// Fills the operator, completes every call out of order, each third one by way of a retry, and takes what leaves.
fn hold<S: KeySelector<u64>>(
    operator: &mut Operator<S>,
    calls: &mut Vec<(EntryId, u32)>,
    first: u64,
    count: u64,
) {
    // Later than the run before it has come to.
    let (mut next, mut now) = (first, Tick::from_nanos(100_000 * first));
    loop {
        while next < first + count && operator.is_available() {
            operator.push(StreamElement::Record(Record::new(next)), now).unwrap();
            next += 1;
        }
        while let Some(effect) = operator.next_effect() {
            if let Effect::Start { entry, attempt } = effect {
                calls.push((entry, attempt));
            }
        }
        if calls.is_empty() && next == first + count && operator.is_empty() {
            return;
        }
        // A stride that meets every call and follows no order.
        for step in 0..calls.len() {
            let (entry, attempt) = calls[(step * 7) % calls.len()];
            let value = operator.input(entry).map_or(0, |record| record.value);
            let retried = value.is_multiple_of(3) && attempt == 1;
            let answer = if retried { Err(CallError::Error(1)) } else { Ok(value + 1) };
            operator.complete(entry, attempt, answer, now);
        }
        calls.clear();
        now = now + Duration::from_micros(400);
        operator.advance(now);
        while operator.next_output().is_some() {}
    }
}

#[test]
fn a_record_that_is_held_allocates_nothing_in_a_warm_core() {
    for order in ORDERS {
        let (mut operator, mut calls) = (operator(order), Vec::with_capacity(2 * CAPACITY));
        let allocations = when_warm(|first, count| hold(&mut operator, &mut calls, first, count));
        assert_eq!(allocations, 0, "{order:?}: {COUNTED} records");
        let figures = operator.figures(Tick::ZERO);
        assert_eq!(figures.records_out, WARM + COUNTED);
        assert!(figures.retries > COUNTED / 4, "calls are made again: {figures:?}");
    }
}

#[test]
fn a_record_that_shares_a_call_allocates_no_more_than_its_share() {
    for order in [Order::Ordered, Order::Unordered] {
        let mut operator = operator(order).coalescing_by(|value: &u64| Some(value / 4));
        let mut calls = Vec::with_capacity(2 * CAPACITY);
        let allocations = when_warm(|first, count| hold(&mut operator, &mut calls, first, count));
        assert!(operator.figures(Tick::ZERO).coalesced > COUNTED, "calls are shared");
        assert!(allocations <= COUNTED, "{order:?}: {allocations} for {COUNTED} records");
    }
}

#[cfg(feature = "tokio")]
mod stream {
    //! The same behind a stream.

    use asyncio::{AsyncWaitExt, RetryErrors};
    use futures::{Stream, StreamExt, stream};
    use tokio::runtime::Builder;

    use super::{COUNTED, ORDERS, WARM, allocations_of, key_of, options};

    /// What so many results of this stream cost once it has given others.
    async fn when_warm(results: impl Stream<Item: Send>, counted: u64) -> u64 {
        let mut results = std::pin::pin!(results);
        for _ in 0..WARM {
            assert!(results.next().await.is_some());
        }
        let before = super::support::memory().allocations;
        for _ in 0..counted {
            assert!(results.next().await.is_some());
        }
        super::support::memory().allocations - before
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        // One thread, so that its allocations are all there are.
        Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_result_that_is_ready_at_once_allocates_nothing() {
        for order in ORDERS {
            let call = |value: &u64| {
                let value = *value;
                async move { Ok::<u64, u8>(value + 1) }
            };
            let results = stream::iter(0..).async_wait_with(options(order), key_of, RetryErrors, call);
            let allocations = run(when_warm(results, COUNTED));
            assert_eq!(allocations, 0, "{order:?}: {COUNTED} records");
        }
    }

    #[test]
    fn a_result_that_is_waited_for_allocates_its_task_and_little_else() {
        for order in ORDERS {
            let allocations = |counted| {
                let call = |value: &u64| {
                    let value = *value;
                    async move {
                        tokio::task::yield_now().await;
                        Ok::<u64, u8>(value + 1)
                    }
                };
                let results = stream::iter(0..).async_wait_with(options(order), key_of, RetryErrors, call);
                run(when_warm(results, counted))
            };
            let (few, many) = (allocations(COUNTED), allocations(4 * COUNTED));
            println!("{order:?}: {:.2} allocations a record", many as f64 / (4 * COUNTED) as f64);
            assert!(few.div_ceil(COUNTED) <= 4, "{order:?}: {few} for {COUNTED} records");
            assert!(many <= 4 * few + few / 50, "{order:?}: {many} for four times as many");
        }
    }

    #[test]
    fn the_count_sees_what_is_allocated() {
        assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(1)))), 1);
    }
}
