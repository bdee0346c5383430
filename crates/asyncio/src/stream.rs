//! The operator behind a `futures::Stream`.
//!
//! A shell: it asks the runtime's clock, polls the source, carries out effects and sleeps until the next timer. A call
//! is polled once where it is made; one that is ready by that completes on the spot, without a task or an allocation.
//! One that is not becomes a task of the runtime and makes progress however slow the consumer is. (`buffered` polls its
//! calls only while it is polled itself, so they stand still behind a slow consumer: futures-rs#2387.)

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures::Stream;
use runtime_core::time::{Clock, TokioClock};
use runtime_core::{Record, StreamElement, Tick};
use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::inbox::{Completion, CompletionInbox};
use crate::key::{KeySelector, NoKey};
use crate::operator::{AsyncWaitOperator, Effect};
use crate::options::Options;
use crate::output::{Attempts, FailureReason, Outcome, Output};
use crate::retry::{RetryErrors, RetryPredicate};
use crate::spawned::SpawnedCalls;

/// How many results are handed out, and inputs taken in, between two looks at clock, inbox and source. Long enough that
/// the looks cost little, short enough that freed places are soon taken again.
const RUN: usize = 32;

/// What the stream gives for each input.
pub type AsyncWaitResult<I, R, E> = Result<R, Failed<I, E>>;

/// An input whose calls have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed<I, E> {
    /// What came from the source.
    pub input: I,
    /// Why it has failed.
    pub reason: FailureReason<E>,
    /// The calls that were made for it.
    pub attempts: Attempts,
}

impl<I, E: fmt::Display> fmt::Display for Failed<I, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer after {} attempt(s): {}", self.attempts.count, self.reason)
    }
}

impl<I: fmt::Debug, E: fmt::Debug + fmt::Display> std::error::Error for Failed<I, E> {}

/// Asynchronous waiting for every stream, on tokio.
pub trait AsyncWaitExt: Stream {
    /// Makes a call for every input and gives the results in the order that `options` say.
    ///
    /// `call` is asked once for each attempt, in the order of the inputs. A call that panics when it runs counts as
    /// [`FailureReason::HandleDropped`]; one that panics at its first poll panics here. In keyed order, for which inputs
    /// need a key, use [`async_wait_with`](Self::async_wait_with).
    ///
    /// # Panics
    ///
    /// The stream panics when polled outside a tokio runtime with time enabled.
    fn async_wait<F, Fut, R, E>(self, options: Options, call: F) -> AsyncWait<Self, F, Fut, R, E>
    where
        Self: Sized,
        F: FnMut(&Self::Item) -> Fut,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        self.async_wait_with(options, NoKey, RetryErrors, call)
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
    ) -> AsyncWait<Self, F, Fut, R, E, S, P>
    where
        Self: Sized,
        S: KeySelector<Self::Item>,
        P: RetryPredicate<R, E>,
        F: FnMut(&Self::Item) -> Fut,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Send + 'static,
        E: Send + 'static,
    {
        AsyncWait {
            source: Some(Box::pin(self)),
            operator: AsyncWaitOperator::with(options, selector, predicate),
            calls: Calls {
                call,
                unused: None,
                inbox: CompletionInbox::new(),
                spawned: SpawnedCalls::new(),
                drained: Vec::new(),
            },
            run: 0,
            timing: None,
        }
    }
}

impl<St: Stream + ?Sized> AsyncWaitExt for St {}

/// The stream of [`AsyncWaitExt`]. Dropping it drops the calls that run.
///
/// New calls start, retries begin and deadlines are judged when it is polled. A call that has completed in time is never
/// taken for late because the consumer was.
#[must_use = "streams do nothing unless polled"]
pub struct AsyncWait<St: Stream, F, Fut, R, E, S: KeySelector<St::Item> = NoKey, P = RetryErrors> {
    /// Absent once it has ended.
    source: Option<Pin<Box<St>>>,
    operator: AsyncWaitOperator<St::Item, R, E, S, P>,
    calls: Calls<F, Fut, R, E>,
    /// How many more results may be handed out before the next look at everything else.
    run: usize,
    /// Made at the first poll, so that it belongs to the runtime that polls.
    timing: Option<Timing>,
}

/// The calls and where their completions come in.
struct Calls<F, Fut, R, E> {
    call: F,
    /// A box whose last call was ready at once.
    unused: Option<Pin<Box<Option<Fut>>>>,
    inbox: CompletionInbox<R, E>,
    spawned: SpawnedCalls,
    drained: Vec<Completion<R, E>>,
}

#[derive(Debug)]
struct Timing {
    runtime: Handle,
    clock: TokioClock,
    sleep: Pin<Box<Sleep>>,
    sleeps_until: Tick,
}

impl Timing {
    fn of_this_runtime() -> Self {
        let clock = TokioClock::start();
        let sleep = Box::pin(tokio::time::sleep_until(clock.instant(Tick::ZERO)));
        Self { runtime: Handle::current(), clock, sleep, sleeps_until: Tick::ZERO }
    }

    /// Ready when `at` has come.
    fn poll_until(&mut self, at: Tick, cx: &mut Context<'_>) -> Poll<()> {
        if self.sleeps_until != at {
            self.sleep.as_mut().reset(self.clock.instant(at));
            self.sleeps_until = at;
        }
        self.sleep.as_mut().poll(cx)
    }
}

impl<F, Fut, R, E> Calls<F, Fut, R, E>
where
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    /// Hands in what has come, and has the next completion wake the consumer.
    fn collect<I, S, P>(&mut self, operator: &mut AsyncWaitOperator<I, R, E, S, P>, now: Tick, waker: &Waker)
    where
        S: KeySelector<I>,
        P: RetryPredicate<R, E>,
    {
        if self.inbox.register(waker) {
            self.inbox.drain_into(&mut self.drained);
            for Completion { entry, attempt, result } in self.drained.drain(..) {
                self.spawned.completed(entry, attempt);
                operator.complete(entry, attempt, result, now);
            }
        }
    }

    /// Starts and abandons calls until there is nothing to do.
    fn carry_out<I, S, P>(
        &mut self,
        operator: &mut AsyncWaitOperator<I, R, E, S, P>,
        now: Tick,
        runtime: &Handle,
    ) where
        F: FnMut(&I) -> Fut,
        S: KeySelector<I>,
        P: RetryPredicate<R, E>,
    {
        while let Some(effect) = operator.next_effect() {
            let (entry, attempt) = match effect {
                Effect::Start { entry, attempt, .. } => (entry, attempt),
                Effect::Abandon { entry, attempt } => {
                    self.spawned.abandon(entry, attempt);
                    continue;
                }
            };
            let Some(call) = operator.input(entry).map(|record| (self.call)(&record.value)) else { continue };
            let mut place = self.unused.take().unwrap_or_else(|| Box::pin(None));
            place.as_mut().set(Some(call));
            // The task it may become polls it again with a waker of its own.
            match poll_in(&mut place, &mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => {
                    place.as_mut().set(None);
                    self.unused = Some(place);
                    operator.complete(entry, attempt, result.map_err(crate::CallError::Error), now);
                }
                Poll::Pending => {
                    let call = poll_fn(move |cx| poll_in(&mut place, cx));
                    self.spawned.spawn(runtime, &self.inbox, entry, attempt, call);
                }
            }
        }
    }
}

fn poll_in<Fut: Future>(place: &mut Pin<Box<Option<Fut>>>, cx: &mut Context<'_>) -> Poll<Fut::Output> {
    // The place is filled before it is polled and emptied only when the call was ready.
    place.as_mut().as_pin_mut().map_or(Poll::Pending, |call| call.poll(cx))
}

// Source, calls and sleep are pinned on the heap; nothing in the struct itself is.
impl<St: Stream, F, Fut, R, E, S: KeySelector<St::Item>, P> Unpin for AsyncWait<St, F, Fut, R, E, S, P> {}

impl<St, F, Fut, R, E, S, P> AsyncWait<St, F, Fut, R, E, S, P>
where
    St: Stream,
    S: KeySelector<St::Item>,
{
    /// What the operator behind the stream tells about itself, as of the last poll.
    pub fn operator(&self) -> &AsyncWaitOperator<St::Item, R, E, S, P> {
        &self.operator
    }

    fn next_result(&mut self) -> Option<AsyncWaitResult<St::Item, R, E>> {
        loop {
            // Only records were pushed.
            let Output::Record { input, outcome, attempts } = self.operator.next_output()? else { continue };
            return Some(match outcome {
                Outcome::Completed(answer) => Ok(answer),
                Outcome::Failed(reason) => Err(Failed { input: input.value, reason, attempts }),
            });
        }
    }
}

impl<St, F, Fut, R, E, S, P> AsyncWait<St, F, Fut, R, E, S, P>
where
    St: Stream,
    S: KeySelector<St::Item>,
    P: RetryPredicate<R, E>,
    F: FnMut(&St::Item) -> Fut,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    /// Takes inputs in while there is room, at most one run of them. Pending when the source has to wake the consumer.
    fn take_in(&mut self, now: Tick, runtime: &Handle, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..RUN {
            let Some(source) = self.source.as_mut().filter(|_| self.operator.is_available()) else {
                return Poll::Ready(());
            };
            match ready!(source.as_mut().poll_next(cx)) {
                Some(input) => {
                    // There is room, so it is not refused.
                    let _ = self.operator.push(StreamElement::Record(Record::new(input)), now);
                }
                None => {
                    self.source = None;
                    self.operator.end_of_input(now);
                }
            }
            self.calls.carry_out(&mut self.operator, now, runtime);
        }
        Poll::Ready(())
    }

    /// Looks at everything: completions, timers, source, results.
    fn turn(
        &mut self,
        timing: &mut Timing,
        cx: &mut Context<'_>,
    ) -> Poll<Option<AsyncWaitResult<St::Item, R, E>>> {
        loop {
            let now = timing.clock.now();
            // Completions before timers: what has come is not late.
            self.calls.collect(&mut self.operator, now, cx.waker());
            self.operator.advance(now);
            self.calls.carry_out(&mut self.operator, now, &timing.runtime);
            let source = self.take_in(now, &timing.runtime, cx);
            if let Some(result) = self.next_result() {
                // A small operator is looked after more often: its places must not stand empty meanwhile.
                self.run = RUN.min(self.operator.options().capacity() / 4);
                return Poll::Ready(Some(result));
            }
            if self.operator.is_drained() {
                return Poll::Ready(None);
            }
            if source.is_ready() && self.source.is_some() && self.operator.is_available() {
                // The source has more to give; others on this thread come first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match self.operator.next_wakeup() {
                Some(at) => ready!(timing.poll_until(at, cx)),
                None => return Poll::Pending,
            }
        }
    }
}

impl<St, F, Fut, R, E, S, P> Stream for AsyncWait<St, F, Fut, R, E, S, P>
where
    St: Stream,
    S: KeySelector<St::Item>,
    P: RetryPredicate<R, E>,
    F: FnMut(&St::Item) -> Fut,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Item = AsyncWaitResult<St::Item, R, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.run > 0
            && let Some(result) = this.next_result()
        {
            this.run -= 1;
            return Poll::Ready(Some(result));
        }
        let mut timing = this.timing.take().unwrap_or_else(Timing::of_this_runtime);
        let polled = this.turn(&mut timing, cx);
        this.timing = Some(timing);
        polled
    }
}

#[cfg(test)]
mod tests;
