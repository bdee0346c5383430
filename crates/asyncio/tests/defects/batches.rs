//! Batches at a low rate, and with a bad item.

use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, BatchCalls, BatchOptions, FailurePolicy, FailureReason, Options,
};
use futures::{StreamExt, stream};
use tokio::time::{Instant, interval, sleep};

use crate::{built, ms};

#[tokio::test(start_paused = true)]
async fn defect21_at_one_record_a_second_none_waits_longer_than_the_linger() {
    let calls = BatchCalls::new(BatchOptions::new(100, ms(20)).unwrap(), |inputs: Vec<Instant>| async move {
        sleep(ms(1)).await;
        inputs.into_iter().map(Ok::<_, ()>).collect()
    });
    let ticks =
        stream::unfold(interval(ms(1000)), |mut ticks| async move { Some((ticks.tick().await, ticks)) });
    let operator = AsyncWaitOperator::new(built(Options::ordered()));
    let mut results = ticks.take(10).boxed().async_wait_on(operator, calls);
    let mut latencies = Vec::new();
    while let Some(result) = results.next().await {
        latencies.push(result.unwrap().elapsed());
    }
    assert_eq!(latencies.len(), 10);
    let (last, others) = latencies.split_last().unwrap();
    assert!(others.iter().all(|&latency| latency == ms(21)), "20 in the batch, 1 in the call: {latencies:?}");
    assert!(*last <= ms(21));
}

#[tokio::test(start_paused = true)]
async fn defect22_a_bad_item_fails_alone() {
    let calls = BatchCalls::new(BatchOptions::new(4, None).unwrap(), |inputs: Vec<u32>| async move {
        inputs.into_iter().map(|n| if n == 2 { Err("bad") } else { Ok(n) }).collect()
    });
    let options = built(Options::ordered().on_failure(FailurePolicy::Keep));
    let results = stream::iter(0..8).async_wait_on(AsyncWaitOperator::new(options), calls);
    let results: Vec<_> = results.map(|result| result.map_err(|failed| failed.reason)).collect().await;
    let mut expected: Vec<_> = (0..8).map(Ok).collect();
    expected[2] = Err(FailureReason::Error("bad"));
    assert_eq!(results, expected);
}
