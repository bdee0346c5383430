//! How a stream's operator has its calls made.

use std::task::{Context, Poll};

use runtime_core::Tick;
use tokio::runtime::Handle;

use crate::context::CallContext;
use crate::entry::EntryId;
use crate::inbox::CompletionInbox;
use crate::output::CallError;

/// What a call is made with.
///
/// [`Calls`] has an example.
pub struct Outlet<'a, R, E> {
    /// Where its completion goes when it is not ready at once.
    pub inbox: &'a mut CompletionInbox<R, E>,
    /// Where it runs.
    pub runtime: &'a Handle,
    /// The time, if it is of interest: the clock is looked at when this is called.
    pub now: &'a dyn Fn() -> Tick,
}

impl<R, E> std::fmt::Debug for Outlet<'_, R, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet").field("inbox", &self.inbox).finish_non_exhaustive()
    }
}

/// One way to make calls: [`FutureCalls`](crate::FutureCalls), [`FunctionCalls`](crate::FunctionCalls),
/// [`CallbackCalls`](crate::CallbackCalls), [`BatchCalls`](crate::BatchCalls).
///
/// All methods are called in the thread that polls the stream. A panic of the user's function is caught here, where it
/// becomes the record's error.
///
/// ```
/// use asyncio::{AsyncWaitExt, AsyncWaitOperator, CallContext, CallError, Calls, EntryId, Options, Outlet};
/// use futures::{StreamExt, stream};
/// use std::task::Poll;
///
/// /// Small numbers are known; the others are worked out in a task.
/// struct Squares;
///
/// impl Calls<u64> for Squares {
///     type Output = u64;
///     type Error = String;
///
///     fn start(
///         &mut self,
///         n: &u64,
///         entry: EntryId,
///         attempt: u32,
///         _context: impl FnOnce() -> CallContext,
///         outlet: &mut Outlet<'_, u64, String>,
///     ) -> Poll<Result<u64, CallError<String>>> {
///         let n = *n;
///         if n < 10 {
///             return Poll::Ready(Ok(n * n));
///         }
///         let result = outlet.inbox.handle(entry, attempt);
///         outlet.runtime.spawn(async move { result.complete(n * n) });
///         Poll::Pending
///     }
///
///     // The task is short: let it run, its result is ignored.
///     fn abandon(&mut self, _entry: EntryId, _attempt: u32) {}
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// let operator = AsyncWaitOperator::new(Options::ordered().build()?);
/// let squares = stream::iter([12, 3]).async_wait_on(operator, Squares);
/// assert_eq!(squares.map(|square| square.unwrap()).collect::<Vec<_>>().await, [144, 9]);
/// # Ok(())
/// # }
/// ```
pub trait Calls<I> {
    /// What a call answers.
    type Output;
    /// What a call may fail with.
    type Error;

    /// Begins this attempt. Pending: its completion will come through the inbox. `context` costs a look at the clock.
    fn start(
        &mut self,
        input: &I,
        entry: EntryId,
        attempt: u32,
        context: impl FnOnce() -> CallContext,
        outlet: &mut Outlet<'_, Self::Output, Self::Error>,
    ) -> Poll<Result<Self::Output, CallError<Self::Error>>>;

    /// Nobody waits for this attempt any more.
    fn abandon(&mut self, entry: EntryId, attempt: u32);

    /// This attempt's completion has come.
    fn completed(&mut self, _entry: EntryId, _attempt: u32) {}

    /// Polls calls that can go on, at most about so many, and hands over what those that have ended have come to. Says
    /// whether there may be more. Called whenever the stream is polled; calls that are polled elsewhere need it not.
    fn poll_woken(
        &mut self,
        _cx: &mut Context<'_>,
        _at_most: usize,
        _take: impl FnMut(EntryId, u32, Result<Self::Output, CallError<Self::Error>>),
    ) -> bool {
        false
    }

    /// Whether it is to be asked when a record's budget ends.
    fn answers_timeouts(&self) -> bool {
        false
    }

    /// The record's budget has ended: what follows. Pending: the next completion of this attempt.
    fn timed_out(
        &mut self,
        _input: &I,
        _context: CallContext,
        _entry: EntryId,
        _attempt: u32,
        _outlet: &mut Outlet<'_, Self::Output, Self::Error>,
    ) -> Poll<Result<Self::Output, CallError<Self::Error>>> {
        Poll::Ready(Err(CallError::Timeout))
    }

    /// When [`advance`](Self::advance) has something to do.
    fn next_wakeup(&self) -> Option<Tick> {
        None
    }

    /// Makes calls that have waited long enough for others to be made with; all of them when nothing more can come.
    fn advance(&mut self, _nothing_more: bool, _outlet: &mut Outlet<'_, Self::Output, Self::Error>) {}

    /// The end. Calls that run are dropped.
    fn close(&mut self) {}
}
