//! The operator behind a `futures::Stream`, on tokio.
//!
//! A shell: it asks the runtime's clock, polls the source, has calls made and sleeps until the next timer. How a call is
//! made is the business of [`Calls`].

mod batch;
mod callback;
mod calls;
mod engine;
mod failed;
mod function;
mod futures;
mod timing;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::futures::Stream;

pub use batch::BatchCalls;
pub use callback::CallbackCalls;
pub use calls::{Calls, Outlet};
pub use failed::{AsyncWaitResult, Failed};
pub use function::FunctionCalls;
pub use futures::{FutureCalls, MakeCall, Plain, WithContext};

use crate::key::{KeySelector, NoKey};
use crate::operator::AsyncWaitOperator;
use crate::options::Options;
use crate::retry::{RetryErrors, RetryPredicate};
use engine::Engine;
use timing::Timing;

/// Asynchronous waiting for every stream, on tokio (Flink: `AsyncDataStream`).
pub trait AsyncWaitExt: Stream {
    /// Makes a call for every input and gives the results in the order that `options` say.
    ///
    /// `call` is asked once for each attempt, in the order of the inputs. What becomes of an input whose calls have failed
    /// says [`on_failure`](crate::OptionsBuilder::on_failure): under [`Fail`](crate::FailurePolicy::Fail), the default, the failure
    /// is the stream's last item; under [`Keep`](crate::FailurePolicy::Keep) and [`DeadLetter`](crate::FailurePolicy::DeadLetter) it is
    /// an item in the input's place, and the stream goes on; under [`Drop`](crate::FailurePolicy::Drop) there is none.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), asyncio::OptionsError> {
    /// use asyncio::{AsyncWaitExt, Options};
    /// use futures::{StreamExt, stream};
    ///
    /// let answers = stream::iter([3, 4]).async_wait(Options::ordered().build()?, |n: &u32| {
    ///     let n = *n;
    ///     async move { Ok::<_, String>(n * n) }
    /// });
    /// assert_eq!(answers.map(|answer| answer.unwrap()).collect::<Vec<u32>>().await, [9, 16]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The stream panics when polled outside a tokio runtime with time enabled.
    fn async_wait<F, Fut, R, E>(
        self,
        options: Options,
        call: F,
    ) -> AsyncWait<Self, FutureCalls<Plain<F>, Fut>, NoKey, RetryErrors>
    where
        Self: Sized,
        F: FnMut(&Self::Item) -> Fut,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.async_wait_on(AsyncWaitOperator::new(options), FutureCalls::new(call))
    }

    /// As [`async_wait`](Self::async_wait), with keys and a say in what is retried.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), asyncio::OptionsError> {
    /// use asyncio::{AsyncWaitExt, Options, RetryErrors};
    /// use futures::{StreamExt, stream};
    ///
    /// // One call at a time for even and for odd numbers.
    /// let parity = |n: &u32| Some(n % 2);
    /// let options = Options::keyed().build()?;
    /// let answers = stream::iter(0..4_u32).async_wait_with(options, parity, RetryErrors, |n: &u32| {
    ///     let n = *n;
    ///     async move { Ok::<_, std::convert::Infallible>(n * 10) }
    /// });
    /// assert_eq!(answers.count().await, 4);
    /// # Ok(())
    /// # }
    /// ```
    fn async_wait_with<S, P, F, Fut, R, E>(
        self,
        options: Options,
        selector: S,
        predicate: P,
        call: F,
    ) -> AsyncWait<Self, FutureCalls<Plain<F>, Fut>, S, P>
    where
        Self: Sized,
        S: KeySelector<Self::Item>,
        P: RetryPredicate<R, E>,
        F: FnMut(&Self::Item) -> Fut,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.async_wait_on(AsyncWaitOperator::with(options, selector, predicate), FutureCalls::new(call))
    }

    /// The general form: an operator, perhaps one that shares calls or was restored from a snapshot, and any way to make
    /// calls.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), asyncio::OptionsError> {
    /// use asyncio::{AsyncWaitExt, AsyncWaitOperator, FutureCalls, Options};
    /// use futures::{StreamExt, stream};
    ///
    /// // Equal inputs that are in flight together share a call.
    /// let operator = AsyncWaitOperator::new(Options::unordered().build()?).coalescing_by(|n: &u32| Some(*n));
    /// let calls = FutureCalls::new(|n: &u32| {
    ///     let n = *n;
    ///     async move {
    ///         tokio::task::yield_now().await;
    ///         Ok::<u32, String>(n + 1)
    ///     }
    /// });
    /// assert_eq!(stream::iter([1, 1, 1]).async_wait_on(operator, calls).count().await, 3);
    /// # Ok(())
    /// # }
    /// ```
    fn async_wait_on<C, S, P>(
        self,
        operator: AsyncWaitOperator<Self::Item, C::Output, C::Error, S, P>,
        calls: C,
    ) -> AsyncWait<Self, C, S, P>
    where
        Self: Sized,
        C: Calls<Self::Item>,
        S: KeySelector<Self::Item>,
        P: RetryPredicate<C::Output, C::Error>,
    {
        AsyncWait { source: Some(Box::pin(self)), engine: Engine::new(operator, calls), timing: None }
    }
}

impl<St: Stream + ?Sized> AsyncWaitExt for St {}

/// The stream of [`AsyncWaitExt`]. Dropping it drops the calls that run.
///
/// New calls start, retries begin and deadlines are judged when it is polled. A call that has completed in time is never
/// taken for late because the consumer was.
///
/// ```
/// use asyncio::{AsyncWaitExt, Options};
/// use futures::{StreamExt, stream};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// let options = Options::unordered().timeout(Duration::from_secs(1)).build()?;
/// let mut lengths = stream::iter(["one", "three"]).async_wait(options, |word: &&str| {
///     let length = word.len();
///     async move { Ok::<_, std::convert::Infallible>(length) }
/// });
/// assert_eq!(lengths.next().await.unwrap().unwrap(), 3);
/// // What it is doing, at any time.
/// println!("{:?}", lengths.operator().figures(lengths.now()));
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct AsyncWait<St, C, S = NoKey, P = RetryErrors>
where
    St: Stream,
    C: Calls<St::Item>,
    S: KeySelector<St::Item>,
{
    /// Absent once it has ended.
    source: Source<St>,
    engine: Engine<St::Item, C, S, P>,
    /// Made at the first poll, so that it belongs to the runtime that polls.
    timing: Option<Timing>,
}

type Source<St> = Option<Pin<Box<St>>>;

impl<St, C, S, P> fmt::Debug for AsyncWait<St, C, S, P>
where
    St: Stream,
    C: Calls<St::Item>,
    S: KeySelector<St::Item>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWait")
            .field("source_ended", &self.source.is_none())
            .field("held", &self.engine.operator.len())
            .field("over", &self.engine.over)
            .finish_non_exhaustive()
    }
}

// Source, calls and sleep are pinned on the heap; nothing in the struct itself is.
impl<St, C, S, P> Unpin for AsyncWait<St, C, S, P>
where
    St: Stream,
    C: Calls<St::Item>,
    S: KeySelector<St::Item>,
{
}

impl<St, C, S, P> AsyncWait<St, C, S, P>
where
    St: Stream,
    C: Calls<St::Item>,
    S: KeySelector<St::Item>,
{
    /// The operator behind the stream, as of the last poll: for figures and snapshots.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), asyncio::OptionsError> {
    /// use asyncio::{AsyncWaitExt, Options};
    /// use futures::{StreamExt, stream};
    ///
    /// let mut answers = stream::iter([1]).async_wait(Options::ordered().build()?, |_: &u32| async { Ok::<_, String>(()) });
    /// while answers.next().await.is_some() {}
    /// assert_eq!(answers.operator().figures(answers.now()).records_out, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn operator(&self) -> &AsyncWaitOperator<St::Item, C::Output, C::Error, S, P> {
        &self.engine.operator
    }

    /// Everything the operator tells, as of now.
    #[must_use]
    pub fn report(&self) -> crate::Report {
        self.engine.operator.report(self.now())
    }

    /// The time by the clock that drives the operator; zero before the first poll.
    #[must_use]
    pub fn now(&self) -> runtime_core::Tick {
        self.timing.as_ref().map_or(runtime_core::Tick::ZERO, Timing::now)
    }
}

impl<St, C, S, P> Stream for AsyncWait<St, C, S, P>
where
    St: Stream,
    C: Calls<St::Item>,
    S: KeySelector<St::Item>,
    P: RetryPredicate<C::Output, C::Error>,
{
    type Item = AsyncWaitResult<St::Item, C::Output, C::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { source, engine, timing } = self.get_mut();
        let timing = timing.get_or_insert_with(Timing::of_this_runtime);
        engine.poll_next(source, timing, cx)
    }
}

#[cfg(test)]
mod tests;
