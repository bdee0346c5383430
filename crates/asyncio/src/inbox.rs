//! How completions come from other threads to the one that owns the operator.
//!
//! A shell, not a core: it has a lock. The lock is held for a push or a swap; no user code runs under it. What a handle
//! needs of the inbox travels with its completion and back into stock, so that in a steady flow no thread counts
//! references that another thread counts too: that alone would cost more than the rest.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use runtime_core::Tick;

use crate::entry::EntryId;
use crate::key::KeySelector;
use crate::operator::AsyncWaitOperator;
use crate::output::CallError;
use crate::panics::text_of;
use crate::result_future::ResultFuture;
use crate::retry::RetryPredicate;

/// What completes an attempt.
pub(crate) enum Answer<R, E> {
    Result(Result<R, CallError<E>>),
    /// To be run by the thread that owns the operator.
    Supplier(Box<dyn FnOnce() -> Result<R, E> + Send>),
}

/// An attempt has ended.
pub(crate) struct Completion<R, E> {
    pub(crate) entry: EntryId,
    pub(crate) attempt: u32,
    pub(crate) answer: Answer<R, E>,
    pub(crate) home: Arc<Shared<R, E>>,
}

impl<R, E> Answer<R, E> {
    fn into_result(self) -> Result<R, CallError<E>> {
        match self {
            Self::Result(result) => result,
            Self::Supplier(supplier) => match catch_unwind(AssertUnwindSafe(supplier)) {
                Ok(result) => result.map_err(CallError::Error),
                Err(panic) => Err(CallError::Panicked(text_of(&*panic))),
            },
        }
    }
}

struct State<R, E> {
    completions: Vec<Completion<R, E>>,
    waker: Option<Waker>,
    closed: bool,
}

/// What the inbox and its handles have in common.
pub(crate) struct Shared<R, E> {
    state: Mutex<State<R, E>>,
}

impl<R, E> Shared<R, E> {
    /// A poisoned lock is taken as it is: a push or a swap leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State<R, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, completion: Completion<R, E>) {
        let mut state = self.lock();
        if state.closed {
            // What a user's value does when dropped must not happen under the lock.
            drop(state);
            drop(completion);
            return;
        }
        let waker = if state.completions.is_empty() { state.waker.clone() } else { None };
        state.completions.push(completion);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Puts completions in, one after the other.
#[cfg(feature = "tokio")]
pub(crate) struct Sender<R, E>(Arc<Shared<R, E>>);

#[cfg(feature = "tokio")]
impl<R, E> Sender<R, E> {
    pub(crate) fn send(&self, entry: EntryId, attempt: u32, result: Result<R, CallError<E>>) {
        let answer = Answer::Result(result);
        self.0.put(Completion { entry, attempt, answer, home: Arc::clone(&self.0) });
    }
}

/// Handles kept for use again: as many as come in between two deliveries of a busy operator.
const STOCK: usize = 1024;

/// Where completions are put by any thread and taken out, all at once, by one.
///
/// Completions that come after the inbox was dropped or [closed](Self::close) are dropped quietly: their operator is gone.
///
/// ```
/// use asyncio::{AsyncWaitOperator, CompletionInbox, Effect, Options, Outcome, Output};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// let mut inbox = CompletionInbox::new();
/// operator.push(StreamElement::Record(Record::new(21)), now).unwrap();
/// while let Some(effect) = operator.next_effect() {
///     if let Effect::Start { entry, attempt } = effect {
///         let result = inbox.handle(entry, attempt);
///         std::thread::spawn(move || result.complete(42)).join().unwrap();
///     }
/// }
/// assert_eq!(inbox.deliver_to(&mut operator, now), 1);
/// assert!(matches!(operator.next_output(), Some(Output::Record { outcome: Outcome::Completed(42), .. })));
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
pub struct CompletionInbox<R, E> {
    shared: Arc<Shared<R, E>>,
    /// For the next handles.
    stock: Vec<Arc<Shared<R, E>>>,
    drained: Vec<Completion<R, E>>,
}

impl<R, E> std::fmt::Debug for CompletionInbox<R, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletionInbox").field("waiting", &self.shared.lock().completions.len()).finish()
    }
}

impl<R, E> CompletionInbox<R, E> {
    /// An empty inbox.
    #[must_use]
    pub fn new() -> Self {
        let state = State { completions: Vec::new(), waker: None, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state) });
        Self { shared, stock: Vec::new(), drained: Vec::new() }
    }

    /// The handle by which an attempt is completed: once, or by being dropped.
    pub fn handle(&mut self, entry: EntryId, attempt: u32) -> ResultFuture<R, E> {
        let home = self.stock.pop().unwrap_or_else(|| Arc::clone(&self.shared));
        ResultFuture::new(home, entry, attempt)
    }

    /// A further handle for an attempt whose first one may still be in use: for who is asked what follows when a budget has
    /// ended. It says nothing when it is dropped.
    pub fn second_handle(&self, entry: EntryId, attempt: u32) -> ResultFuture<R, E> {
        ResultFuture::second(Arc::clone(&self.shared), entry, attempt)
    }

    /// A way in for whoever completes many attempts.
    #[cfg(feature = "tokio")]
    pub(crate) fn sender(&self) -> Sender<R, E> {
        Sender(Arc::clone(&self.shared))
    }

    /// Hands each completion that has come to `take`, in the order in which they came. Says how many there were.
    ///
    /// The example is at [`SpawnedCalls`](crate::SpawnedCalls), which is to be told of each completion, too.
    pub fn deliver(&mut self, mut take: impl FnMut(EntryId, u32, Result<R, CallError<E>>)) -> usize {
        // The buffers change places, so that neither side allocates once both have grown.
        std::mem::swap(&mut self.shared.lock().completions, &mut self.drained);
        let count = self.drained.len();
        for Completion { entry, attempt, answer, home } in self.drained.drain(..) {
            if self.stock.len() < STOCK {
                self.stock.push(home);
            }
            take(entry, attempt, answer.into_result());
        }
        count
    }

    /// Completes the operator's attempts with what has come. Says how many completions there were.
    pub fn deliver_to<I, S, P>(&mut self, operator: &mut AsyncWaitOperator<I, R, E, S, P>, now: Tick) -> usize
    where
        S: KeySelector<I>,
        P: RetryPredicate<R, E>,
    {
        self.deliver(|entry, attempt, result| {
            operator.complete(entry, attempt, result, now);
        })
    }

    /// Has `waker` woken by the first completion that comes into the empty inbox. Says whether there are completions
    /// already: then nobody is woken for them.
    ///
    /// The example `without_tokio` of this crate wakes a thread by it.
    #[must_use = "completions that are there already wake nobody"]
    pub fn register(&self, waker: &Waker) -> bool {
        let mut state = self.shared.lock();
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        !state.completions.is_empty()
    }

    /// Waits until there are completions, without taking them out. May be dropped and begun again. It takes the waker's
    /// place: one task waits at a time.
    ///
    /// The example is at [`SpawnedCalls`](crate::SpawnedCalls).
    pub async fn wait(&self) {
        poll_fn(|cx| if self.register(cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Drops what is in it and whatever comes later.
    pub fn close(&self) {
        let dropped = {
            let mut state = self.shared.lock();
            state.closed = true;
            (std::mem::take(&mut state.completions), state.waker.take())
        };
        drop(dropped);
    }
}

impl<R, E> Default for CompletionInbox<R, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, E> Drop for CompletionInbox<R, E> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
