//! Ours, as its users would write it. The only file that knows the crate.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use asyncio::measured::ElementQueue;
use asyncio::{
    AsyncWaitExt, AsyncWaitOperator, CallbackCalls, FunctionContext, Options, OptionsError, ResultFuture,
    RetryErrors, callback,
};
use futures::{FutureExt, Stream, StreamExt, stream};
use tokio::sync::oneshot;

use crate::Failure;
use crate::case::{Case, Order, Peer};
use crate::meter::{Meter, Stamps};
use crate::outside::{Answer, Outside};
use crate::work::Work;

const TIMEOUT: Duration = Duration::from_secs(30);
const KEYS: u64 = 10_000;

/// What no record has: a call that came to nothing spoils the sum.
const LOST: u64 = u64::MAX;

type Handle = ResultFuture<u64, Infallible>;

impl Answer for Handle {
    fn answer(self, value: u64) {
        self.complete(value);
    }
}

/// Keys in no order, so that equal ones meet by chance (the finisher of splitmix64).
fn key(value: &u64) -> Option<u64> {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Some((mixed ^ (mixed >> 31)) % KEYS)
}

fn options(order: Order, capacity: usize, timeout: Option<Duration>) -> Result<Options, OptionsError> {
    let builder = match order {
        Order::Ordered => Options::ordered(),
        Order::Unordered => Options::unordered(),
        Order::Keyed => Options::keyed(),
    };
    builder.capacity(capacity).timeout(timeout).build()
}

/// Measures a case.
pub(crate) async fn run(case: &Case, stamps: Arc<Stamps>, meter: &mut Meter) -> Result<(), Failure> {
    match case.work.clone() {
        Work::Ready => {
            let call = move |value: &u64| {
                stamps.make(*value);
                ready(Ok(*value))
            };
            closures(case, call, meter).await
        }
        Work::Sleep(mut delays) => {
            let call = move |value: &u64| {
                stamps.make(*value);
                let (stamps, delay, value) = (Arc::clone(&stamps), delays.next(), *value);
                async move {
                    tokio::time::sleep(delay).await;
                    stamps.complete(value);
                    Ok(value)
                }
            };
            closures(case, call, meter).await
        }
        Work::External if case.peer == Peer::Ours => {
            callbacks(case, Outside::thread(Arc::clone(&stamps)), stamps, meter).await
        }
        Work::Wheel(delays) if case.peer == Peer::Ours => {
            callbacks(case, Outside::wheel(delays, Arc::clone(&stamps)), stamps, meter).await
        }
        Work::External => oneshots(case, Outside::thread(Arc::clone(&stamps)), stamps, meter).await,
        Work::Wheel(delays) => {
            oneshots(case, Outside::wheel(delays, Arc::clone(&stamps)), stamps, meter).await
        }
    }
}

async fn oneshots(
    case: &Case,
    mut outside: Outside<oneshot::Sender<u64>>,
    stamps: Arc<Stamps>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let call = move |value: &u64| {
        stamps.make(*value);
        let (sender, answer) = oneshot::channel();
        outside.begin(*value, sender);
        answer.map(|answer| Ok(answer.unwrap_or(LOST)))
    };
    closures(case, call, meter).await
}

/// Calls that are futures.
async fn closures<F, Fut>(case: &Case, call: F, meter: &mut Meter) -> Result<(), Failure>
where
    F: FnMut(&u64) -> Fut,
    Fut: Future<Output = Result<u64, Infallible>> + Send + 'static,
{
    let options = options(case.order, case.capacity, Some(TIMEOUT))?;
    let inputs = stream::iter(0..case.records);
    if case.order == Order::Keyed {
        sink(inputs.async_wait_with(options, key, RetryErrors, call), meter).await;
    } else {
        sink(inputs.async_wait(options, call), meter).await;
    }
    Ok(())
}

async fn sink<E>(results: impl Stream<Item = Result<u64, E>>, meter: &mut Meter) {
    let mut results = std::pin::pin!(results);
    while let Some(result) = results.next().await {
        meter.see(result.unwrap_or(LOST));
    }
}

/// Calls that get a handle to be completed by.
async fn callbacks(
    case: &Case,
    mut outside: Outside<Handle>,
    stamps: Arc<Stamps>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let options = options(case.order, case.capacity, Some(TIMEOUT))?;
    let call = callback(move |value: &u64, result: Handle| {
        stamps.make(*value);
        outside.begin(*value, result);
    });
    let calls = CallbackCalls::open(call, &FunctionContext::of(&options))?;
    let inputs = stream::iter(0..case.records);
    if case.order == Order::Keyed {
        let operator = AsyncWaitOperator::with(options, key, RetryErrors);
        sink(inputs.async_wait_on(operator, calls), meter).await;
    } else {
        sink(inputs.async_wait_on(AsyncWaitOperator::new(options), calls), meter).await;
    }
    Ok(())
}

/// The element queue alone: no operator around it, no other thread, no stream.
pub(crate) struct Queue(ElementQueue<u64, u64>);

/// By what an element is completed.
pub(crate) type Name = u32;

impl Queue {
    /// An empty one.
    pub(crate) fn new(order: Order) -> Self {
        Self(ElementQueue::new(match order {
            Order::Ordered => asyncio::Order::Ordered,
            Order::Unordered => asyncio::Order::Unordered,
            Order::Keyed => asyncio::Order::Keyed,
        }))
    }

    /// Puts an element at the end.
    #[inline]
    pub(crate) fn put(&mut self, value: u64) -> Name {
        self.0.put(value)
    }

    /// Completes one.
    #[inline]
    pub(crate) fn complete(&mut self, name: Name, value: u64) {
        self.0.complete(name, value);
    }

    /// Takes out what may leave next.
    #[inline]
    pub(crate) fn emit(&mut self) -> Option<u64> {
        self.0.emit()
    }
}
