//! What an operator tells about itself.

use std::time::Duration;

/// Counts since the operator was made, and what it holds now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Records taken in.
    pub records_in: u64,
    /// Records that have left, whatever their outcome.
    pub records_out: u64,
    /// Attempts begun, retries included.
    pub calls: u64,
    /// Attempts begun beyond the first of a record.
    pub retries: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
    /// Attempts that exceeded the time of one attempt.
    pub attempt_timeouts: u64,
    /// Records that have failed, timeouts included.
    pub failures: u64,
    /// Completions that came late or twice and were ignored.
    pub ignored_completions: u64,
    /// Elements that the operator may hold.
    pub capacity: usize,
    /// Elements that it holds: waiting, in flight and completed records, watermarks and statuses.
    pub occupied: usize,
    /// Records whose call is running or pausing before a retry.
    pub in_flight: usize,
    /// Records that have their outcome and wait for their turn to leave.
    pub completed_waiting: usize,
    /// For how long the oldest record in flight has been so.
    pub oldest_in_flight: Option<Duration>,
    /// For how long the operator has been full, all together.
    pub blocked: Duration,
}
