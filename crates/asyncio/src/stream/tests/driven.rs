//! Calls that are woken from all sides, by several threads.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::runtime::{Builder, Runtime};

use super::{built, ms};
use crate::*;

const RECORDS: u64 = 3_000;

fn of_threads(threads: usize) -> Runtime {
    let mut builder = if threads == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    builder.worker_threads(threads.max(1)).enable_time().build().unwrap()
}

/// Rests once in one of several ways, or not at all.
async fn woken(n: u64) -> Result<u64, &'static str> {
    match n % 5 {
        0 => tokio::task::yield_now().await,
        1 => tokio::spawn(async {}).await.unwrap(),
        2 => tokio::task::spawn_blocking(|| ()).await.unwrap(),
        3 => {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            tokio::spawn(async {
                tokio::task::yield_now().await;
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }
        _ => {}
    }
    Ok(n)
}

async fn results(order: Order, capacity: usize) -> Vec<u64> {
    let options = built(Options::with_order(order).capacity(capacity).timeout(Duration::from_secs(100)));
    let key = |n: &u64| Some(n % 7);
    let results = stream::iter(0..RECORDS).async_wait_with(options, key, RetryErrors, |n| woken(*n));
    results.map(Result::unwrap).collect().await
}

#[test]
fn no_wake_up_is_lost_whatever_wakes_and_on_however_many_threads() {
    for threads in [0, 1, 4] {
        for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
            for capacity in [1, 3, 100] {
                for consumer_is_task in [false, true] {
                    let runtime = of_threads(threads);
                    let results = results(order, capacity);
                    let mut results = if consumer_is_task {
                        runtime.block_on(runtime.spawn(results)).unwrap()
                    } else {
                        runtime.block_on(results)
                    };
                    if order != Order::Ordered {
                        results.sort_unstable();
                    }
                    assert!(results.into_iter().eq(0..RECORDS), "{threads} threads, {order:?}, {capacity}");
                }
            }
        }
    }
}

/// What a call holds that cannot be dropped quietly.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("this call is meant to panic when it is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_panics_when_it_is_dropped_holds_up_no_other() {
    let options = built(Options::ordered().timeout(ms(50)).on_failure(FailurePolicy::Keep));
    let results = stream::iter([1, 2, 3]).async_wait(options, |n: &u32| {
        let n = *n;
        async move {
            let _guard = (n == 2).then(|| PanicsWhenDropped);
            tokio::time::sleep(ms(if n == 2 { 1_000 } else { 10 })).await;
            Ok::<_, ()>(n)
        }
    });
    let results: Vec<_> = results.map(|result| result.map_err(|failed| failed.reason)).collect().await;
    assert_eq!(results, [Ok(1), Err(FailureReason::Timeout), Ok(3)]);
}

#[tokio::test(start_paused = true)]
async fn however_many_calls_wait_they_are_one_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let mut results = stream::iter([10; 50]).async_wait(built(Options::ordered()), super::after_itself);
    assert!(futures::poll!(results.next()).is_pending());
    assert_eq!(tasks(), before + 1);
    assert_eq!(results.by_ref().take(49).count().await, 49);
    drop(results);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), before, "it ends with its stream");
}

#[tokio::test]
async fn a_call_that_wakes_itself_all_the_time_lets_others_on_its_thread_run() {
    let done = Arc::new(AtomicBool::new(false));
    let call = |_: &u32| {
        let done = Arc::clone(&done);
        poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            if done.load(Ordering::Relaxed) { Poll::Ready(Ok::<_, ()>(7)) } else { Poll::Pending }
        })
    };
    let results = stream::iter([1]).async_wait(built(Options::ordered()), call);
    // Without a budget, nothing but the stream itself ends a look at its calls.
    let results = tokio::task::unconstrained(results.collect::<Vec<_>>());
    let (_, results) = futures::join!(tokio::spawn(set(Arc::clone(&done))), results);
    assert_eq!(results, [Ok(7)]);
}

async fn set(done: Arc<AtomicBool>) {
    done.store(true, Ordering::Relaxed);
}
