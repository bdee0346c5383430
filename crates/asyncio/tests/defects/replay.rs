//! What is asked again after a restore.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use asyncio::{
    AsyncFunction, AsyncWaitExt, AsyncWaitOperator, CallContext, FunctionCalls, FunctionContext, Options,
    Snapshot,
};
use futures::{StreamExt, stream};
use runtime_core::Tick;

use crate::built;

/// Sends requests and never hears of them.
struct Requests(Arc<Mutex<Vec<Vec<u8>>>>);

impl AsyncFunction<(u32, String)> for Requests {
    type Output = ();
    type Error = Infallible;

    async fn call(&self, (id, city): &(u32, String), context: &CallContext) -> Result<(), Infallible> {
        let request = format!(
            "GET /weather/{city}?row={id} HTTP/1.1\r\nIdempotency-Key: {}\r\n\r\n",
            context.idempotency_key()
        );
        self.0.lock().unwrap().push(request.into_bytes());
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn defect11_a_replayed_request_equals_the_first_one_byte_for_byte() {
    let rows = [(7, "Bern"), (8, "Genève"), (9, "")].map(|(id, city)| (id, city.to_owned()));
    let sent = Arc::new(Mutex::new(Vec::new()));
    let options = || built(Options::unordered().idempotency_scope(41));
    let calls =
        || FunctionCalls::open(Requests(Arc::clone(&sent)), &FunctionContext::of(&options())).unwrap();
    let mut before =
        stream::iter(rows).chain(stream::pending()).async_wait_on(AsyncWaitOperator::new(options()), calls());
    assert!(futures::poll!(before.next()).is_pending());
    tokio::task::yield_now().await;
    let write = |(id, city): &&(u32, String), into: &mut Vec<u8>| -> Result<(), Infallible> {
        into.extend(id.to_le_bytes());
        into.extend(city.as_bytes());
        Ok(())
    };
    let bytes = before.operator().snapshot().unwrap().encode(write).unwrap();
    drop(before);
    let first = std::mem::take(&mut *sent.lock().unwrap());
    assert_eq!(first.len(), 3);

    let read = |bytes: &[u8]| {
        let (id, city) = bytes.split_at(4);
        let city = String::from_utf8(city.to_vec()).map_err(|error| error.to_string())?;
        Ok::<_, String>((u32::from_le_bytes(id.try_into().unwrap()), city))
    };
    let mut operator = AsyncWaitOperator::new(options());
    operator.restore(Snapshot::decode(&bytes, read).unwrap(), Tick::ZERO).unwrap();
    let mut after = stream::pending().async_wait_on(operator, calls());
    assert!(futures::poll!(after.next()).is_pending());
    tokio::task::yield_now().await;
    assert_eq!(*sent.lock().unwrap(), first);
}
