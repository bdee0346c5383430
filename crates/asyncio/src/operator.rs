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
mod timers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use runtime_core::{Record, Tick};
use slab::Slab;

pub use admission::{Refused, RefusedReason};
pub use calls::Effect;

use crate::deadlines::Deadlines;
use crate::entry::{Entries, EntryId, find};
use crate::figures::Figures;
use crate::key::{KeySelector, NoKey};
use crate::options::{Options, Order};
use crate::queue::Queue;
use crate::queue::keys::Keys;
use crate::retry::RetryErrors;
use emission::Bypass;

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
    options: Options,
    selector: S,
    predicate: P,
    entries: Entries<I, R, E>,
    queue: Queue,
    /// Present in keyed order.
    keys: Option<Keys<S::Key>>,
    occupied: usize,
    next_sequence: u64,
    bypass: VecDeque<Bypass>,
    effects: VecDeque<Effect>,
    /// The attempt handed out last, whose deadlines are not armed yet: a call that is ready at once never touches them.
    unarmed: Option<(EntryId, u32)>,
    budgets: Deadlines,
    attempt_limits: Deadlines,
    /// Ends of pauses. Only those before the record's deadline stand here, so none outlives its pause by much.
    retries: BinaryHeap<Reverse<(Tick, u64, u32)>>,
    now: Tick,
    full_since: Option<Tick>,
    ended: bool,
    figures: Figures,
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
    #[must_use]
    pub fn with(options: Options, selector: S, predicate: P) -> Self {
        let keys = (options.order() == Order::Keyed).then(|| Keys::new(options.max_in_flight_per_key()));
        Self {
            queue: Queue::new(options.order()),
            figures: Figures { capacity: options.capacity(), ..Figures::default() },
            options,
            selector,
            predicate,
            entries: Slab::new(),
            keys,
            occupied: 0,
            next_sequence: 0,
            bypass: VecDeque::new(),
            effects: VecDeque::new(),
            unarmed: None,
            budgets: Deadlines::new(),
            attempt_limits: Deadlines::new(),
            retries: BinaryHeap::new(),
            now: Tick::ZERO,
            full_since: None,
            ended: false,
        }
    }

    /// The options it was made with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The record of this name, while it is held: what a started call asks about.
    #[must_use]
    pub fn input(&self, entry: EntryId) -> Option<&Record<I>> {
        find(&self.entries, entry).map(|entry| &entry.input)
    }

    /// How many elements are held: records of any state, watermarks and statuses.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.occupied
    }

    /// Whether nothing is held and nothing waits to leave.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.occupied == 0 && self.bypass.is_empty()
    }

    /// How many records have a call that is running or pausing before a retry.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.figures.in_flight
    }

    /// What there is to tell at `now`. Walks over what is held: for a scrape, not for each record.
    #[must_use]
    pub fn figures(&self, now: Tick) -> Figures {
        let running = self.entries.iter().filter(|(_, entry)| entry.is_in_flight());
        let oldest = running.map(|(_, entry)| entry.first_at).min();
        let full_for = self.full_since.map_or(Duration::ZERO, |since| now.since(since));
        Figures {
            occupied: self.occupied,
            oldest_in_flight: oldest.map(|first_at| now.since(first_at)),
            blocked: self.figures.blocked + full_for,
            ..self.figures
        }
    }

    /// Time does not run backwards: deadlines of equal length are kept in the order in which they were set.
    fn at(&mut self, now: Tick) -> Tick {
        self.now = self.now.max(now);
        self.now
    }
}

#[cfg(test)]
mod tests;
