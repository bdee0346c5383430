//! What leaves the operator: every record with its one outcome, and the control elements between them.

use crate::options::FailurePolicy;
use runtime_core::{Barrier, Record, Tick, Watermark, WatermarkStatus, element::LatencyMarker};

/// One element that leaves the operator.
///
/// ```
/// use asyncio::{AsyncWaitOperator, Effect, Options, Output};
/// use runtime_core::{EpochMillis, LatencyMarker, Record, StreamElement, Tick, Watermark, WatermarkStatus};
///
/// let now = Tick::ZERO;
/// let mut operator = AsyncWaitOperator::<u32, u32, String>::new(Options::unordered().build()?);
/// for element in [
///     StreamElement::Record(Record::at(7, EpochMillis(1_000))),
///     StreamElement::Watermark(Watermark(EpochMillis(1_000))),
///     StreamElement::Status(WatermarkStatus::Idle),
///     StreamElement::LatencyMarker(LatencyMarker { marked_at: EpochMillis(0), subtask: 0 }),
/// ] {
///     operator.push(element, now).unwrap();
/// }
/// // The probe overtakes; the others wait for the record.
/// assert!(matches!(operator.next_output(), Some(Output::LatencyMarker(_))));
/// assert!(operator.next_output().is_none());
/// let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
/// operator.complete(entry, attempt, Ok(49), now);
/// let Some(Output::Record { input, attempts, .. }) = operator.next_output() else { panic!("it leaves") };
/// assert_eq!((input.timestamp, attempts.count), (Some(EpochMillis(1_000)), 1));
/// assert_eq!(operator.next_output(), Some(Output::Watermark(Watermark(EpochMillis(1_000)))));
/// assert_eq!(operator.next_output(), Some(Output::Status(WatermarkStatus::Idle)));
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
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

/// How a record ended. Every record that was taken in ends in exactly one outcome. (Flink: a collection of results, or
/// the task fails.)
///
/// ```
/// use asyncio::{AsyncWaitOperator, CallError, Effect, FailurePolicy, FailureReason, Options, Outcome, Output};
/// use runtime_core::{Record, StreamElement, Tick};
///
/// let now = Tick::ZERO;
/// let options = Options::ordered().on_failure(FailurePolicy::Keep).build()?;
/// let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(options);
/// for n in [1, 2] {
///     operator.push(StreamElement::Record(Record::new(n)), now).unwrap();
/// }
/// while let Some(Effect::Start { entry, attempt }) = operator.next_effect() {
///     let odd = operator.input(entry).is_some_and(|record| record.value % 2 == 1);
///     operator.complete(entry, attempt, if odd { Err(CallError::Error("odd")) } else { Ok(20) }, now);
/// }
/// let outcomes = std::iter::from_fn(|| operator.next_output()).map(|output| match output {
///     Output::Record { outcome, .. } => outcome,
///     other => panic!("only records were pushed: {other:?}"),
/// });
/// let failed = Outcome::Failed { reason: FailureReason::Error("odd"), policy: FailurePolicy::Keep };
/// assert_eq!(outcomes.collect::<Vec<_>>(), [failed, Outcome::Completed(20)]);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
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
///
/// ```
/// use asyncio::{CallError, FailureReason};
///
/// // It says what has happened to the record; the last attempt's error is one of the reasons.
/// assert_eq!(FailureReason::<String>::Timeout.to_string(), "the async call timed out");
/// assert_eq!(FailureReason::Error("404").to_string(), "404");
/// assert_eq!(FailureReason::from(CallError::<String>::AttemptTimeout), FailureReason::AttemptTimeout);
/// ```
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
///
/// ```
/// use asyncio::{CallError, Verdict};
///
/// /// As a predicate: what is worth another attempt.
/// fn judge(outcome: &Result<u32, CallError<u16>>) -> Verdict {
///     match outcome {
///         Err(CallError::Error(429 | 503) | CallError::AttemptTimeout | CallError::HandleDropped) => Verdict::Retry,
///         // The other errors would come again, or are never judged.
///         Ok(_) | Err(_) => Verdict::Final,
///     }
/// }
/// assert_eq!(judge(&Err(CallError::Error(503))), Verdict::Retry);
/// assert_eq!(judge(&Err(CallError::Error(404))), Verdict::Final);
/// ```
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
///
/// ```
/// use asyncio::{AsyncWaitOperator, CallError, Effect, Options, Output, Retry};
/// use runtime_core::{Record, StreamElement, Tick};
/// use std::time::Duration;
///
/// let retry = Retry::FixedDelay { max_retries: 1, delay: Duration::from_millis(30) };
/// let options = Options::ordered().timeout(Duration::from_secs(1)).retry(retry).build()?;
/// let mut operator = AsyncWaitOperator::<u32, u32, &str>::new(options);
/// operator.push(StreamElement::Record(Record::new(1)), Tick::ZERO).unwrap();
/// for (now, result) in [(Tick::ZERO, Err(CallError::Error("busy"))), (Tick::from_millis(30), Ok(10))] {
///     operator.advance(now);
///     let Some(Effect::Start { entry, attempt }) = operator.next_effect() else { panic!("it starts") };
///     operator.complete(entry, attempt, result, now);
/// }
/// let Some(Output::Record { attempts, .. }) = operator.next_output() else { panic!("it leaves") };
/// assert_eq!(attempts.count, 2);
/// assert_eq!(attempts.last_at.since(attempts.first_at).as_millis(), 30);
/// # Ok::<(), asyncio::OptionsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// How many, those before a restore included. A record that shared the call of an equal one counts that one's.
    pub count: u32,
    /// When the first one since then started.
    pub first_at: Tick,
    /// When the last one started.
    pub last_at: Tick,
}
