//! The calls of an operator that are all of one kind of future.

mod cell;
#[cfg(all(test, feature = "model"))]
mod model;
mod waiting;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::TryFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop::has_budget_remaining;
use tokio::task::yield_now;

use crate::entry::EntryId;
use crate::inbox::{CompletionInbox, Sender};
use crate::output::CallError;
use cell::Cell;
use waiting::{Found, Poller, Waiting};

/// How many calls the driving task polls in one turn: few, so that it neither holds up others on its thread nor takes
/// the calls away from a consumer that is about to come.
const DRIVERS_RUN: usize = 4;

/// How many calls the consumer takes out at once: as many as make the lock cheap.
const CONSUMERS_RUN: usize = 8;

/// Holds the running calls of one operator, all of one type, and has them polled by whoever is there first: the thread
/// that owns the operator, or one task of the runtime.
///
/// The task alone sees to it that calls make progress however seldom the operator is driven. (A call polled only when
/// somebody asks for the next result stands still while that somebody is slow: futures-rs#2387.) An owner that
/// [polls](Self::poll_woken) them as well spares results the way through the inbox. A waiting call is no task, and once
/// the operator has been full it costs no allocation. Calls run one at a time: one that computes for long should hand
/// that to another thread, or be a task as by [`SpawnedCalls`](crate::SpawnedCalls).
///
/// ```
/// use asyncio::{AsyncWaitOperator, CompletionInbox, DrivenCalls, Effect, Options, Outcome, Output};
/// use runtime_core::time::{Clock, TokioClock};
/// use runtime_core::{Record, StreamElement};
/// use tokio::runtime::Handle;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), asyncio::OptionsError> {
/// let clock = TokioClock::start();
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// let (mut inbox, mut calls) = (CompletionInbox::new(), DrivenCalls::new());
/// operator.push(StreamElement::Record(Record::new(21)), clock.now()).unwrap();
/// while let Some(effect) = operator.next_effect() {
///     match effect {
///         Effect::Start { entry, attempt } => {
///             let n = operator.input(entry).map_or(0, |record| record.value);
///             let call = || async move {
///                 tokio::task::yield_now().await;
///                 Ok(n * 2)
///             };
///             let polled = calls.start(&Handle::current(), &inbox, entry, attempt, call);
///             // One that is ready at once is to be completed here.
///             assert!(polled.is_pending());
///         }
///         Effect::Abandon { entry, attempt } => calls.abandon(entry, attempt),
///         // Only an operator that was told to ask about timeouts asks.
///         Effect::TimedOut { .. } => {}
///     }
/// }
/// inbox.wait().await;
/// inbox.deliver_to(&mut operator, clock.now());
/// assert!(matches!(operator.next_output(), Some(Output::Record { outcome: Outcome::Completed(42), .. })));
/// # Ok(())
/// # }
/// ```
pub struct DrivenCalls<Fut> {
    waiting: Arc<Waiting<Fut>>,
    /// Where the next call is made; a call that is ready at once leaves it for the next.
    next: Option<Cell<Fut>>,
    stock: Vec<Cell<Fut>>,
    /// By the place of an entry, that of the call that was begun for it last.
    places: Vec<u32>,
    /// Known once there is a driver.
    owner: Option<Poller>,
    /// Taken out to be polled; empty between two turns.
    taken: Vec<Cell<Fut>>,
}

impl<Fut> fmt::Debug for DrivenCalls<Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrivenCalls").field("driven", &self.owner.is_some()).finish_non_exhaustive()
    }
}

impl<Fut> Default for DrivenCalls<Fut> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Fut> DrivenCalls<Fut> {
    /// No calls yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            waiting: Arc::new(Waiting::new()),
            next: None,
            stock: Vec::new(),
            places: Vec::new(),
            owner: None,
            taken: Vec::new(),
        }
    }

    /// Drops this attempt's call if it still runs: at once, or, if the task polls it just now, after that.
    pub fn abandon(&mut self, entry: EntryId, attempt: u32) {
        let Some(&place) = self.places.get(entry.slot()) else { return };
        if let Some(mut cell) = self.waiting.let_go(place, (entry, attempt)) {
            cell.clear();
            self.stock.push(cell);
        }
    }
}

impl<Fut> DrivenCalls<Fut>
where
    Fut: TryFuture
        + Future<Output = Result<<Fut as TryFuture>::Ok, <Fut as TryFuture>::Error>>
        + Send
        + 'static,
    Fut::Ok: Send + 'static,
    Fut::Error: Send + 'static,
{
    /// Makes a call and polls it. Pending: its completion will come through the inbox, or be handed over by
    /// [`poll_woken`](Self::poll_woken). A call that panics, or whose making does, ends with the panic's text.
    #[inline]
    pub fn start(
        &mut self,
        runtime: &Handle,
        inbox: &CompletionInbox<Fut::Ok, Fut::Error>,
        entry: EntryId,
        attempt: u32,
        make: impl FnOnce() -> Fut,
    ) -> Poll<Result<Fut::Ok, CallError<Fut::Error>>> {
        let attempt = (entry, attempt);
        let cell = self.next.get_or_insert_with(|| Cell::new(&self.waiting, attempt));
        match cell.begin(attempt, make) {
            Poll::Ready(ended) => Poll::Ready(result(ended)),
            Poll::Pending => {
                self.wait(runtime, inbox, entry);
                Poll::Pending
            }
        }
    }

    /// The call just made waits.
    #[inline(never)]
    fn wait(&mut self, runtime: &Handle, inbox: &CompletionInbox<Fut::Ok, Fut::Error>, entry: EntryId) {
        if self.owner.is_none() {
            self.owner = Some(match runtime.runtime_flavor() {
                RuntimeFlavor::CurrentThread => Poller::Consumer,
                // Waking a second thread costs more than results through the inbox.
                _ => Poller::Passer,
            });
            runtime.spawn(drive(Arc::clone(&self.waiting), inbox.sender()));
        }
        let Some(cell) = self.next.take() else { return };
        if self.places.len() <= entry.slot() {
            self.places.resize(entry.slot() + 1, u32::MAX);
        }
        if let Some(place) = self.places.get_mut(entry.slot()) {
            *place = cell.place;
        }
        self.waiting.begin(cell);
        self.next = self.stock.pop().or_else(|| self.waiting.spare());
    }

    /// Polls calls that were woken, at most about so many, and hands over the results of those that have ended. Says
    /// whether there may be more; they need not be polled here, the task does it too.
    pub fn poll_woken(
        &mut self,
        cx: &mut Context<'_>,
        at_most: usize,
        mut take: impl FnMut(EntryId, u32, Result<Fut::Ok, CallError<Fut::Error>>),
    ) -> bool {
        let Some(owner) = self.owner else { return false };
        let mut polled = 0;
        while polled < at_most {
            // Without budget a call could only say that it has none.
            if !has_budget_remaining() {
                return true;
            }
            let found = self.waiting.take(owner, cx.waker(), CONSUMERS_RUN.min(at_most), &mut self.taken);
            polled += self.taken.len();
            for mut cell in self.taken.drain(..) {
                if !has_budget_remaining() {
                    let place = cell.place;
                    self.waiting.put_back(cell);
                    self.waiting.wake(place);
                    continue;
                }
                match cell.poll() {
                    Poll::Pending => self.waiting.put_back(cell),
                    Poll::Ready(ended) => {
                        let (entry, attempt) = cell.attempt;
                        self.stock.push(cell);
                        take(entry, attempt, result(ended));
                    }
                }
            }
            if found != Found::More {
                return false;
            }
        }
        true
    }
}

fn result<R, E>(ended: Result<Result<R, E>, String>) -> Result<R, CallError<E>> {
    match ended {
        Ok(result) => result.map_err(CallError::Error),
        Err(panic) => Err(CallError::Panicked(panic)),
    }
}

/// Polls what is woken until the calls' owner is gone.
fn drive<Fut>(
    waiting: Arc<Waiting<Fut>>,
    results: Sender<Fut::Ok, Fut::Error>,
) -> impl Future<Output = ()> + Send
where
    Fut: TryFuture
        + Future<Output = Result<<Fut as TryFuture>::Ok, <Fut as TryFuture>::Error>>
        + Send
        + 'static,
    Fut::Ok: Send + 'static,
    Fut::Error: Send + 'static,
{
    let mut calls = Vec::with_capacity(DRIVERS_RUN);
    poll_fn(move |cx| {
        let found = waiting.take(Poller::Driver, cx.waker(), DRIVERS_RUN, &mut calls);
        for mut cell in calls.drain(..) {
            match cell.poll() {
                Poll::Pending => waiting.put_back(cell),
                Poll::Ready(ended) => {
                    let (entry, attempt) = cell.attempt;
                    if waiting.ended(cell) {
                        results.send(entry, attempt, result(ended));
                    }
                }
            }
        }
        match found {
            Found::All => Poll::Pending,
            // Everybody else on this thread comes first, the consumer among them.
            Found::More => pin!(yield_now()).poll(cx),
            Found::Closed => Poll::Ready(()),
        }
    })
}

impl<Fut> Drop for DrivenCalls<Fut> {
    fn drop(&mut self) {
        self.waiting.close().iter_mut().for_each(Cell::clear);
    }
}
