//! How an event is put, and what can be said against it.

use crate::tag::Tag;
use crate::ticket::Ticket;
use runtime_core::{Epoch, Tick};
use std::fmt;

/// What an event may have besides its place in the queue. The default is none of it.
#[derive(Clone, Default, Debug)]
pub struct PutOptions {
    /// Latest start: an event that has not started by then is `NotRun(TimedOut)`. The moment itself is too late.
    pub deadline: Option<Tick>,
    /// The name under which the event can be replaced or cancelled while it waits.
    pub tag: Option<Tag>,
    /// Who is let in when the queue is full. It never changes the order.
    pub lane: Lane,
    /// The epoch the event belongs to: if the loop's epoch is another when the event is about to start, it is not run.
    pub epoch: Option<Epoch>,
}

/// Who is let in when the queue fills. Lanes change admission only: order is what handlers rely on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lane {
    /// Always admitted.
    Control,
    /// Refused when the queue has reached its capacity.
    #[default]
    Normal,
    /// Refused from [`LoopOptions::low_watermark`](crate::LoopOptions::low_watermark) on.
    Low,
}

/// When a scheduled event becomes due. Combined with the time of the event that it replaces, if there is one.
pub enum When {
    /// At this moment.
    At(Tick),
    /// At this moment or at that of the replaced event, whichever is earlier.
    Earliest(Tick),
    /// At this moment or at that of the replaced event, whichever is later.
    Latest(Tick),
    /// As the function says, given the moment of the event with the same tag, if one waits. It runs on the caller's
    /// thread before anything is changed: if it panics, nothing has happened. It may itself use the loop's handle.
    With(Box<dyn FnOnce(Option<Tick>) -> Tick + Send>),
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => f.debug_tuple("At").field(at).finish(),
            Self::Earliest(at) => f.debug_tuple("Earliest").field(at).finish(),
            Self::Latest(at) => f.debug_tuple("Latest").field(at).finish(),
            Self::With(_) => f.write_str("With(..)"),
        }
    }
}

/// What `clear_and_put` clears.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ClearScope {
    /// Every queued event, with and without a deadline; scheduled events stay.
    #[default]
    Fifo,
    /// Every queued and every scheduled event.
    All,
}

/// What `clear_and_put` did.
#[derive(Debug)]
pub struct Cleared {
    /// The ticket of the event that was put.
    pub ticket: Ticket,
    /// How many events were cleared, each of which has been told `NotRun(Preempted)`.
    pub count: usize,
}

/// Why an event was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutRefusal {
    /// The queue is full.
    #[error("the event was refused: {depth} events wait already and the capacity is {capacity}; try later")]
    Overloaded {
        /// How many events waited.
        depth: usize,
        /// How many may.
        capacity: usize,
    },
    /// The loop is draining or has been closed.
    #[error("the event was refused: the event loop is closed")]
    Closed,
    /// The loop ended because of a fault.
    #[error("the event was refused: the event loop died of a fault")]
    Dead,
    /// The caller would have waited, inside the loop, for room that only the loop can make.
    #[error("the event was refused: waiting for room here would wait for the caller's own loop")]
    WouldDeadlock,
}

/// The event was not accepted and comes back; nothing has changed and nothing was called.
pub enum PutError<E> {
    /// The queue is full: try again later, or shed the work.
    Overloaded {
        /// The refused event.
        event: E,
        /// How many events waited.
        depth: usize,
        /// How many may.
        capacity: usize,
    },
    /// The loop is draining or has been closed.
    Closed(E),
    /// The loop ended because of a fault.
    Dead(E),
    /// The caller would have waited, inside the loop, for room that only the loop can make: use `put` there, which is
    /// not bound by the capacity.
    WouldDeadlock(E),
}

impl<E> PutError<E> {
    /// The refused event.
    pub fn into_event(self) -> E {
        match self {
            Self::Overloaded { event, .. }
            | Self::Closed(event)
            | Self::Dead(event)
            | Self::WouldDeadlock(event) => event,
        }
    }

    /// The same refusal of another form of the event.
    pub fn map<F>(self, form: impl FnOnce(E) -> F) -> PutError<F> {
        match self {
            Self::Overloaded { event, depth, capacity } => {
                PutError::Overloaded { event: form(event), depth, capacity }
            }
            Self::Closed(event) => PutError::Closed(form(event)),
            Self::Dead(event) => PutError::Dead(form(event)),
            Self::WouldDeadlock(event) => PutError::WouldDeadlock(form(event)),
        }
    }

    /// Why it was refused, without the event: an error that can be kept and sent on.
    #[must_use]
    pub const fn reason(&self) -> PutRefusal {
        match *self {
            Self::Overloaded { depth, capacity, .. } => PutRefusal::Overloaded { depth, capacity },
            Self::Closed(_) => PutRefusal::Closed,
            Self::Dead(_) => PutRefusal::Dead,
            Self::WouldDeadlock(_) => PutRefusal::WouldDeadlock,
        }
    }

    /// Whether a later try may succeed.
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        matches!(self, Self::Overloaded { .. })
    }
}

impl<E> fmt::Display for PutError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(f)
    }
}

// Not derived, so that events need no `Debug`.
impl<E> fmt::Debug for PutError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded { depth, capacity, .. } => f
                .debug_struct("Overloaded")
                .field("depth", depth)
                .field("capacity", capacity)
                .finish_non_exhaustive(),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::Dead(_) => f.write_str("Dead(..)"),
            Self::WouldDeadlock(_) => f.write_str("WouldDeadlock(..)"),
        }
    }
}

impl<E> std::error::Error for PutError<E> {}
