//! What leaves the operator: every record with its one outcome, and the control elements between them.

use crate::options::FailurePolicy;
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
    Failed {
        /// Why.
        reason: FailureReason<E>,
        /// What is to become of the record.
        policy: FailurePolicy,
    },
}

/// Why a record has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FailureReason<E> {
    /// The budget of the whole record ran out.
    #[error("the async call timed out")]
    Timeout,
    /// The last call exceeded the time of one attempt, and no retry was left.
    #[error("the attempt timed out")]
    AttemptTimeout,
    /// The last call ended with this error, and no retry was left or it would not have helped.
    #[error("{0}")]
    Error(E),
    /// The call could not even begin. Never retried.
    #[error("the call could not begin: {0}")]
    NotBegun(E),
    /// The call panicked with this text. Never retried.
    #[error("the call panicked: {0}")]
    Panicked(String),
    /// Who was to judge the last call's outcome panicked with this text.
    #[error("the retry predicate panicked: {0}")]
    PredicatePanicked(String),
    /// The last call's handle was dropped without a result, and no retry was left.
    #[error("the handle was dropped without a result")]
    HandleDropped,
    /// The record was asked about in a batch, and the batch's answers were not as many as its inputs: none can be told
    /// whose it is.
    #[error("a batch of {asked} inputs was answered by {answered} results")]
    BatchMismatch {
        /// The batch's inputs.
        asked: usize,
        /// What came back.
        answered: usize,
    },
}

impl<E> From<CallError<E>> for FailureReason<E> {
    fn from(error: CallError<E>) -> Self {
        match error {
            CallError::Error(error) => Self::Error(error),
            CallError::NotBegun(error) => Self::NotBegun(error),
            CallError::Panicked(text) => Self::Panicked(text),
            CallError::AttemptTimeout => Self::AttemptTimeout,
            CallError::HandleDropped => Self::HandleDropped,
            CallError::Timeout => Self::Timeout,
            CallError::BatchMismatch { asked, answered } => Self::BatchMismatch { asked, answered },
        }
    }
}

/// How one attempt went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError<E> {
    /// The call ended with an error.
    #[error("{0}")]
    Error(E),
    /// The call could not even begin: the function returned an error instead of beginning it. Never retried (Flink: an
    /// error thrown by `asyncInvoke` fails the task).
    #[error("the call could not begin: {0}")]
    NotBegun(E),
    /// The call panicked with this text. Never retried: it would do so again.
    #[error("the call panicked: {0}")]
    Panicked(String),
    /// The call exceeded the time of one attempt.
    #[error("the attempt timed out")]
    AttemptTimeout,
    /// Whoever was to complete the call let go of it.
    #[error("the handle was dropped without a result")]
    HandleDropped,
    /// The record's budget has ended, says who was asked what should follow. Never retried.
    #[error("the async call timed out")]
    Timeout,
    /// The batch that the call was part of had another number of answers than of inputs. Never retried.
    #[error("a batch of {asked} inputs was answered by {answered} results")]
    BatchMismatch {
        /// The batch's inputs.
        asked: usize,
        /// What came back.
        answered: usize,
    },
}

impl<E> CallError<E> {
    /// Whether another attempt could be of use at all.
    pub(crate) const fn may_be_retried(&self) -> bool {
        matches!(self, Self::Error(_) | Self::AttemptTimeout | Self::HandleDropped)
    }
}

/// The calls made for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// How many, those before a restore included. A record that shared the call of an equal one counts that one's.
    pub count: u32,
    /// When the first one since then started.
    pub first_at: Tick,
    /// When the last one started.
    pub last_at: Tick,
}
