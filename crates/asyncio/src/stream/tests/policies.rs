//! What becomes of failures, retry budgets, restored streams, and the smallest operator.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use runtime_core::Tick;
use tokio::time::sleep;

use super::{after_itself, built, ms};
use crate::*;

/// Fails for multiples of three, after as many milliseconds as the number says.
fn call(n: &u32) -> impl Future<Output = Result<u32, &'static str>> + Send + use<> {
    let n = *n;
    async move {
        sleep(ms(n.into())).await;
        if n.is_multiple_of(3) { Err("three") } else { Ok(n) }
    }
}

async fn told(options: OptionsBuilder) -> Vec<String> {
    let results = stream::iter(1..=7_u32).async_wait(built(options), call);
    let text = |result: AsyncWaitResult<u32, u32, &str>| match result {
        Ok(n) => n.to_string(),
        Err(failed) => format!("{:?} {}: {}", failed.policy, failed.input, failed.reason),
    };
    results.map(text).collect().await
}

#[tokio::test(start_paused = true)]
async fn under_fail_the_first_failure_is_the_last_item() {
    assert_eq!(told(Options::unordered()).await, ["1", "2", "Fail 3: three"]);
    assert_eq!(told(Options::ordered()).await, ["1", "2", "Fail 3: three"]);
}

#[tokio::test(start_paused = true)]
async fn under_fail_a_failure_does_not_wait_for_those_before_it() {
    let results = stream::iter([1_000_000_u64, 5]).async_wait(built(Options::ordered()), |n| {
        let n = *n;
        async move {
            sleep(ms(n)).await;
            if n == 5 { Err("five") } else { Ok(n) }
        }
    });
    let begun = tokio::time::Instant::now();
    let results: Vec<_> = results.collect().await;
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].as_ref().unwrap_err().input, 5);
    assert_eq!(begun.elapsed(), ms(5));
}

#[tokio::test(start_paused = true)]
async fn kept_and_dead_letters_stand_in_their_inputs_places_and_dropped_ones_nowhere() {
    for policy in [FailurePolicy::Keep, FailurePolicy::DeadLetter] {
        let failed = |n| format!("{policy:?} {n}: three");
        let expected = ["1".into(), "2".into(), failed(3), "4".into(), "5".into(), failed(6), "7".into()];
        assert_eq!(told(Options::ordered().on_failure(policy)).await, expected);
    }
    assert_eq!(told(Options::ordered().on_failure(FailurePolicy::Drop)).await, ["1", "2", "4", "5", "7"]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_differ_by_the_kind_of_failure() {
    struct ByKind;
    impl RetryPredicate<u32, &'static str> for ByKind {
        fn judge(&self, _: &Result<u32, CallError<&'static str>>) -> Verdict {
            Verdict::Final
        }

        fn policy(&self, reason: &FailureReason<&'static str>, options: FailurePolicy) -> FailurePolicy {
            match reason {
                FailureReason::Error("lost") => FailurePolicy::Drop,
                FailureReason::Timeout => FailurePolicy::DeadLetter,
                FailureReason::Error("undecided") => panic!("no policy"),
                _ => options,
            }
        }
    }
    let call = |n: &u32| {
        let n = *n;
        async move {
            match n {
                1 => Err("lost"),
                2 => std::future::pending().await,
                3 => Err("other"),
                4 => Err("undecided"),
                _ => Ok(n),
            }
        }
    };
    let options = built(Options::ordered().timeout(ms(10)).on_failure(FailurePolicy::Keep));
    let results = stream::iter([1, 2, 3, 0]).async_wait_with(options.clone(), NoKey, ByKind, call);
    let policies: Vec<_> = results.map(|result| result.map_err(|failed| failed.policy)).collect().await;
    assert_eq!(policies, [Err(FailurePolicy::DeadLetter), Err(FailurePolicy::Keep), Ok(0)]);
    let results = stream::iter([4, 0]).async_wait_with(options, NoKey, ByKind, call);
    let policies: Vec<_> = results.map(|result| result.map_err(|failed| failed.policy)).collect().await;
    assert_eq!(policies, [Err(FailurePolicy::Fail)], "a policy that panics ends the work");
}

#[tokio::test(start_paused = true)]
async fn e20_a_predicate_that_panics_ends_the_record_at_once() {
    let retry = Retry::FixedDelay { max_retries: 3, delay: ms(10) };
    for order in [Order::Ordered, Order::Unordered] {
        let options = built(Options::with_order(order).timeout(ms(1_000_000)).retry(retry));
        let predicate = |_: &Result<u32, CallError<&str>>| -> Verdict { panic!("no opinion") };
        let begun = tokio::time::Instant::now();
        let source = stream::iter([3_u32]).chain(stream::pending());
        let mut results = source.async_wait_with(options, NoKey, predicate, call);
        let failed = results.next().await.unwrap().unwrap_err();
        assert_eq!(failed.reason, FailureReason::PredicatePanicked("no opinion".into()));
        assert_eq!(begun.elapsed(), ms(3));
        assert_eq!(results.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_service_is_down_retries_stay_within_their_budget() {
    let calls = AtomicUsize::new(0);
    let retry = Retry::FixedDelay { max_retries: 5, delay: ms(1) };
    let options = Options::unordered()
        .capacity(10)
        .timeout(ms(1_000_000))
        .retry(retry)
        .retry_budget(RetryBudget { per_record: 0.1, reserve: 5 })
        .on_failure(FailurePolicy::Keep);
    let source = stream::iter(0..1000_u32).chain(stream::pending());
    let mut results = source.async_wait(built(options), |_: &u32| {
        calls.fetch_add(1, Ordering::Relaxed);
        async { Err::<(), _>("down") }
    });
    for _ in 0..1000 {
        assert!(results.next().await.unwrap().is_err());
    }
    let figures = results.operator().figures(results.now());
    assert!(figures.retries <= 105, "5 and one for ten records: {}", figures.retries);
    assert!(figures.retries >= 95, "they are made: {}", figures.retries);
    assert!(figures.retries_refused >= 895, "{}", figures.retries_refused);
    drop(results);
    assert!(calls.load(Ordering::Relaxed) <= 1105);
}

fn snapshot_of(values: impl IntoIterator<Item = u64>) -> Snapshot<u64> {
    let mut operator = AsyncWaitOperator::<u64, u64, &str>::new(built(Options::ordered().capacity(1000)));
    for value in values {
        operator
            .push(runtime_core::StreamElement::Record(runtime_core::Record::new(value)), Tick::ZERO)
            .unwrap();
    }
    operator.snapshot().unwrap().cloned()
}

#[tokio::test(start_paused = true)]
async fn i02_i04_a_stream_restores_more_elements_than_it_has_places() {
    for (order, capacity) in
        [(Order::Ordered, 10), (Order::Ordered, 9), (Order::Unordered, 1), (Order::Keyed, 3)]
    {
        let options = built(Options::with_order(order).capacity(capacity));
        let mut operator = AsyncWaitOperator::with(options, |n: &u64| Some(n % 2), RetryErrors);
        operator.restore(snapshot_of(0..10), Tick::ZERO).unwrap();
        let results = stream::iter([10, 11]).async_wait_on(operator, FutureCalls::new(after_itself));
        let mut results: Vec<u64> = results.map(Result::unwrap).collect().await;
        if order != Order::Ordered {
            results.sort_unstable();
        }
        assert_eq!(results, (0..12).collect::<Vec<_>>(), "{order:?} {capacity}");
    }
}

#[tokio::test(start_paused = true)]
async fn i02_restored_elements_end_even_when_no_input_comes() {
    let mut operator = AsyncWaitOperator::new(built(Options::ordered().capacity(2)));
    operator.restore(snapshot_of(1..=5), Tick::ZERO).unwrap();
    let results = stream::empty().async_wait_on(operator, FutureCalls::new(after_itself));
    assert_eq!(results.map(Result::unwrap).collect::<Vec<u64>>().await, [1, 2, 3, 4, 5]);
    // Nor when some could still come.
    let mut operator = AsyncWaitOperator::new(built(Options::ordered().capacity(2)));
    operator.restore(snapshot_of(1..=5), Tick::ZERO).unwrap();
    let results = stream::pending().async_wait_on(operator, FutureCalls::new(after_itself));
    assert_eq!(results.take(5).map(Result::unwrap).collect::<Vec<u64>>().await, [1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_restored_record_is_asked_about_with_the_same_projection_and_key() {
    #[derive(Debug, Clone)]
    struct Row {
        id: u32,
        _rest: &'static str,
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let calls = || {
        let asked = Arc::clone(&asked);
        // The call is about the row's number alone.
        FutureCalls::with_context(move |row: &Row, context: CallContext| {
            asked.lock().unwrap().push((row.id, context.idempotency_key()));
            std::future::pending::<Result<u32, &str>>()
        })
    };
    let rows = [Row { id: 7, _rest: "x" }, Row { id: 8, _rest: "y" }];
    let operator = AsyncWaitOperator::new(built(Options::ordered().idempotency_scope(3)));
    let mut before = stream::iter(rows).async_wait_on(operator, calls());
    assert!(futures::poll!(before.next()).is_pending());
    let snapshot = before.operator().snapshot().unwrap().cloned();
    drop(before);
    let first = std::mem::take(&mut *asked.lock().unwrap());
    let mut operator = AsyncWaitOperator::new(built(Options::ordered().idempotency_scope(3)));
    operator.restore(snapshot, Tick::ZERO).unwrap();
    let mut after = stream::pending().async_wait_on(operator, calls());
    assert!(futures::poll!(after.next()).is_pending());
    assert_eq!(first.len(), 2);
    assert_eq!(*asked.lock().unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn with_one_place_a_stream_is_serial() {
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        let begun = tokio::time::Instant::now();
        let options = built(Options::with_order(order).capacity(1));
        let key = |n: &u64| Some(n % 2);
        let results = stream::iter([3, 1, 2]).async_wait_with(options, key, RetryErrors, after_itself);
        assert_eq!(results.collect::<Vec<_>>().await, [Ok(3), Ok(1), Ok(2)]);
        assert_eq!(begun.elapsed(), ms(6));
    }
}

#[tokio::test(start_paused = true)]
async fn h06_a_failure_among_pending_records_ends_the_stream_without_waiting_for_them() {
    let results = stream::iter([1_u32, 3, 4]).async_wait(built(Options::ordered()), |n| {
        let n = *n;
        async move { if n == 3 { Err("three") } else { std::future::pending::<Result<u32, _>>().await } }
    });
    let ended = tokio::time::timeout(ms(10), results.collect::<Vec<_>>()).await.unwrap();
    assert_eq!(ended.len(), 1);
}
