//! The operator's core.
//!
//! The life of a record: it is *admitted* (takes one of `capacity` places), *starts* (at once, or in keyed order when its
//! key lets it), is *in flight* until a completion or a timer decides its outcome, perhaps with pauses between attempts,
//! and *leaves* when the order lets it. The parts of this module follow that life: `admission`, `calls` (effects and
//! completions), `timers`, `emission`.
//!
//! Invariants: every admitted record leaves with exactly one outcome, except on [`close`](AsyncWaitOperator::close); first
//! attempts start in the order of admission (within its key, in keyed order); no record passes a watermark or a status;
//! what is held never exceeds the capacity; after the last record has left no timer is armed.

mod admission;
mod calls;
mod emission;
mod offer;
mod parking;
mod timers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use runtime_core::metrics::Histogram;
use runtime_core::{Record, Tick};

pub use admission::{Refused, RefusedReason};
pub use calls::Effect;
pub use offer::Offered;
pub use parking::SnapshotRefused;

use crate::coalesce::Coalescing;
use crate::context::CallContext;
use crate::deadlines::Deadlines;
use crate::entries::Entries;
use crate::entry::EntryId;
use crate::figures::Figures;
use crate::key::{KeySelector, NoKey};
use crate::options::{Options, Order};
use crate::output::Output;
use crate::queue::Queue;
use crate::queue::keys::Keys;
use crate::retry::{RetryAllowance, RetryErrors};
use parking::Parked;

/// The state machine of asynchronous waiting (Flink: `AsyncWaitOperator` with its `StreamElementQueue`).
///
/// It belongs to one thread, which in turns
///
/// 1. [pushes](Self::push) elements while [`is_available`](Self::is_available),
/// 2. carries out [effects](Self::next_effect): starts calls and abandons them,
/// 3. hands in [completions](Self::complete), those that came from other threads before the timers, so that a result that
///    came in time is not taken for late,
/// 4. [advances](Self::advance) the timers,
/// 5. takes [output](Self::next_output).
///
/// Calls that are not ready at once complete through a [`CompletionInbox`](crate::CompletionInbox); their owner waits for
/// that, for [`next_wakeup`](Self::next_wakeup) and for input, and then goes through the turns again.
///
/// Each method that changes time takes `now`; a time before one already seen counts as that one.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options, Outcome, Output};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::ordered().build()?);
/// operator.push(StreamElement::Record(Record::new(21)), now).unwrap();
/// while let Some(effect) = operator.next_effect() {
///     if let Effect::Start { entry, attempt, .. } = effect {
///         let answer = operator.input(entry).map_or(0, |record| record.value * 2);
///         operator.complete(entry, attempt, Ok(answer), now);
///     }
/// }
/// assert!(matches!(operator.next_output(), Some(Output::Record { outcome: Outcome::Completed(42), .. })));
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
pub struct AsyncWaitOperator<I, R, E, S: KeySelector<I> = NoKey, P = RetryErrors> {
    pub(crate) options: Options,
    selector: S,
    predicate: P,
    pub(crate) entries: Entries<I, R, E>,
    pub(crate) queue: Queue,
    /// Present in keyed order.
    keys: Option<Keys<S::Key>>,
    coalescing: Option<Coalescing<I, R, E>>,
    allowance: Option<RetryAllowance>,
    /// Whether the end of a budget is asked about instead of being a failure.
    asks_on_timeout: bool,
    pub(crate) occupied: usize,
    next_sequence: u64,
    /// Taken in beyond the capacity, in order. They take the next places that are free.
    parked: VecDeque<Parked<I>>,
    /// What leaves ahead of the order.
    leaving: VecDeque<Output<I, R, E>>,
    effects: VecDeque<Effect>,
    /// The attempt begun last, whose deadlines are not armed yet: a call that is ready at once never touches them.
    unarmed: Option<(EntryId, u32)>,
    budgets: Deadlines,
    attempt_limits: Deadlines,
    /// Ends of pauses. Only those before the record's deadline stand here, so none outlives its pause by much.
    retries: BinaryHeap<Reverse<(Tick, u64, u32)>>,
    now: Tick,
    pub(crate) full_since: Option<Tick>,
    ended: bool,
    failed: bool,
    pub(crate) figures: Figures,
    /// Records that have passed without being held.
    pub(crate) passed: u64,
    /// Records that were held and started at once.
    pub(crate) unqueued: u64,
    pub(crate) latency: Histogram,
    pub(crate) queue_wait: Histogram,
}

impl<I, R, E> AsyncWaitOperator<I, R, E> {
    /// An operator whose records have no keys and that retries, where the options say so, after any error.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::with(options, NoKey, RetryErrors)
    }
}

impl<I, R, E, S: KeySelector<I>, P> AsyncWaitOperator<I, R, E, S, P> {
    /// An operator that takes keys by `selector` (used in keyed order alone) and judges attempts by `predicate`.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, CallError, NeverRetry, Options};
    ///
    /// // Words that begin alike are asked about one after the other.
    /// let first_letter = |word: &String| word.chars().next();
    /// let options = Options::keyed().build()?;
    /// let operator = AsyncWaitOperator::<String, u32, String, _, _>::with(options, first_letter, NeverRetry);
    /// assert!(operator.is_empty());
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    #[must_use]
    pub fn with(options: Options, selector: S, predicate: P) -> Self {
        let keys = (options.order() == Order::Keyed).then(|| Keys::new(options.max_in_flight_per_key()));
        Self {
            queue: Queue::new(options.order()),
            figures: Figures { capacity: options.capacity(), ..Figures::default() },
            allowance: options.retry_budget().map(RetryAllowance::new),
            options,
            selector,
            predicate,
            entries: Entries::new(),
            keys,
            coalescing: None,
            asks_on_timeout: false,
            occupied: 0,
            next_sequence: 0,
            parked: VecDeque::new(),
            leaving: VecDeque::new(),
            effects: VecDeque::new(),
            unarmed: None,
            budgets: Deadlines::new(),
            attempt_limits: Deadlines::new(),
            retries: BinaryHeap::new(),
            now: Tick::ZERO,
            full_since: None,
            ended: false,
            failed: false,
            passed: 0,
            unqueued: 0,
            latency: Histogram::new(),
            queue_wait: Histogram::new(),
        }
    }

    /// Lets records that `selector` gives equal keys share a call while it is in flight: one that would start meanwhile
    /// gets a copy of its outcome instead, errors included. Deadlines stay each record's own. Records without key share
    /// with nobody.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Options};
    /// use runtime_core::{Record, StreamElement, Tick};
    ///
    /// let options = Options::ordered().build()?;
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options).coalescing_by(|n: &u32| Some(*n));
    /// for n in [7, 7, 8] {
    ///     operator.push(StreamElement::Record(Record::new(n)), Tick::ZERO).unwrap();
    /// }
    /// assert_eq!(operator.figures(Tick::ZERO).calls, 2);
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    #[must_use]
    pub fn coalescing_by<K>(mut self, selector: K) -> Self
    where
        R: Clone,
        E: Clone,
        K: KeySelector<I> + Send + 'static,
        K::Key: Send + 'static,
    {
        self.coalescing = Some(Coalescing::by(selector));
        self
    }

    /// Asks what follows when a record's budget ends, by [`Effect::TimedOut`], instead of failing the record (Flink:
    /// `AsyncFunction.timeout`). The record's next completion is its outcome then, whatever it is; until it comes the
    /// record is in flight, and no second timeout is armed.
    ///
    /// ```
    /// use asyncio::{AsyncWaitOperator, Effect, Options, Outcome, Output};
    /// use runtime_core::{Record, StreamElement, Tick};
    /// use std::time::Duration;
    ///
    /// let options = Options::ordered().timeout(Duration::from_millis(10)).build()?;
    /// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(options).asking_on_timeout();
    /// operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
    /// while operator.next_effect().is_some() {}
    /// let late = Tick::from_millis(10);
    /// operator.advance(late);
    /// while let Some(effect) = operator.next_effect() {
    ///     if let Effect::TimedOut { entry, attempt } = effect {
    ///         operator.complete(entry, attempt, Ok(0), late);
    ///     }
    /// }
    /// assert!(matches!(operator.next_output(), Some(Output::Record { outcome: Outcome::Completed(0), .. })));
    /// # Ok::<(), asyncio::OptionsError>(())
    /// ```
    #[must_use]
    pub const fn asking_on_timeout(mut self) -> Self {
        self.asks_on_timeout = true;
        self
    }

    /// The options it was made with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The record of this name, while it is held: what a started call asks about.
    #[must_use]
    pub fn input(&self, entry: EntryId) -> Option<&Record<I>> {
        self.entries.find(entry)?.input.as_ref()
    }

    /// What the newest attempt of this record may know of itself.
    #[must_use]
    pub fn context(&self, entry: EntryId) -> Option<CallContext> {
        let entry = self.entries.find(entry)?;
        Some(CallContext {
            attempt: entry.attempts().count,
            started_at: entry.last_at,
            deadline: self.deadline_of(entry.first_at, entry.last_at),
            identity: entry.identity(self.options.idempotency_scope()),
        })
    }

    /// When nobody waits any more for an attempt that starts at `last_at`.
    fn deadline_of(&self, first_at: Tick, last_at: Tick) -> Option<Tick> {
        let budget = self.options.timeout().map(|timeout| first_at + timeout);
        let limit = self.options.attempt_timeout().map(|limit| last_at + limit);
        [budget, limit].into_iter().flatten().min()
    }

    /// How many places are taken: by records of any state, watermarks and statuses. Parked elements take none.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.occupied
    }

    /// Whether nothing is held and nothing waits to leave.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.leaving.is_empty() && self.parked.is_empty()
    }

    /// How many records have a call that is running or pausing before a retry.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.figures.in_flight
    }

    /// Whether a record has failed under [`FailurePolicy::Fail`](crate::FailurePolicy::Fail). The operator goes on, so
    /// that nobody hangs, but takes no snapshots any more.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Time does not run backwards: deadlines of equal length are kept in the order in which they were set.
    fn at(&mut self, now: Tick) -> Tick {
        self.now = self.now.max(now);
        self.now
    }
}

#[cfg(test)]
mod tests;
