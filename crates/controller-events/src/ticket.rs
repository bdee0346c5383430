//! What became of an event: the caller's end.

use crate::event::NotRun;
use crate::inside;
use crate::signal::Signal;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

/// The one end of an accepted event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Its handler returned `Ok`.
    Done,
    /// Its handler returned an error or panicked.
    Failed,
    /// Its handler was never called.
    NotRun(NotRun),
}

/// Why a wait for an event ended without what was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WaitError {
    /// The event will never start.
    #[error("the event was not run: {0}")]
    NotRun(NotRun),
    /// It has not started within the time that the caller gave; it may yet.
    #[error("the event has not started in time; it is still queued")]
    TimedOut,
    /// The caller is inside the loop that would have to run the event. Nothing was waited for.
    #[error("waiting here would wait for the caller's own loop; use an event that follows instead")]
    WouldDeadlock,
}

const STARTED: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;
/// The first of the levels that stand for the reasons of `NotRun`.
const NOT_RUN: u8 = 4;

fn level(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => DONE,
        Outcome::Failed => FAILED,
        Outcome::NotRun(NotRun::Preempted) => NOT_RUN,
        Outcome::NotRun(NotRun::TimedOut) => NOT_RUN + 1,
        Outcome::NotRun(NotRun::Replaced) => NOT_RUN + 2,
        Outcome::NotRun(NotRun::Cancelled) => NOT_RUN + 3,
        Outcome::NotRun(NotRun::ShuttingDown) => NOT_RUN + 4,
        Outcome::NotRun(NotRun::LoopDied) => NOT_RUN + 5,
    }
}

fn outcome(level: u8) -> Option<Outcome> {
    let reason = match level {
        0 | STARTED => return None,
        DONE => return Some(Outcome::Done),
        FAILED => return Some(Outcome::Failed),
        NOT_RUN => NotRun::Preempted,
        5 => NotRun::TimedOut,
        6 => NotRun::Replaced,
        7 => NotRun::Cancelled,
        8 => NotRun::ShuttingDown,
        _ => NotRun::LoopDied,
    };
    Some(Outcome::NotRun(reason))
}

fn started(level: u8) -> Result<(), WaitError> {
    match outcome(level) {
        Some(Outcome::NotRun(why)) => Err(WaitError::NotRun(why)),
        _ => Ok(()),
    }
}

/// The loop's end of a ticket.
#[derive(Default)]
pub(crate) struct TicketCell {
    loop_id: u64,
    signal: Signal,
}

impl TicketCell {
    pub(crate) fn started(&self) {
        self.signal.raise(STARTED);
    }

    pub(crate) fn finished(&self, outcome: Outcome) {
        self.signal.raise(level(outcome));
    }
}

/// What became of one accepted event. Dropping it changes nothing; any number of threads and tasks may wait for it,
/// before and after the fact.
///
/// *Started* means that every earlier event has completely finished, not that this one has (Kafka:
/// `QueuedEvent.awaitProcessing`).
#[derive(Clone)]
pub struct Ticket(Arc<TicketCell>);

impl Ticket {
    pub(crate) fn new(loop_id: u64) -> (Self, Arc<TicketCell>) {
        let cell = Arc::new(TicketCell { loop_id, signal: Signal::default() });
        (Self(Arc::clone(&cell)), cell)
    }

    /// Blocks until the event has started.
    ///
    /// # Errors
    /// [`WaitError::NotRun`] if it never will; [`WaitError::WouldDeadlock`] inside a handler or callback of its own
    /// loop. A loop that is driven on the calling thread in another way cannot be detected, nor can a lock that the
    /// caller holds and a handler wants: see [`wait_started_timeout`](Self::wait_started_timeout).
    pub fn wait_started(&self) -> Result<(), WaitError> {
        self.check_wait(STARTED)?;
        started(self.0.signal.wait(STARTED))
    }

    /// Blocks until the event has started, but no longer than `limit` of real time.
    ///
    /// # Errors
    /// As [`wait_started`](Self::wait_started), and [`WaitError::TimedOut`].
    pub fn wait_started_timeout(&self, limit: Duration) -> Result<(), WaitError> {
        self.check_wait(STARTED)?;
        self.0.signal.wait_timeout(STARTED, limit).map_or(Err(WaitError::TimedOut), started)
    }

    /// Blocks until the event has its outcome.
    ///
    /// # Errors
    /// [`WaitError::WouldDeadlock`] inside a handler or callback of its own loop.
    pub fn wait_finished(&self) -> Result<Outcome, WaitError> {
        self.check_wait(DONE)?;
        outcome(self.0.signal.wait(DONE)).ok_or(WaitError::TimedOut)
    }

    /// Blocks until the event has its outcome, but no longer than `limit` of real time.
    ///
    /// # Errors
    /// As [`wait_finished`](Self::wait_finished), and [`WaitError::TimedOut`].
    pub fn wait_finished_timeout(&self, limit: Duration) -> Result<Outcome, WaitError> {
        self.check_wait(DONE)?;
        self.0.signal.wait_timeout(DONE, limit).and_then(outcome).ok_or(WaitError::TimedOut)
    }

    /// Waits until the event has started.
    ///
    /// # Errors
    /// [`WaitError::NotRun`] if it never will.
    pub async fn started(&self) -> Result<(), WaitError> {
        started(poll_fn(|cx| self.0.signal.poll(STARTED, cx)).await)
    }

    /// Waits until the event has its outcome.
    pub async fn finished(&self) -> Outcome {
        let level = poll_fn(|cx| self.0.signal.poll(DONE, cx)).await;
        // A level from DONE upwards always has an outcome.
        outcome(level).unwrap_or(Outcome::NotRun(NotRun::LoopDied))
    }

    /// Whether the event has started.
    #[must_use]
    pub fn has_started(&self) -> bool {
        matches!(self.0.signal.level(), STARTED..=FAILED)
    }

    /// The event's outcome, once it has one.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        outcome(self.0.signal.level())
    }

    fn check_wait(&self, wanted: u8) -> Result<(), WaitError> {
        let waits = self.0.signal.level() < wanted;
        if waits && inside::is_inside(self.0.loop_id) { Err(WaitError::WouldDeadlock) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("started", &self.has_started())
            .field("outcome", &self.outcome())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_read_back_as_it_was_told() {
        let reasons = [
            NotRun::Preempted,
            NotRun::TimedOut,
            NotRun::Replaced,
            NotRun::Cancelled,
            NotRun::ShuttingDown,
            NotRun::LoopDied,
        ];
        let outcomes = reasons.map(Outcome::NotRun).into_iter().chain([Outcome::Done, Outcome::Failed]);
        for told in outcomes {
            let (ticket, cell) = Ticket::new(1);
            assert_eq!(ticket.outcome(), None);
            cell.finished(told);
            assert_eq!(ticket.outcome(), Some(told));
            assert_eq!(ticket.wait_finished(), Ok(told));
        }
    }

    #[test]
    fn a_wait_inside_the_own_loop_is_refused_unless_the_answer_is_there() {
        let (ticket, cell) = Ticket::new(7);
        let _inside = inside::enter(7, inside::Place::Processor);
        assert_eq!(ticket.wait_started(), Err(WaitError::WouldDeadlock));
        cell.started();
        assert_eq!(ticket.wait_started(), Ok(()));
        assert_eq!(ticket.wait_finished(), Err(WaitError::WouldDeadlock));
    }

    #[test]
    fn a_timed_wait_that_ends_early_leaves_the_event_queued() {
        let (ticket, cell) = Ticket::new(7);
        assert_eq!(ticket.wait_started_timeout(Duration::ZERO), Err(WaitError::TimedOut));
        cell.started();
        assert_eq!(ticket.wait_started_timeout(Duration::ZERO), Ok(()));
        assert_eq!(ticket.wait_finished_timeout(Duration::ZERO), Err(WaitError::TimedOut));
    }
}
