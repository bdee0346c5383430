//! Equal records in flight that share a call.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::channel::mpsc;
use futures::{SinkExt, StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::{built, ms};
use crate::*;

/// Equal in their tens.
fn tens(n: &u32) -> Option<u32> {
    (*n < 90).then_some(n / 10)
}

fn sharing(options: OptionsBuilder) -> AsyncWaitOperator<u32, u32, String> {
    AsyncWaitOperator::new(built(options)).coalescing_by(tens)
}

#[tokio::test(start_paused = true)]
async fn equal_records_in_flight_get_copies_of_one_answer() {
    let calls = AtomicUsize::new(0);
    let call = FutureCalls::new(|n: &u32| {
        calls.fetch_add(1, Ordering::Relaxed);
        let n = *n;
        async move {
            sleep(ms(5)).await;
            Ok::<_, String>(n)
        }
    });
    let mut results = stream::iter([11, 12, 21, 13, 95, 96]).async_wait_on(sharing(Options::ordered()), call);
    let mut answers = Vec::new();
    while let Some(result) = results.next().await {
        answers.push(result.unwrap());
    }
    assert_eq!(answers, [11, 11, 21, 11, 95, 96]);
    let figures = results.operator().figures(results.now());
    assert_eq!((figures.calls, figures.coalesced, figures.records_out), (4, 2, 6));
    drop(results);
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_shared_like_an_answer_and_a_record_that_comes_later_asks_anew() {
    let call = FutureCalls::new(|n: &u32| {
        let n = *n;
        async move {
            sleep(ms(5)).await;
            if n == 11 { Err(format!("no {n}")) } else { Ok(n) }
        }
    });
    let (mut source, inputs) = mpsc::channel(9);
    let options = Options::ordered().on_failure(FailurePolicy::Keep);
    let mut results = inputs.async_wait_on(sharing(options), call);
    source.send(11).await.unwrap();
    source.send(12).await.unwrap();
    for input in [11, 12] {
        let failed = results.next().await.unwrap().unwrap_err();
        assert_eq!((failed.input, failed.reason), (input, FailureReason::Error("no 11".into())));
        assert_eq!(failed.attempts.count, 1);
    }
    source.send(13).await.unwrap();
    assert_eq!(results.next().await, Some(Ok(13)));
}

#[tokio::test(start_paused = true)]
async fn a_leaders_timeout_hands_the_call_over_to_who_followed_it() {
    let call = FutureCalls::new(|n: &u32| {
        let n = *n;
        async move {
            sleep(ms(if n == 11 { 1_000_000 } else { 3 })).await;
            Ok::<_, String>(n)
        }
    });
    let (mut source, inputs) = mpsc::channel(9);
    let begun = Instant::now();
    let options = Options::ordered().timeout(ms(20)).on_failure(FailurePolicy::Keep);
    let mut results = inputs.async_wait_on(sharing(options), call);
    source.send(11).await.unwrap();
    assert!(futures::poll!(results.next()).is_pending());
    sleep(ms(10)).await;
    source.send(12).await.unwrap();
    source.send(13).await.unwrap();
    assert_eq!(results.next().await.unwrap().unwrap_err().reason, FailureReason::Timeout);
    assert_eq!(begun.elapsed(), ms(20));
    assert_eq!(results.next().await, Some(Ok(12)), "the first of them asks for both");
    assert_eq!(results.next().await, Some(Ok(12)));
    assert_eq!(begun.elapsed(), ms(23));
    assert_eq!(results.operator().figures(results.now()).calls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_follower_has_a_budget_of_its_own() {
    let call = FutureCalls::new(|n: &u32| {
        let n = *n;
        async move {
            sleep(ms(1_000_000)).await;
            Ok::<_, String>(n)
        }
    });
    let (mut source, inputs) = mpsc::channel(9);
    let begun = Instant::now();
    let options = Options::unordered().timeout(ms(20)).on_failure(FailurePolicy::Keep);
    let mut results = inputs.async_wait_on(sharing(options), call);
    source.send(11).await.unwrap();
    assert!(futures::poll!(results.next()).is_pending());
    sleep(ms(10)).await;
    source.send(12).await.unwrap();
    let mut ends = Vec::new();
    for _ in 0..2 {
        let failed = results.next().await.unwrap().unwrap_err();
        ends.push((failed.input, begun.elapsed()));
    }
    assert_eq!(ends, [(11, ms(20)), (12, ms(30))]);
}
