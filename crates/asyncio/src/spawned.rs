//! The calls that run on a tokio runtime.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::entry::EntryId;
use crate::inbox::CompletionInbox;
use crate::output::CallError;
use crate::panics::text_of;

/// Holds the running calls of one operator, so that an abandoned one is dropped and none outlives its operator.
///
/// The calls are tasks of their own: they make progress however seldom the operator is driven. (A call polled only when
/// somebody asks for the next result stands still while that somebody is slow: futures-rs#2387.)
///
/// ```
/// use asyncio::{AsyncWaitOperator, CompletionInbox, Effect, Options, Outcome, Output, SpawnedCalls};
/// use runtime_core::time::{Clock, TokioClock};
/// use runtime_core::{Record, StreamElement};
/// use tokio::runtime::Handle;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// let clock = TokioClock::start();
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// let (mut inbox, mut calls) = (CompletionInbox::new(), SpawnedCalls::new());
/// operator.push(StreamElement::Record(Record::new(21)), clock.now()).unwrap();
/// while let Some(effect) = operator.next_effect() {
///     match effect {
///         Effect::Start { entry, attempt } => {
///             let n = operator.input(entry).map_or(0, |record| record.value);
///             calls.spawn(&Handle::current(), &mut inbox, entry, attempt, async move { Ok(n * 2) });
///         }
///         Effect::Abandon { entry, attempt } => calls.abandon(entry, attempt),
///         // Only an operator that was told to ask about timeouts asks.
///         Effect::TimedOut { .. } => {}
///     }
/// }
/// inbox.wait().await;
/// inbox.deliver(|entry, attempt, result| {
///     calls.completed(entry, attempt);
///     operator.complete(entry, attempt, result, clock.now());
/// });
/// assert!(matches!(operator.next_output(), Some(Output::Record { outcome: Outcome::Completed(42), .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SpawnedCalls {
    /// By the entry's place. A place is taken again only after its record has left.
    running: Vec<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    entry: EntryId,
    attempt: u32,
    task: JoinHandle<()>,
}

impl SpawnedCalls {
    /// No calls yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { running: Vec::new() }
    }

    /// Runs `call` on `runtime` and completes the attempt with its result. A call that panics completes it with the panic's
    /// text.
    pub fn spawn<R, E, F>(
        &mut self,
        runtime: &Handle,
        inbox: &mut CompletionInbox<R, E>,
        entry: EntryId,
        attempt: u32,
        call: F,
    ) where
        F: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        let handle = inbox.handle(entry, attempt);
        let call = AssertUnwindSafe(call).catch_unwind();
        let task = runtime.spawn(async move {
            match call.await {
                Ok(result) => handle.complete_with_result(result),
                Err(panic) => handle.fail(CallError::Panicked(text_of(&*panic))),
            }
        });
        if self.running.len() <= entry.slot() {
            self.running.resize_with(entry.slot() + 1, || None);
        }
        if let Some(place) = self.running.get_mut(entry.slot()) {
            // An earlier attempt that still runs here was abandoned or has completed.
            if let Some(former) = place.replace(Running { entry, attempt, task }) {
                former.task.abort();
            }
        }
    }

    /// Drops this attempt's call if it still runs.
    pub fn abandon(&mut self, entry: EntryId, attempt: u32) {
        if let Some(running) = self.take(entry, attempt) {
            running.task.abort();
        }
    }

    /// This attempt's completion has come: its task, which keeps memory while it is known here, is forgotten.
    pub fn completed(&mut self, entry: EntryId, attempt: u32) {
        drop(self.take(entry, attempt));
    }

    fn take(&mut self, entry: EntryId, attempt: u32) -> Option<Running> {
        let place = self.running.get_mut(entry.slot())?;
        place.take_if(|running| running.entry == entry && running.attempt == attempt)
    }
}

impl Drop for SpawnedCalls {
    fn drop(&mut self) {
        for running in self.running.drain(..).flatten() {
            running.task.abort();
        }
    }
}
