//! One record in the operator, and the name it goes by.

use runtime_core::{Record, Tick};

use crate::context::Identity;
use crate::output::{Attempts, Outcome};

/// Stands for "no entry" in a link.
pub(crate) const NONE: u32 = u32::MAX;

/// The name of a record in the operator. Never used twice: a completion that comes after its record has left names
/// nobody, even when the place of the record was taken by another.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<&str, u32, String>::new(Options::ordered().build()?);
/// let mut start = |operator: &mut AsyncWaitOperator<&'static str, u32, String>, value| {
///     operator.push(StreamElement::Record(Record::new(value)), now).unwrap();
///     let Some(Effect::Start { entry, .. }) = operator.next_effect() else { panic!("it starts") };
///     entry
/// };
/// let first = start(&mut operator, "first");
/// operator.complete(first, 1, Ok(1), now);
/// operator.next_output();
/// // The place is taken again, the name is not.
/// let second = start(&mut operator, "second");
/// assert_eq!((first.slot(), second.slot()), (0, 0));
/// assert_eq!((first.sequence(), second.sequence()), (0, 1));
/// assert!(operator.input(first).is_none());
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryId {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
}

impl EntryId {
    /// The record's number in the order of admission, watermarks and statuses counted too.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.sequence
    }

    /// The record's place, taken again once the record has left; places are numbered from 0 and there are no more of them
    /// than records were ever held at a time. Shells index what they hold for a record by it.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Where a record stands.
#[derive(Debug)]
pub(crate) enum State<R, E> {
    /// Waits for its key.
    Queued,
    /// Its attempt runs.
    InFlight,
    /// Pauses before its next attempt, or until its budget ends.
    Backoff,
    /// Waits for the outcome of an equal record that is in flight.
    Following,
    /// Its budget has ended, and whoever drives the operator was asked what follows.
    TimedOut,
    /// Has its outcome.
    Done(Outcome<R, E>),
    /// Has its outcome, which has left ahead of the order; what is left is its place.
    Gone,
}

/// What a record brings from before a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    /// The attempts that were made for it.
    pub(crate) attempts: u32,
    /// What its idempotency key is made of.
    pub(crate) identity: Identity,
}

#[derive(Debug)]
pub(crate) struct Entry<I, R, E> {
    pub(crate) sequence: u64,
    /// Absent once it has left ahead of the order.
    pub(crate) input: Option<Record<I>>,
    pub(crate) state: State<R, E>,
    /// The number of the newest attempt since the record was taken in, 0 before the first.
    pub(crate) attempt: u32,
    /// When it was taken in, and once it has started, when it first did.
    pub(crate) first_at: Tick,
    pub(crate) last_at: Tick,
    /// The segment it belongs to, counted from the operator's first.
    pub(crate) segment: u64,
    /// The place of its key, or [`NONE`].
    pub(crate) key: u32,
    pub(crate) past: Option<Box<Past>>,
}

impl<I, R, E> Entry<I, R, E> {
    pub(crate) const fn new(sequence: u64, input: Record<I>, segment: u64, now: Tick) -> Self {
        Self {
            sequence,
            input: Some(input),
            state: State::Queued,
            attempt: 0,
            first_at: now,
            last_at: now,
            segment,
            key: NONE,
            past: None,
        }
    }

    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_) | State::Gone)
    }

    /// Whether a completion of attempt `attempt` counts.
    pub(crate) const fn awaits(&self, attempt: u32) -> bool {
        matches!(self.state, State::InFlight | State::TimedOut) && self.attempt == attempt
    }

    /// Whether attempt `attempt` is running within its budget.
    pub(crate) const fn runs(&self, attempt: u32) -> bool {
        matches!(self.state, State::InFlight) && self.attempt == attempt
    }

    /// Whether its work has begun and has no outcome yet.
    pub(crate) const fn is_in_flight(&self) -> bool {
        matches!(self.state, State::InFlight | State::Backoff | State::Following | State::TimedOut)
    }

    pub(crate) fn identity(&self, scope: u64) -> Identity {
        self.past.as_ref().map_or(Identity { scope, sequence: self.sequence }, |past| past.identity)
    }

    /// The attempts made for it before it was taken in here.
    pub(crate) fn earlier_attempts(&self) -> u32 {
        self.past.as_ref().map_or(0, |past| past.attempts)
    }

    pub(crate) fn attempts(&self) -> Attempts {
        Attempts {
            count: self.earlier_attempts().saturating_add(self.attempt),
            first_at: self.first_at,
            last_at: self.last_at,
        }
    }
}
