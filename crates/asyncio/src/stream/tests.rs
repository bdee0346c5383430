//! The stream on a paused clock.

mod batches;
mod callbacks;
mod driven;
mod functions;
mod policies;
mod sharing;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::channel::mpsc;
use futures::{SinkExt, StreamExt, stream};
use tokio::time::{Instant, advance, sleep};

use crate::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Answers each number after that many milliseconds.
fn after_itself(millis: &u64) -> impl Future<Output = Result<u64, &'static str>> + Send + use<> {
    let millis = *millis;
    async move {
        sleep(ms(millis)).await;
        Ok(millis)
    }
}

fn built(options: OptionsBuilder) -> Options {
    options.build().unwrap()
}

/// Counts what is alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn in_order_results_come_as_their_inputs_and_calls_overlap() {
    let begun = Instant::now();
    let results = stream::iter([30, 10, 20]).async_wait(built(Options::ordered()), after_itself);
    assert_eq!(results.collect::<Vec<_>>().await, [Ok(30), Ok(10), Ok(20)]);
    assert_eq!(begun.elapsed(), ms(30));
}

#[tokio::test(start_paused = true)]
async fn without_order_results_come_as_they_are_ready() {
    let results = stream::iter([30, 10, 20]).async_wait(built(Options::unordered()), after_itself);
    assert_eq!(results.collect::<Vec<_>>().await, [Ok(10), Ok(20), Ok(30)]);
}

#[tokio::test(start_paused = true)]
async fn in_keyed_order_calls_of_one_key_follow_each_other() {
    let begun = Instant::now();
    let parity = |millis: &u64| Some(millis % 2);
    let options = built(Options::keyed());
    let results = stream::iter([30, 10, 21]).async_wait_with(options, parity, RetryErrors, after_itself);
    assert_eq!(results.collect::<Vec<_>>().await, [Ok(21), Ok(30), Ok(10)]);
    assert_eq!(begun.elapsed(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_than_there_are_places() {
    let alive = Arc::new(AtomicUsize::new(0));
    let most = AtomicUsize::new(0);
    let call = |millis: &u64| {
        let (guard, millis) = (Alive::new(&alive), *millis);
        most.fetch_max(alive.load(Ordering::Relaxed), Ordering::Relaxed);
        async move {
            sleep(ms(millis)).await;
            drop(guard);
            Ok::<_, ()>(millis)
        }
    };
    let results = stream::iter(1..=20).async_wait(built(Options::unordered().capacity(3)), call);
    assert_eq!(results.count().await, 20);
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_make_progress_while_the_consumer_does_something_else() {
    let done = Arc::new(AtomicUsize::new(0));
    let call = |millis: &u64| {
        let (done, millis) = (Arc::clone(&done), *millis);
        async move {
            sleep(ms(millis)).await;
            done.fetch_add(1, Ordering::Relaxed);
            Ok::<_, ()>(millis)
        }
    };
    let mut results = stream::iter([1, 20, 30]).async_wait(built(Options::ordered()), call);
    assert_eq!(results.next().await, Some(Ok(1)));
    sleep(ms(100)).await;
    assert_eq!(done.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_does_not_make_a_timely_answer_late() {
    let options = built(Options::ordered().timeout(ms(50)));
    let mut results = stream::iter([1, 20]).async_wait(options, after_itself);
    assert_eq!(results.next().await, Some(Ok(1)));
    sleep(ms(1000)).await;
    assert_eq!(results.next().await, Some(Ok(20)));
    assert_eq!(results.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_its_budget_is_dropped_and_its_input_comes_back() {
    let alive = Arc::new(AtomicUsize::new(0));
    let call = |millis: &u64| {
        let (guard, millis) = (Alive::new(&alive), *millis);
        async move {
            sleep(ms(millis)).await;
            drop(guard);
            Ok::<_, String>(millis)
        }
    };
    let begun = Instant::now();
    let options = built(Options::ordered().timeout(ms(50)).on_failure(FailurePolicy::Keep));
    let mut results = stream::iter([1_000_000, 7]).async_wait(options, call);
    let failed = results.next().await.unwrap().unwrap_err();
    assert_eq!(begun.elapsed(), ms(50));
    assert_eq!((failed.input, &failed.reason), (1_000_000, &FailureReason::Timeout));
    assert_eq!(failed.to_string(), "no answer for 1000000 after 1 attempt(s): the async call timed out");
    assert_eq!(results.next().await, Some(Ok(7)));
    tokio::task::yield_now().await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_made_again_after_the_pause() {
    let begun = Instant::now();
    let retry = Retry::FixedDelay { max_retries: 2, delay: ms(10) };
    let options = built(Options::ordered().timeout(ms(1000)).retry(retry));
    let mut calls = 0;
    let mut results = stream::iter([5]).chain(stream::pending()).async_wait(options, |_: &u32| {
        calls += 1;
        let answer = if calls < 3 { Err("no") } else { Ok(calls) };
        async move { answer }
    });
    assert_eq!(results.next().await, Some(Ok(3)));
    assert_eq!(begun.elapsed(), ms(20));
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_source_a_pausing_call_is_made_once_more_at_once() {
    let begun = Instant::now();
    let retry = Retry::FixedDelay { max_retries: 5, delay: ms(10_000) };
    let options = built(Options::ordered().timeout(ms(100_000)).retry(retry));
    let mut calls = 0;
    let results = stream::iter([5]).async_wait(options, |_: &u32| {
        calls += 1;
        async { Err::<(), _>("no") }
    });
    let failures: Vec<_> = results.map(Result::unwrap_err).collect().await;
    assert_eq!(failures[0].reason, FailureReason::Error("no"));
    assert_eq!((calls, begun.elapsed()), (2, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_drops_its_calls() {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut results = stream::iter(0..5_u32).async_wait(built(Options::ordered()), |_| {
        let guard = Alive::new(&alive);
        async move {
            futures::future::pending::<()>().await;
            drop(guard);
            Ok::<_, ()>(())
        }
    });
    assert!(futures::poll!(results.next()).is_pending());
    assert_eq!(alive.load(Ordering::Relaxed), 5);
    drop(results);
    tokio::task::yield_now().await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_fails_its_record_alone() {
    let options = built(Options::ordered().on_failure(FailurePolicy::Keep));
    let results = stream::iter([1, 2, 3]).async_wait(options, |n: &u32| {
        let n = *n;
        async move {
            sleep(ms(1)).await;
            assert_ne!(n, 2, "this call is meant to panic");
            Ok::<_, ()>(n)
        }
    });
    let results: Vec<_> = results.map(|result| result.map_err(|failed| failed.reason)).collect().await;
    let [Ok(1), Err(FailureReason::Panicked(text)), Ok(3)] = &results[..] else { panic!("{results:?}") };
    assert!(text.contains("this call is meant to panic"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_ready_at_once_becomes_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut results = stream::iter(0..1000_u32).async_wait(built(Options::ordered().capacity(10)), |n| {
        let n = *n;
        async move { Ok::<_, ()>(n) }
    });
    let mut expected = 0;
    while let Some(result) = results.next().await {
        assert_eq!(result, Ok(expected));
        assert_eq!(tasks(), before);
        expected += 1;
    }
    assert_eq!(expected, 1000);
}

#[tokio::test(start_paused = true)]
async fn the_consumer_is_woken_by_source_completion_and_timer() {
    let (mut source, inputs) = mpsc::channel(1);
    let options = built(Options::ordered().timeout(ms(100)).on_failure(FailurePolicy::Keep));
    let mut results = inputs.async_wait(options, after_itself);
    let consumer = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(result) = results.next().await {
            seen.push(result.map_err(|failed| failed.reason));
        }
        assert_eq!(results.next().await, None, "the end stays the end");
        seen
    });
    for millis in [5, 500, 6] {
        advance(ms(10)).await;
        source.send(millis).await.unwrap();
    }
    drop(source);
    assert_eq!(consumer.await.unwrap(), [Ok(5), Err(FailureReason::Timeout), Ok(6)]);
}

#[tokio::test]
async fn results_cross_the_threads_of_a_runtime() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let sum = runtime.spawn(async {
        let results = stream::iter(0..2000_u64).async_wait(built(Options::unordered().capacity(64)), |n| {
            let n = *n;
            async move {
                tokio::task::yield_now().await;
                Ok::<_, ()>(n)
            }
        });
        results.map(Result::unwrap).fold(0, |sum, n| async move { sum + n }).await
    });
    assert_eq!(sum.await.unwrap(), 1999 * 2000 / 2);
    runtime.shutdown_background();
}
