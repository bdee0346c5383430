//! `buffered` and `buffer_unordered` of futures, as they are usually written.

use std::future::{Future, ready};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::sync::oneshot;

use crate::Failure;
use crate::case::{Case, Order, Peer};
use crate::meter::{Meter, Stamps};
use crate::outside::Outside;
use crate::work::Work;

/// What no record has: a call that came to nothing spoils the sum.
const LOST: u64 = u64::MAX;

/// Measures a case.
pub(crate) async fn run(case: &Case, stamps: Arc<Stamps>, meter: &mut Meter) -> Result<(), Failure> {
    match case.work.clone() {
        Work::Ready => {
            let call = move |value| {
                stamps.make(value);
                ready(value)
            };
            drive(case, call, meter).await
        }
        Work::External => outside(case, Outside::thread(Arc::clone(&stamps)), stamps, meter).await,
        Work::Wheel(delays) => {
            outside(case, Outside::wheel(delays, Arc::clone(&stamps)), stamps, meter).await
        }
        Work::Sleep(mut delays) => {
            let call = move |value| {
                stamps.make(value);
                let (stamps, delay) = (Arc::clone(&stamps), delays.next());
                async move {
                    tokio::time::sleep(delay).await;
                    stamps.complete(value);
                    value
                }
            };
            drive(case, call, meter).await
        }
    }
}

async fn outside(
    case: &Case,
    mut outside: Outside<oneshot::Sender<u64>>,
    stamps: Arc<Stamps>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let call = move |value| {
        stamps.make(value);
        let (sender, answer) = oneshot::channel();
        outside.begin(value, sender);
        async move { answer.await.unwrap_or(LOST) }
    };
    drive(case, call, meter).await
}

/// Each kind of future stays of its own type: nothing is boxed.
async fn drive<F, Fut>(case: &Case, mut call: F, meter: &mut Meter) -> Result<(), Failure>
where
    F: FnMut(u64) -> Fut,
    Fut: Future<Output = u64> + Send + 'static,
{
    let inputs = stream::iter(0..case.records);
    let ordered = match case.order {
        Order::Ordered => true,
        Order::Unordered => false,
        Order::Keyed => return Err("futures has no keyed order".into()),
    };
    match case.peer {
        Peer::Map => sink(inputs.map(black_box), meter).await,
        Peer::FuturesSpawned => {
            let calls = inputs.map(|value| {
                let task = tokio::spawn(call(value));
                async move { task.await.unwrap_or(LOST) }
            });
            wait(calls, ordered, case.capacity, meter).await;
        }
        Peer::FuturesWithTimeout => {
            let calls = inputs.map(|value| {
                let call = tokio::time::timeout(Duration::from_secs(30), call(value));
                async move { call.await.unwrap_or(LOST) }
            });
            wait(calls, ordered, case.capacity, meter).await;
        }
        _ => wait(inputs.map(call), ordered, case.capacity, meter).await,
    }
    Ok(())
}

async fn wait<S>(calls: S, ordered: bool, capacity: usize, meter: &mut Meter)
where
    S: Stream,
    S::Item: Future<Output = u64>,
{
    if ordered {
        sink(calls.buffered(capacity), meter).await;
    } else {
        sink(calls.buffer_unordered(capacity), meter).await;
    }
}

async fn sink(results: impl Stream<Item = u64>, meter: &mut Meter) {
    let mut results = std::pin::pin!(results);
    while let Some(value) = results.next().await {
        meter.see(value);
    }
}
