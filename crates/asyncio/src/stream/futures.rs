//! Calls that are futures.
//!
//! A call is polled once where it is made; one that is ready by that completes on the spot. One that is not waits with
//! the others and is polled again, when it is woken, by the stream's consumer or by one task for all of them, whoever is
//! there first. So it makes progress however slow the consumer is. (`buffered` polls its calls only while it is polled
//! itself, so they stand still behind a slow consumer: futures-rs#2387.)

use std::fmt;
use std::future::Future;
use std::task::{Context, Poll};

use futures::TryFuture;

use super::calls::{Calls, Outlet};
use crate::context::CallContext;
use crate::driven::DrivenCalls;
use crate::entry::EntryId;
use crate::output::CallError;

/// Calls by an `async` closure, `FnMut(&I) -> impl Future<Output = Result<R, E>>`, or by one that also takes the
/// [`CallContext`].
///
/// Made by [`new`](FutureCalls::new) or [`with_context`](FutureCalls::with_context), which has an example.
pub struct FutureCalls<F, Fut> {
    call: F,
    driven: DrivenCalls<Fut>,
}

impl<F, Fut> fmt::Debug for FutureCalls<F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FutureCalls").field("driven", &self.driven).finish_non_exhaustive()
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
pub trait MakeCall<I, Fut>: sealed::Sealed {
    #[doc(hidden)]
    fn make(&mut self, input: &I, context: impl FnOnce() -> CallContext) -> Fut;
}

pub(super) mod sealed {
    /// What makes calls is known in this crate.
    pub trait Sealed {}
}

impl<F> sealed::Sealed for Plain<F> {}
impl<F> sealed::Sealed for WithContext<F> {}

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
    pub fn new(call: F) -> Self {
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
    pub fn with_context(call: F) -> Self {
        Self::made_by(WithContext(call))
    }
}

impl<F, Fut> FutureCalls<F, Fut> {
    pub(super) fn made_by(call: F) -> Self {
        Self { call, driven: DrivenCalls::new() }
    }

    /// Drops the calls that run.
    pub(super) fn drop_all(&mut self) {
        self.driven = DrivenCalls::new();
    }
}

impl<I, F, Fut> Calls<I> for FutureCalls<F, Fut>
where
    F: MakeCall<I, Fut>,
    Fut: TryFuture
        + Future<Output = Result<<Fut as TryFuture>::Ok, <Fut as TryFuture>::Error>>
        + Send
        + 'static,
    Fut::Ok: Send + 'static,
    Fut::Error: Send + 'static,
{
    type Output = Fut::Ok;
    type Error = Fut::Error;

    #[inline]
    fn start(
        &mut self,
        input: &I,
        entry: EntryId,
        attempt: u32,
        context: impl FnOnce() -> CallContext,
        outlet: &mut Outlet<'_, Fut::Ok, Fut::Error>,
    ) -> Poll<Result<Fut::Ok, CallError<Fut::Error>>> {
        let Self { call, driven } = self;
        driven.start(outlet.runtime, outlet.inbox, entry, attempt, || call.make(input, context))
    }

    fn abandon(&mut self, entry: EntryId, attempt: u32) {
        self.driven.abandon(entry, attempt);
    }

    fn poll_woken(
        &mut self,
        cx: &mut Context<'_>,
        at_most: usize,
        take: impl FnMut(EntryId, u32, Result<Fut::Ok, CallError<Fut::Error>>),
    ) -> bool {
        self.driven.poll_woken(cx, at_most, take)
    }
}
