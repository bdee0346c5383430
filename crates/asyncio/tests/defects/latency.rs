//! Slow consumers, and the time between an answer and its result.

use std::time::Duration;

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, CallbackCalls, FunctionContext, Options, ResultFuture, RetryErrors,
    callback,
};
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use crate::{ORDERS, built, ms};

#[tokio::test(start_paused = true)]
async fn defect19_a_slow_consumer_of_a_fast_service_sees_no_timeouts() {
    for order in ORDERS {
        for capacity in [1, 10, 1000] {
            let options = built(Options::with_order(order).capacity(capacity).timeout(ms(5)));
            let key = |n: &u32| Some(*n);
            let mut results =
                stream::iter(0..100_u32).async_wait_with(options, key, RetryErrors, |n: &u32| {
                    let n = *n;
                    async move {
                        sleep(ms(2)).await;
                        Ok::<_, ()>(n)
                    }
                });
            let mut seen = 0;
            while let Some(result) = results.next().await {
                assert!(result.is_ok(), "{order:?} {capacity}: {result:?}");
                seen += 1;
                sleep(ms(100)).await;
            }
            assert_eq!(seen, 100);
            assert_eq!(results.operator().figures(results.now()).timeouts, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn defect24_a_result_is_there_in_the_moment_of_its_answer() {
    for order in ORDERS {
        let options = built(Options::with_order(order).timeout(ms(1000)));
        let key = |n: &u64| Some(*n);
        let source = stream::iter([3, 50, 51, 500]).chain(stream::pending());
        let begun = Instant::now();
        let mut results = source.async_wait_with(options, key, RetryErrors, |millis: &u64| {
            let millis = *millis;
            async move {
                sleep(ms(millis)).await;
                Ok::<_, ()>(ms(millis))
            }
        });
        for _ in 0..4 {
            let answered_at = results.next().await.unwrap().unwrap();
            assert_eq!(begun.elapsed(), answered_at, "{order:?}");
        }
    }
}

#[tokio::test]
async fn defect24_half_of_the_results_are_there_within_a_millisecond_of_their_answers() {
    // Each answer is the time at which another thread gives it, by the real clock.
    let (ask, asked) = std::sync::mpsc::channel::<ResultFuture<Instant, ()>>();
    let service = std::thread::spawn(move || {
        for result in asked {
            result.complete(Instant::now());
        }
    });
    let options = built(Options::ordered().capacity(1));
    let function = callback(move |_: &u32, result: ResultFuture<Instant, ()>| ask.send(result).unwrap());
    let calls = CallbackCalls::open(function, &FunctionContext::of(&options)).unwrap();
    let mut results = stream::iter(0..401_u32).async_wait_on(AsyncWaitOperator::new(options), calls);
    let mut late: Vec<Duration> = Vec::new();
    while let Some(result) = results.next().await {
        late.push(result.unwrap().elapsed());
    }
    drop(results);
    service.join().unwrap();
    late.sort_unstable();
    assert_eq!(late.len(), 401);
    assert!(late[200] < ms(1), "half of them came later than {:?}", late[200]);
}
