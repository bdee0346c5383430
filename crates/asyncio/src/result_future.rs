//! The handle by which a call is completed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::entry::EntryId;
use crate::inbox::{Answer, Completion, Shared};
use crate::output::CallError;

/// Completes one attempt, from any thread (Flink: `ResultFuture`).
///
/// The first completion wins and every later one is ignored, so a handle may be shared (`Arc`) between whoever might
/// complete it. Dropped without a completion it completes the attempt with [`CallError::HandleDropped`], so that a lost
/// callback leaves nobody waiting (Flink waits for the timeout, if any). A completion hands its value over and wakes the
/// owner; nothing is emitted in the caller's stack. After the operator is gone it does nothing.
///
/// ```
/// use asyncio::{AsyncWaitOperator, CallError, CompletionInbox, Effect, Options};
/// # use runtime_core::{Record, StreamElement, Tick};
///
/// # let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// # for n in [1, 2] { operator.push(StreamElement::Record(Record::new(n)), Tick::ZERO).unwrap(); }
/// # let mut next = || match operator.next_effect() { Some(Effect::Start { entry, .. }) => entry, _ => panic!("two start") };
/// # let (first, second) = (next(), next());
/// let mut inbox = CompletionInbox::<u32, String>::new();
/// let result = inbox.handle(first, 1);
/// std::thread::spawn(move || result.complete(10)).join().unwrap();
/// drop(inbox.handle(second, 1));
///
/// let mut came = Vec::new();
/// inbox.deliver(|entry, _attempt, result| came.push((entry, result)));
/// assert_eq!(came, [(first, Ok(10)), (second, Err(CallError::HandleDropped))]);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[must_use = "a result future that is dropped completes its attempt with an error"]
pub struct ResultFuture<R, E> {
    home: Arc<Shared<R, E>>,
    entry: EntryId,
    attempt: u32,
    /// Whether a drop says nothing any more.
    settled: AtomicBool,
}

impl<R, E> fmt::Debug for ResultFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, attempt, settled, .. } = self;
        f.debug_struct("ResultFuture")
            .field("entry", entry)
            .field("attempt", attempt)
            .field("settled", settled)
            .finish_non_exhaustive()
    }
}

impl<R, E> ResultFuture<R, E> {
    pub(crate) const fn new(home: Arc<Shared<R, E>>, entry: EntryId, attempt: u32) -> Self {
        Self { home, entry, attempt, settled: AtomicBool::new(false) }
    }

    /// A handle for who is asked after the budget's end: whoever leaves it unused leaves the attempt to its first handle.
    pub(crate) const fn second(home: Arc<Shared<R, E>>, entry: EntryId, attempt: u32) -> Self {
        Self { home, entry, attempt, settled: AtomicBool::new(true) }
    }

    /// The call has answered.
    ///
    /// ```
    /// # use asyncio::{CompletionInbox, ResultFuture};
    /// # fn call(result: ResultFuture<u32, String>) {
    /// std::thread::spawn(move || result.complete(42));
    /// # }
    /// ```
    pub fn complete(&self, answer: R) {
        self.put(Answer::Result(Ok(answer)));
    }

    /// The call has failed with this error (Flink: `completeExceptionally`).
    ///
    /// ```
    /// # use asyncio::ResultFuture;
    /// # fn called_back(result: ResultFuture<String, u16>, status: u16, body: String) {
    /// match status {
    ///     200 => result.complete(body),
    ///     status => result.complete_exceptionally(status),
    /// }
    /// # }
    /// ```
    pub fn complete_exceptionally(&self, error: E) {
        self.put(Answer::Result(Err(CallError::Error(error))));
    }

    /// The call has ended, either way.
    ///
    /// ```
    /// # use asyncio::ResultFuture;
    /// # fn called_back(result: ResultFuture<u32, std::num::ParseIntError>, body: String) {
    /// result.complete_with_result(body.parse());
    /// # }
    /// ```
    pub fn complete_with_result(&self, result: Result<R, E>) {
        self.put(Answer::Result(result.map_err(CallError::Error)));
    }

    /// The call has answered with what `supplier` will make of it on the operator's thread (Flink: the `CollectionSupplier`
    /// of 2.1): for work that must not burden the thread of the callback. Its error counts as the call's; a panic is final.
    ///
    /// ```
    /// # use asyncio::{CompletionInbox, ResultFuture};
    /// # fn answered(body: Vec<u8>, result: ResultFuture<u32, std::num::ParseIntError>) {
    /// // In the client's callback: the body is read where the operator lives.
    /// result.complete_by(move || String::from_utf8_lossy(&body).parse());
    /// # }
    /// ```
    pub fn complete_by(&self, supplier: impl FnOnce() -> Result<R, E> + Send + 'static) {
        self.put(Answer::Supplier(Box::new(supplier)));
    }

    /// Lets the record fail because its time is over: what is said of a record whose budget has ended when nobody knows
    /// anything better.
    pub fn time_out(&self) {
        self.put(Answer::Result(Err(CallError::Timeout)));
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn fail(&self, error: CallError<E>) {
        self.put(Answer::Result(Err(error)));
    }

    fn put(&self, answer: Answer<R, E>) {
        // Which of several completions is the first, the inbox's lock decides; the operator ignores the others.
        self.settled.store(true, Ordering::Relaxed);
        let home = Arc::clone(&self.home);
        self.home.put(Completion { entry: self.entry, attempt: self.attempt, answer, home });
    }
}

impl<R, E> Drop for ResultFuture<R, E> {
    fn drop(&mut self) {
        if !*self.settled.get_mut() {
            self.put(Answer::Result(Err(CallError::HandleDropped)));
        }
    }
}
