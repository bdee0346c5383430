//! Calls that are futures.
//!
//! A call is polled once where it is made; one that is ready by that completes on the spot, without a task, and the box
//! it was polled in serves the next call. One that is not becomes a task of the runtime and makes progress however slow
//! the consumer is. (`buffered` polls its calls only while it is polled itself, so they stand still behind a slow
//! consumer: futures-rs#2387.)

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::calls::{Calls, Outlet};
use crate::context::CallContext;
use crate::entry::EntryId;
use crate::output::CallError;
use crate::panics::text_of;
use crate::spawned::SpawnedCalls;

/// Calls by an `async` closure, `FnMut(&I) -> impl Future<Output = Result<R, E>>`, or by one that also takes the
/// [`CallContext`].
///
/// Made by [`new`](FutureCalls::new) or [`with_context`](FutureCalls::with_context), which has an example.
pub struct FutureCalls<F, Fut> {
    call: F,
    /// Where the next call is polled for the first time; empty. A call that is ready by that leaves the box for the next.
    place: Option<Pin<Box<Option<Fut>>>>,
    spawned: SpawnedCalls,
}

impl<F, Fut> fmt::Debug for FutureCalls<F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureCalls").field("spawned", &self.spawned).finish_non_exhaustive()
    }
}

/// A closure that is told the input alone.
///
/// Made by [`FutureCalls::new`].
#[derive(Debug)]
pub struct Plain<F>(F);

/// A closure that is told the context, too.
///
/// Made by [`FutureCalls::with_context`].
#[derive(Debug)]
pub struct WithContext<F>(F);

/// Makes the future of one attempt.
///
/// Nothing to implement: [`Plain`] and [`WithContext`] are the two ways, and [`FutureCalls`] makes them.
pub trait MakeCall<I, Fut> {
    #[doc(hidden)]
    fn make(&mut self, input: &I, context: impl FnOnce() -> CallContext) -> Fut;
}

impl<I, Fut, F: FnMut(&I) -> Fut> MakeCall<I, Fut> for Plain<F> {
    fn make(&mut self, input: &I, _: impl FnOnce() -> CallContext) -> Fut {
        (self.0)(input)
    }
}

impl<I, Fut, F: FnMut(&I, CallContext) -> Fut> MakeCall<I, Fut> for WithContext<F> {
    fn make(&mut self, input: &I, context: impl FnOnce() -> CallContext) -> Fut {
        (self.0)(input, context())
    }
}

impl<F, Fut> FutureCalls<Plain<F>, Fut> {
    /// Calls by a closure that is told the input.
    pub const fn new(call: F) -> Self {
        Self::made_by(Plain(call))
    }
}

impl<F, Fut> FutureCalls<WithContext<F>, Fut> {
    /// Calls by a closure that is told the input and the attempt's context.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), asyncio::OptionsError> {
    /// use asyncio::{AsyncWaitExt, AsyncWaitOperator, CallContext, FutureCalls, Options};
    /// use futures::{StreamExt, stream};
    ///
    /// let operator = AsyncWaitOperator::new(Options::ordered().build()?);
    /// let calls = FutureCalls::with_context(|n: &u32, context: CallContext| {
    ///     let n = *n;
    ///     async move { Ok::<_, String>((n, context.idempotency_key())) }
    /// });
    /// let answers: Vec<_> = stream::iter([1, 2]).async_wait_on(operator, calls).collect().await;
    /// assert_ne!(answers[0].as_ref().unwrap().1, answers[1].as_ref().unwrap().1);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn with_context(call: F) -> Self {
        Self::made_by(WithContext(call))
    }
}

impl<F, Fut> FutureCalls<F, Fut> {
    pub(super) const fn made_by(call: F) -> Self {
        Self { call, place: None, spawned: SpawnedCalls::new() }
    }

    /// Drops the calls that run.
    pub(super) fn drop_all(&mut self) {
        self.spawned = SpawnedCalls::new();
    }
}

impl<I, F, Fut, R, E> Calls<I> for FutureCalls<F, Fut>
where
    F: MakeCall<I, Fut>,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
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
        context: impl FnOnce() -> CallContext,
        outlet: &mut Outlet<'_, R, E>,
    ) -> Poll<Result<R, CallError<E>>> {
        let place = self.place.get_or_insert_with(|| Box::pin(None));
        let polled = catch_unwind(AssertUnwindSafe(|| {
            place.as_mut().set(Some(self.call.make(input, context)));
            // The task it may become polls it again with a waker of its own.
            poll_in(place, &mut Context::from_waker(Waker::noop()))
        }));
        match polled {
            Ok(Poll::Ready(result)) => {
                place.as_mut().set(None);
                Poll::Ready(result.map_err(CallError::Error))
            }
            Ok(Poll::Pending) => {
                if let Some(mut place) = self.place.take() {
                    let call = poll_fn(move |cx| poll_in(&mut place, cx));
                    self.spawned.spawn(outlet.runtime, outlet.inbox, entry, attempt, call);
                }
                Poll::Pending
            }
            Err(panic) => {
                // What a half-made call left behind is dropped with its place.
                self.place = None;
                Poll::Ready(Err(CallError::Panicked(text_of(&*panic))))
            }
        }
    }

    fn abandon(&mut self, entry: EntryId, attempt: u32) {
        self.spawned.abandon(entry, attempt);
    }

    fn completed(&mut self, entry: EntryId, attempt: u32) {
        self.spawned.completed(entry, attempt);
    }
}

fn poll_in<Fut: Future>(place: &mut Pin<Box<Option<Fut>>>, cx: &mut Context<'_>) -> Poll<Fut::Output> {
    // The place is filled before it is polled and emptied only when the call was ready.
    place.as_mut().as_pin_mut().map_or(Poll::Pending, |call| call.poll(cx))
}
