//! What leaves the operator: every record with its one outcome, and the control elements between them.

use runtime_core::{Barrier, Record, Tick, Watermark, WatermarkStatus, element::LatencyMarker};

/// One element that leaves the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<I, R, E> {
    /// A record has its outcome.
    Record {
        /// What was pushed.
        input: Record<I>,
        /// How it ended.
        outcome: Outcome<R, E>,
        /// The calls that were made for it.
        attempts: Attempts,
    },
    /// All records before this watermark have left.
    Watermark(Watermark),
    /// All records before this change of status have left.
    Status(WatermarkStatus),
    /// A probe; it has overtaken what waits.
    LatencyMarker(LatencyMarker),
    /// A barrier; it has overtaken what waits, since that belongs to the snapshot.
    Barrier(Barrier),
}

/// How a record ended. Every record that was taken in ends in exactly one outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<R, E> {
    /// A call answered.
    Completed(R),
    /// No call answered in time, or the last answer was an error.
    Failed(FailureReason<E>),
}

/// Why a record has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason<E> {
    /// The budget of the whole record ran out.
    #[error("the record's time budget ran out")]
    Timeout,
    /// The last call exceeded the time of one attempt, and no retry was left.
    #[error("the attempt timed out")]
    AttemptTimeout,
    /// The last call ended with this error, and no retry was left or it would not have helped.
    #[error("{0}")]
    Error(E),
    /// The last call's handle was dropped without a result, and no retry was left.
    #[error("the completion handle was dropped without a result")]
    HandleDropped,
}

impl<E> From<CallError<E>> for FailureReason<E> {
    fn from(error: CallError<E>) -> Self {
        match error {
            CallError::Error(error) => Self::Error(error),
            CallError::AttemptTimeout => Self::AttemptTimeout,
            CallError::HandleDropped => Self::HandleDropped,
        }
    }
}

/// How one attempt went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError<E> {
    /// The call ended with an error.
    #[error("{0}")]
    Error(E),
    /// The call exceeded the time of one attempt.
    #[error("the attempt timed out")]
    AttemptTimeout,
    /// Whoever was to complete the call let go of it.
    #[error("the completion handle was dropped without a result")]
    HandleDropped,
}

/// The calls made for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// How many, at least one.
    pub count: u32,
    /// When the first one started.
    pub first_at: Tick,
    /// When the last one started.
    pub last_at: Tick,
}
