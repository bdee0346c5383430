//! Every record once: without watermarks, in duplicate, at the end, and by whom.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, BatchCalls, BatchOptions, CompletionInbox, Effect, FailurePolicy,
    FailureReason, Options, Order, Outcome, Output, RetryErrors,
};
use futures::{StreamExt, stream};
use runtime_core::Tick;
use tokio::time::sleep;

use crate::{ORDERS, built, ms, record};

#[test]
fn defect04_completions_of_other_threads_emit_nothing_until_the_owner_takes_them_in() {
    let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(built(Options::unordered()));
    let mut inbox = CompletionInbox::new();
    for n in 0..8 {
        operator.push(record(n), Tick::ZERO).unwrap();
    }
    let mut threads = Vec::new();
    while let Some(effect) = operator.next_effect() {
        let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
        let result = inbox.handle(entry, attempt);
        // All that another thread has is the handle. It cannot reach the operator: `complete` and `next_output` take it
        // by `&mut self`, which its owner has.
        threads.push(std::thread::spawn(move || result.complete(1)));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(operator.next_output(), None);
    assert_eq!(inbox.deliver_to(&mut operator, Tick::ZERO), 8);
    let left = std::iter::from_fn(|| operator.next_output()).count();
    assert_eq!(left, 8);
}

#[tokio::test(start_paused = true)]
async fn defect09_without_any_watermark_every_record_leaves() {
    let results = stream::iter(0..1000_u64).async_wait(built(Options::unordered().capacity(7)), |n| {
        let n = *n;
        async move {
            sleep(ms(n * 7 % 13)).await;
            Ok::<_, ()>(n)
        }
    });
    let mut results: Vec<u64> = results.map(Result::unwrap).collect().await;
    assert_ne!(results, (0..1000).collect::<Vec<_>>(), "they did overtake each other");
    results.sort_unstable();
    assert_eq!(results, (0..1000).collect::<Vec<_>>());
}

#[test]
fn defect10_equal_records_in_flight_are_told_apart() {
    for order in ORDERS {
        let options = built(Options::with_order(order).capacity(6).max_in_flight_per_key(6));
        let mut operator =
            AsyncWaitOperator::<u32, u32, &str, _, _>::with(options, |n: &u32| Some(*n), RetryErrors);
        for _ in 0..6 {
            operator.push(record(7), Tick::ZERO).unwrap();
        }
        let mut started = Vec::new();
        while let Some(effect) = operator.next_effect() {
            let Effect::Start { entry, attempt } = effect else { panic!("{effect:?}") };
            started.push((entry, attempt));
        }
        assert_eq!(started.len(), 6);
        for (at, done) in [3, 0, 5, 1, 4, 2].into_iter().enumerate() {
            let (entry, attempt) = started[done];
            assert!(operator.complete(entry, attempt, Ok(done as u32), Tick::ZERO));
            assert!(!operator.complete(entry, attempt, Ok(99), Tick::ZERO));
            assert_eq!(operator.in_flight(), 5 - at);
        }
        let mut answers = Vec::new();
        while let Some(Output::Record { outcome: Outcome::Completed(answer), .. }) = operator.next_output() {
            answers.push(answer);
        }
        let expected = if order == Order::Unordered { [3, 0, 5, 1, 4, 2] } else { [0, 1, 2, 3, 4, 5] };
        assert_eq!(answers, expected, "{order:?}");
        let figures = operator.figures(Tick::ZERO);
        assert_eq!((figures.in_flight, figures.occupied, figures.completed_waiting), (0, 0, 0));
        assert_eq!((figures.records_in, figures.records_out), (6, 6));
    }
}

#[tokio::test(start_paused = true)]
async fn defect10_the_same_object_in_flight_twice_is_two_records() {
    let shared = Arc::new(7_u32);
    let source = stream::iter([Arc::clone(&shared), Arc::clone(&shared), shared]);
    let number = AtomicU32::new(0);
    let results = source.async_wait(built(Options::ordered()), |_| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        async move {
            sleep(ms(u64::from(9 - number))).await;
            Ok::<_, ()>(number)
        }
    });
    assert_eq!(results.map(Result::unwrap).collect::<Vec<u32>>().await, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn defect12_at_the_end_of_a_bounded_source_as_many_have_left_as_came_in() {
    for order in ORDERS {
        for (count, capacity) in [(0_u64, 3), (1, 3), (100, 3), (100, 1000)] {
            let options = built(Options::with_order(order).capacity(capacity));
            let key = |n: &u64| Some(n % 4);
            let results = stream::iter(0..count).async_wait_with(options, key, RetryErrors, |n: &u64| {
                let n = *n;
                async move {
                    sleep(ms(50 + n % 7)).await;
                    Ok::<_, ()>(n)
                }
            });
            let mut left: Vec<u64> = results.map(Result::unwrap).collect().await;
            left.sort_unstable();
            assert_eq!(left, (0..count).collect::<Vec<_>>(), "{order:?} {capacity}");
        }
    }
    let calls = BatchCalls::new(BatchOptions::new(8, None).unwrap(), |inputs: Vec<u32>| async move {
        sleep(ms(50)).await;
        inputs.into_iter().map(Ok::<_, ()>).collect()
    });
    let operator = AsyncWaitOperator::new(built(Options::ordered().capacity(20)));
    assert_eq!(
        stream::iter(0..99).async_wait_on(operator, calls).count().await,
        99,
        "half-full batches, too"
    );
}

/// Answers that nobody can guess from the input.
struct Service {
    secret: BTreeMap<u32, u32>,
    asked: Mutex<Vec<u32>>,
}

#[tokio::test(start_paused = true)]
async fn defect14_the_service_was_asked_about_every_record_and_its_answers_are_the_results() {
    let secret: BTreeMap<u32, u32> =
        (0..50_u32).map(|n| (n, n.wrapping_mul(2_654_435_761) ^ 0x5bd1)).collect();
    let service = Arc::new(Service { secret: secret.clone(), asked: Mutex::default() });
    let mut results = stream::iter(0..50_u32).async_wait(built(Options::ordered().capacity(8)), |n| {
        let (n, service) = (*n, Arc::clone(&service));
        async move {
            sleep(ms(1)).await;
            service.asked.lock().unwrap().push(n);
            service.secret.get(&n).copied().ok_or("unknown")
        }
    });
    let mut answers = Vec::new();
    while let Some(result) = results.next().await {
        answers.push(result.unwrap());
    }
    assert_eq!(answers, secret.into_values().collect::<Vec<_>>());
    let mut asked = service.asked.lock().unwrap().clone();
    asked.sort_unstable();
    assert_eq!(asked, (0..50).collect::<Vec<_>>());
    assert_eq!(results.operator().figures(results.now()).calls, 50);
}

#[tokio::test(start_paused = true)]
async fn defect16_an_error_is_never_an_answer_and_by_default_it_ends_the_work() {
    assert_eq!(built(Options::ordered()).on_failure(), FailurePolicy::Fail);
    let call = |n: &u32| {
        let n = *n;
        // The default value of the answer is what a poisoned join would find.
        async move { if n == 2 { Err("lost") } else { Ok(n) } }
    };
    let results: Vec<_> = stream::iter([1, 2, 3]).async_wait(built(Options::ordered()), call).collect().await;
    assert_eq!(results.len(), 2);
    assert_eq!(results[0], Ok(1));
    let failed = results[1].as_ref().unwrap_err();
    assert_eq!((failed.input, &failed.reason), (2, &FailureReason::Error("lost")));
    for policy in [FailurePolicy::Keep, FailurePolicy::DeadLetter, FailurePolicy::Drop] {
        let options = built(Options::ordered().on_failure(policy));
        let results: Vec<_> = stream::iter([1, 2, 3]).async_wait(options, call).collect().await;
        let answers: Vec<u32> = results.iter().flatten().copied().collect();
        assert_eq!(answers, [1, 3], "{policy:?}: nothing stands for the answer that is missing");
        let failures = results.len() - answers.len();
        assert_eq!(failures, usize::from(policy != FailurePolicy::Drop));
    }
}
