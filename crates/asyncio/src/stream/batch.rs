//! Calls about several records at once.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use futures::FutureExt;
use tokio::task::AbortHandle;

use super::calls::{Calls, Outlet};
use crate::batch::{BatchItem, BatchOptions, Batcher};
use crate::context::CallContext;
use crate::entry::EntryId;
use crate::output::CallError;
use crate::panics::text_of;
use crate::result_future::ResultFuture;

/// Calls by a closure that takes many inputs, `FnMut(Vec<I>) -> impl Future<Output = Vec<Result<R, E>>>`, and answers
/// each: as many results as inputs, in their order. One bad input fails alone.
///
/// A record waits in its batch as long as the [options](BatchOptions) say; that counts as part of its attempt. A batch is
/// also called when the operator is full and when the input has ended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use asyncio::{AsyncWaitExt, AsyncWaitOperator, BatchCalls, BatchOptions, Options};
/// use futures::{StreamExt, stream};
/// use std::time::Duration;
///
/// let calls = BatchCalls::new(BatchOptions::new(2, Duration::from_millis(5))?, |numbers: Vec<u32>| async move {
///     // ... one request for all of them ...
///     numbers.into_iter().map(|n| Ok::<u32, String>(n * 2)).collect()
/// });
/// let operator = AsyncWaitOperator::new(Options::ordered().build()?);
/// let answers = stream::iter([1, 2, 3]).async_wait_on(operator, calls);
/// let answers: Vec<u32> = answers.map(|answer| answer.unwrap()).collect().await;
/// assert_eq!(answers, [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
pub struct BatchCalls<I, F> {
    call: F,
    batcher: Batcher<I>,
    /// The batch of each attempt that was called.
    batch_of: HashMap<(EntryId, u32), u64>,
    /// The batches that run: how many of their attempts anybody waits for.
    running: HashMap<u64, (usize, AbortHandle)>,
    next_batch: u64,
}

impl<I, F> fmt::Debug for BatchCalls<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchCalls")
            .field("gathered", &self.batcher.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

impl<I, F> BatchCalls<I, F> {
    /// Calls by this closure.
    pub fn new(options: BatchOptions, call: F) -> Self {
        Self {
            call,
            batcher: Batcher::new(options),
            batch_of: HashMap::new(),
            running: HashMap::new(),
            next_batch: 0,
        }
    }

    /// Nobody waits for this attempt any more. A batch that nobody waits for is dropped.
    fn forget(&mut self, entry: EntryId, attempt: u32) {
        let Some(batch) = self.batch_of.remove(&(entry, attempt)) else { return };
        let Some((awaited, task)) = self.running.get_mut(&batch) else { return };
        *awaited -= 1;
        if *awaited == 0 {
            task.abort();
            self.running.remove(&batch);
        }
    }
}

impl<I, F, Fut, R, E> BatchCalls<I, F>
where
    F: FnMut(Vec<I>) -> Fut,
    Fut: Future<Output = Vec<Result<R, E>>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn call(&mut self, batch: Vec<BatchItem<I>>, outlet: &mut Outlet<'_, R, E>) {
        let (number, asked) = (self.next_batch, batch.len());
        self.next_batch += 1;
        let (mut inputs, mut handles) = (Vec::with_capacity(asked), Vec::with_capacity(asked));
        for BatchItem { entry, attempt, input } in batch {
            self.batch_of.insert((entry, attempt), number);
            handles.push(outlet.inbox.handle(entry, attempt));
            inputs.push(input);
        }
        let call = match catch_unwind(AssertUnwindSafe(|| (self.call)(inputs))) {
            Ok(call) => call,
            Err(panic) => return fail(&handles, &text_of(&*panic)),
        };
        let answered = async move {
            match AssertUnwindSafe(call).catch_unwind().await {
                Ok(results) => answer(&handles, results),
                Err(panic) => fail(&handles, &text_of(&*panic)),
            }
        };
        self.running.insert(number, (asked, outlet.runtime.spawn(answered).abort_handle()));
    }
}

fn answer<R, E>(handles: &[ResultFuture<R, E>], results: Vec<Result<R, E>>) {
    let (asked, answered) = (handles.len(), results.len());
    if asked != answered {
        // Which answer is whose cannot be told any more.
        return handles.iter().for_each(|handle| handle.fail(CallError::BatchMismatch { asked, answered }));
    }
    for (handle, result) in handles.iter().zip(results) {
        handle.complete_with_result(result);
    }
}

fn fail<R, E>(handles: &[ResultFuture<R, E>], text: &str) {
    handles.iter().for_each(|handle| handle.fail(CallError::Panicked(text.to_owned())));
}

impl<I, F, Fut, R, E> Calls<I> for BatchCalls<I, F>
where
    I: Clone,
    F: FnMut(Vec<I>) -> Fut,
    Fut: Future<Output = Vec<Result<R, E>>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Output = R;
    type Error = E;

    fn start(
        &mut self,
        input: &I,
        entry: EntryId,
        attempt: u32,
        _: impl FnOnce() -> CallContext,
        outlet: &mut Outlet<'_, R, E>,
    ) -> Poll<Result<R, CallError<E>>> {
        let item = BatchItem { entry, attempt, input: input.clone() };
        if let Some(batch) = self.batcher.add(item, (outlet.now)()) {
            self.call(batch, outlet);
        }
        Poll::Pending
    }

    fn abandon(&mut self, entry: EntryId, attempt: u32) {
        if !self.batcher.remove(entry, attempt) {
            self.forget(entry, attempt);
        }
    }

    fn completed(&mut self, entry: EntryId, attempt: u32) {
        self.forget(entry, attempt);
    }

    fn next_wakeup(&self) -> Option<runtime_core::Tick> {
        self.batcher.next_wakeup()
    }

    fn advance(&mut self, nothing_more: bool, outlet: &mut Outlet<'_, R, E>) {
        if self.batcher.is_empty() {
            return;
        }
        let due = if nothing_more { self.batcher.flush() } else { self.batcher.advance((outlet.now)()) };
        if let Some(batch) = due {
            self.call(batch, outlet);
        }
    }

    fn close(&mut self) {
        self.batch_of.clear();
        for (_, (_, task)) in self.running.drain() {
            task.abort();
        }
    }
}

impl<I, F> Drop for BatchCalls<I, F> {
    fn drop(&mut self) {
        for (_, task) in self.running.values() {
            task.abort();
        }
    }
}
