//! Capacity: what is full, what is stuck, what is nothing.

use std::cell::Cell;

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, BatchOptions, BatchOptionsError, FutureCalls, Options, OptionsError,
    Output, RetryErrors,
};
use futures::{StreamExt, stream};
use runtime_core::{Barrier, EpochMillis, JobId, StreamElement, Tick};
use tokio::time::sleep;

use crate::{ORDERS, built, ms, record};

#[tokio::test(start_paused = true)]
async fn defect03_one_element_more_than_there_are_places_is_restored() {
    for order in ORDERS {
        let key = |n: &u32| Some(*n);
        let operator = |capacity| {
            let options = built(Options::with_order(order).capacity(capacity));
            AsyncWaitOperator::<u32, u32, &str, _, _>::with(options, key, RetryErrors)
        };
        let mut full = operator(4);
        for n in 0..4 {
            full.push(record(n), Tick::ZERO).unwrap();
        }
        full.park(record(4), Tick::ZERO).unwrap();
        let mut restored = operator(4);
        restored.restore(full.snapshot().unwrap().cloned(), Tick::ZERO).unwrap();
        let calls = FutureCalls::new(|n: &u32| {
            let n = *n;
            async move {
                sleep(ms(5)).await;
                Ok(n)
            }
        });
        let results = stream::iter([5]).async_wait_on(restored, calls);
        let waited = tokio::time::timeout(ms(1000), results.map(Result::unwrap).collect::<Vec<u32>>()).await;
        let mut results = waited.unwrap_or_else(|_| panic!("{order:?}: the restore hangs"));
        results.sort_unstable();
        assert_eq!(results, [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn defect08_a_full_operator_takes_a_barrier_and_what_came_before_it() {
    for order in ORDERS {
        let options = built(Options::with_order(order).capacity(2));
        let mut operator =
            AsyncWaitOperator::<u32, u32, &str, _, _>::with(options, |n: &u32| Some(*n), RetryErrors);
        operator.push(record(1), Tick::ZERO).unwrap();
        operator.push(record(2), Tick::ZERO).unwrap();
        let waiting = operator.push(record(3), Tick::ZERO).unwrap_err().element;
        operator.park(waiting, Tick::ZERO).unwrap();
        let snapshot = operator.snapshot().unwrap().cloned();
        let held: Vec<u32> = snapshot.elements().filter_map(|e| Some(*e.into_record()?.value)).collect();
        assert_eq!(held, [1, 2, 3]);
        drop(snapshot);
        let barrier = Barrier { job: JobId::from_u128(1), checkpoint: 4, begun_at: EpochMillis(0) };
        operator.push(StreamElement::Barrier(barrier), Tick::ZERO).unwrap();
        assert_eq!(operator.next_output(), Some(Output::Barrier(barrier)), "no place had to come free");
        assert_eq!(operator.in_flight(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn defect18_behind_one_stuck_key_no_more_is_taken_in_than_there_are_places() {
    const CAPACITY: usize = 20;
    let taken = Cell::new(0_usize);
    // An endless source in which every fifth record has the key whose first call never ends.
    let source = stream::iter(0_u32..).inspect(|_| taken.set(taken.get() + 1));
    let options = built(Options::keyed().capacity(CAPACITY));
    let mut results = source.async_wait_with(
        options,
        |n: &u32| Some(n % 5),
        RetryErrors,
        |n: &u32| {
            let n = *n;
            async move {
                sleep(ms(1)).await;
                if n == 0 { std::future::pending().await } else { Ok::<_, ()>(n) }
            }
        },
    );
    let mut given = 0;
    while let Ok(result) = tokio::time::timeout(ms(1000), results.next()).await {
        assert_ne!(result.unwrap().unwrap() % 5, 0);
        given += 1;
        assert!(taken.get() <= given + CAPACITY, "{} taken, {given} given", taken.get());
    }
    assert!(
        given >= 4 * (CAPACITY - 1),
        "the other keys went on until the stuck one had every place: {given}"
    );
    assert_eq!(taken.get(), given + CAPACITY);
    assert_eq!(results.operator().len(), CAPACITY);
    assert_eq!(results.operator().in_flight(), 1);
}

#[test]
fn defect20_no_places_batches_of_nothing_and_keys_without_calls_are_refused() {
    assert_eq!(Options::ordered().capacity(0).build(), Err(OptionsError::Capacity(0)));
    let error = Options::unordered().capacity(0).build().unwrap_err().to_string();
    assert_eq!(error, "capacity is 0: it must be at least 1 and below 2^32 - 1");
    let per_key = Options::keyed().max_in_flight_per_key(0).build();
    assert_eq!(per_key, Err(OptionsError::ZeroInFlightPerKey));
    assert_eq!(BatchOptions::new(0, None), Err(BatchOptionsError::ZeroSize));
}
