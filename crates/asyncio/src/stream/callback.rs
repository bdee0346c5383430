//! Calls by a [`CallbackFunction`].

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use super::calls::{Calls, Outlet};
use crate::context::CallContext;
use crate::entry::EntryId;
use crate::function::{CallbackFunction, FunctionContext};
use crate::output::CallError;
use crate::panics::text_of;

/// An opened [`CallbackFunction`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// use asyncio::{AsyncWaitExt, AsyncWaitOperator, CallbackCalls, FunctionContext, Options, ResultFuture, callback};
/// use futures::{StreamExt, stream};
///
/// let options = Options::ordered().build()?;
/// let doubling = callback(|n: &u32, result: ResultFuture<u32, String>| {
///     let n = *n;
///     std::thread::spawn(move || result.complete(n * 2));
/// });
/// let calls = CallbackCalls::open(doubling, &FunctionContext::of(&options)).unwrap();
/// let answers = stream::iter([1, 2, 3]).async_wait_on(AsyncWaitOperator::new(options), calls);
/// let answers: Vec<u32> = answers.map(|answer| answer.unwrap()).collect().await;
/// assert_eq!(answers, [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
pub struct CallbackCalls<I, F: CallbackFunction<I>> {
    function: F,
    closed: bool,
    input: PhantomData<fn(I)>,
}

impl<I, F: CallbackFunction<I>> fmt::Debug for CallbackCalls<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackCalls").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl<I, F: CallbackFunction<I>> CallbackCalls<I, F> {
    /// Opens the function.
    ///
    /// # Errors
    ///
    /// When it cannot be opened; it is closed then.
    pub fn open(mut function: F, context: &FunctionContext) -> Result<Self, F::Error> {
        if let Err(error) = function.open(context) {
            function.close();
            return Err(error);
        }
        Ok(Self { function, closed: false, input: PhantomData })
    }
}

impl<I, F: CallbackFunction<I>> Calls<I> for CallbackCalls<I, F> {
    type Output = F::Output;
    type Error = F::Error;

    fn start(
        &mut self,
        input: &I,
        entry: EntryId,
        attempt: u32,
        context: impl FnOnce() -> CallContext,
        outlet: &mut Outlet<'_, F::Output, F::Error>,
    ) -> Poll<Result<F::Output, CallError<F::Error>>> {
        let result = outlet.inbox.handle(entry, attempt);
        let invoke = AssertUnwindSafe(|| self.function.invoke(input, &context(), result));
        // What the handle says when it is dropped by a call that could not begin comes second, and is ignored.
        match catch_unwind(invoke) {
            Ok(Ok(())) => Poll::Pending,
            Ok(Err(error)) => Poll::Ready(Err(CallError::NotBegun(error))),
            Err(panic) => Poll::Ready(Err(CallError::Panicked(text_of(&*panic)))),
        }
    }

    // A client that calls back cannot be stopped; what it says is ignored.
    fn abandon(&mut self, _: EntryId, _: u32) {}

    fn answers_timeouts(&self) -> bool {
        true
    }

    fn timed_out(
        &mut self,
        input: &I,
        context: CallContext,
        entry: EntryId,
        attempt: u32,
        outlet: &mut Outlet<'_, F::Output, F::Error>,
    ) -> Poll<Result<F::Output, CallError<F::Error>>> {
        let result = outlet.inbox.second_handle(entry, attempt);
        match catch_unwind(AssertUnwindSafe(|| self.function.timeout(input, &context, result))) {
            Ok(Ok(())) => Poll::Pending,
            Ok(Err(error)) => Poll::Ready(Err(CallError::Error(error))),
            Err(panic) => Poll::Ready(Err(CallError::Panicked(text_of(&*panic)))),
        }
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.function.close();
        }
    }
}

impl<I, F: CallbackFunction<I>> Drop for CallbackCalls<I, F> {
    fn drop(&mut self) {
        if !self.closed {
            self.function.close();
        }
    }
}
