//! What a record costs that is ready at once, timeout armed: `cargo run --release -p asyncio --example cost`.
//!
//! One core, capacity 1,000; nanoseconds a record for the bare core, the stream, and futures' own streams beside it.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use asyncio::{AsyncWaitExt, AsyncWaitOperator, Effect, Options, OptionsError, Order, RetryErrors};
use futures::{StreamExt, stream};
use runtime_core::time::{Clock, TokioClock};
use runtime_core::{Record, StreamElement, Tick};

const RECORDS: u64 = 2_000_000;
const CAPACITY: usize = 1000;

/// More keys than places: each record is alone with its key.
fn key(n: &u64) -> Option<u64> {
    Some(n % 10_007)
}

fn options(order: Order) -> Result<Options, OptionsError> {
    Options::with_order(order).capacity(CAPACITY).timeout(Duration::from_secs(30)).build()
}

/// Fills the operator, lets it run dry, and so on; `run` records at a time.
fn core(order: Order, run: u64) -> Result<(), OptionsError> {
    let mut operator =
        AsyncWaitOperator::<u64, u64, Infallible, _, _>::with(options(order)?, key, RetryErrors);
    let mut next = 0;
    while next < RECORDS {
        let now = Tick::from_nanos(next);
        for _ in 0..run {
            let taken = operator.push(StreamElement::Record(Record::new(next)), now);
            debug_assert!(taken.is_ok());
            next += 1;
            while let Some(effect) = operator.next_effect() {
                if let Effect::Start { entry, attempt, .. } = effect {
                    let answer = operator.input(entry).map_or(0, |record| record.value + 1);
                    operator.complete(entry, attempt, Ok(answer), now);
                }
            }
        }
        operator.advance(now);
        while let Some(output) = operator.next_output() {
            black_box(output);
        }
    }
    Ok(())
}

async fn stream(order: Order) -> Result<(), OptionsError> {
    let call = |n: &u64| {
        let n = *n;
        async move { Ok::<_, Infallible>(n + 1) }
    };
    let results = stream::iter(0..RECORDS).async_wait_with(options(order)?, key, RetryErrors, call);
    let mut results = std::pin::pin!(results);
    while let Some(result) = results.next().await {
        black_box(result.is_ok());
    }
    Ok(())
}

fn report(name: &str, since: Tick, now: Tick) {
    println!("{name:<24} {:6.1} ns a record", now.since(since).as_nanos() as f64 / RECORDS as f64);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), OptionsError> {
    let clock = TokioClock::start();
    for order in [Order::Ordered, Order::Unordered, Order::Keyed] {
        for run in [1, 64] {
            let since = clock.now();
            core(order, run)?;
            report(&format!("core {order:?} run={run}"), since, clock.now());
        }
        let since = clock.now();
        stream(order).await?;
        report(&format!("stream {order:?}"), since, clock.now());
    }
    let call = |n: u64| async move { n + 1 };
    let since = clock.now();
    let mut answers = std::pin::pin!(stream::iter(0..RECORDS).map(call).buffered(CAPACITY));
    while let Some(answer) = answers.next().await {
        black_box(answer);
    }
    report("futures buffered", since, clock.now());
    Ok(())
}
