//! Calls by an [`AsyncFunction`].

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::calls::{Calls, Outlet};
use super::futures::sealed::Sealed;
use super::futures::{FutureCalls, MakeCall};
use crate::context::CallContext;
use crate::entry::EntryId;
use crate::function::{AsyncFunction, FunctionContext, OnTimeout};
use crate::output::CallError;
use crate::panics::text_of;

type Boxed<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

/// An opened [`AsyncFunction`]. Each call has a copy of its input, since calls outlive the moment in which they are made.
///
/// ```
/// use asyncio::{AsyncFunction, AsyncWaitExt, AsyncWaitOperator, CallContext, FunctionCalls, FunctionContext};
/// use asyncio::{OnTimeout, Options};
/// use futures::{StreamExt, stream};
/// use std::time::Duration;
///
/// struct Prices;
///
/// impl AsyncFunction<&'static str> for Prices {
///     type Output = u32;
///     type Error = String;
///
///     async fn call(&self, product: &&'static str, _: &CallContext) -> Result<u32, String> {
///         if *product == "apple" { Ok(199) } else { std::future::pending().await }
///     }
///
///     fn timeout(&self, _product: &&'static str, _: &CallContext) -> OnTimeout<u32, String> {
///         OnTimeout::Complete(0)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = Options::ordered().timeout(Duration::from_millis(500)).build()?;
/// let calls = FunctionCalls::open(Prices, &FunctionContext::of(&options))?;
/// let prices = stream::iter(["apple", "cherry"]).async_wait_on(AsyncWaitOperator::new(options), calls);
/// assert_eq!(prices.map(|price| price.unwrap()).collect::<Vec<_>>().await, [199, 0]);
/// # Ok(())
/// # }
/// ```
pub struct FunctionCalls<I, F: AsyncFunction<I>> {
    function: Arc<F>,
    futures: FutureCalls<Shared<F>, Boxed<F::Output, F::Error>>,
    closed: bool,
}

impl<I, F: AsyncFunction<I>> fmt::Debug for FunctionCalls<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionCalls").field("calls", &self.futures).finish_non_exhaustive()
    }
}

/// Makes calls of a function that it shares with them.
struct Shared<F>(Arc<F>);

impl<F> Sealed for Shared<F> {}

impl<I, F> MakeCall<I, Boxed<F::Output, F::Error>> for Shared<F>
where
    I: Clone + Send + Sync + 'static,
    F: AsyncFunction<I>,
{
    fn make(&mut self, input: &I, context: impl FnOnce() -> CallContext) -> Boxed<F::Output, F::Error> {
        let (function, input, context) = (Arc::clone(&self.0), input.clone(), context());
        Box::pin(async move { function.call(&input, &context).await })
    }
}

impl<I, F: AsyncFunction<I>> FunctionCalls<I, F> {
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
        let function = Arc::new(function);
        let futures = FutureCalls::made_by(Shared(Arc::clone(&function)));
        Ok(Self { function, futures, closed: false })
    }

    /// Calls that run are dropped first.
    fn close_once(&mut self) {
        self.futures.drop_all();
        if !std::mem::replace(&mut self.closed, true) {
            self.function.close();
        }
    }
}

impl<I, F> Calls<I> for FunctionCalls<I, F>
where
    I: Clone + Send + Sync + 'static,
    F: AsyncFunction<I>,
{
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
        self.futures.start(input, entry, attempt, context, outlet)
    }

    fn abandon(&mut self, entry: EntryId, attempt: u32) {
        Calls::<I>::abandon(&mut self.futures, entry, attempt);
    }

    fn poll_woken(
        &mut self,
        cx: &mut Context<'_>,
        at_most: usize,
        take: impl FnMut(EntryId, u32, Result<F::Output, CallError<F::Error>>),
    ) -> bool {
        Calls::<I>::poll_woken(&mut self.futures, cx, at_most, take)
    }

    fn answers_timeouts(&self) -> bool {
        true
    }

    fn timed_out(
        &mut self,
        input: &I,
        context: CallContext,
        _: EntryId,
        _: u32,
        _: &mut Outlet<'_, F::Output, F::Error>,
    ) -> Poll<Result<F::Output, CallError<F::Error>>> {
        Poll::Ready(match catch_unwind(AssertUnwindSafe(|| self.function.timeout(input, &context))) {
            Ok(OnTimeout::Fail) => Err(CallError::Timeout),
            Ok(OnTimeout::Complete(answer)) => Ok(answer),
            Ok(OnTimeout::Error(error)) => Err(CallError::Error(error)),
            Err(panic) => Err(CallError::Panicked(text_of(&*panic))),
        })
    }

    fn close(&mut self) {
        self.close_once();
    }
}

impl<I, F: AsyncFunction<I>> Drop for FunctionCalls<I, F> {
    fn drop(&mut self) {
        self.close_once();
    }
}
