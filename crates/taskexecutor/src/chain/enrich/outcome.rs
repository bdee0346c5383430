//! What becomes of a record once its calls have come to an outcome.

use std::borrow::Cow;

use asyncio::{Attempts, FailureReason, Outcome, Output};
use connectors::call::{Answer, CallFailure};
use job::dead_letter::{Reason, Undelivered};
use job::options::{OnEmpty, OnFailure};
use job::record::JsonRecord;
use runtime_core::{Record, StreamElement};

use super::{Asked, EnrichStep, Settled};
use crate::chain::Flow;
use crate::chain::context::{Context, Rejected};
use crate::chain::policy::{failure, on_failure};
use crate::task::TaskError;

impl EnrichStep {
    /// What goes on down the chain, if anything does.
    pub(crate) fn settle(&mut self, output: Settled, cx: &mut Context) -> Result<Option<Flow>, TaskError> {
        let (input, outcome, attempts) = match output {
            Output::Record { input, outcome, attempts } => (input, outcome, attempts),
            Output::Watermark(watermark) => return Ok(Some(StreamElement::Watermark(watermark))),
            Output::Status(status) => return Ok(Some(StreamElement::Status(status))),
            Output::LatencyMarker(marker) => return Ok(Some(StreamElement::LatencyMarker(marker))),
            Output::Barrier(barrier) => return Ok(Some(StreamElement::Barrier(barrier))),
        };
        let Record { value: record, timestamp } = input;
        let made = match &outcome {
            Outcome::Completed(asked) => asked.made,
            Outcome::Failed { reason: FailureReason::Error(asked), .. } => asked.made,
            Outcome::Failed { .. } => true,
        };
        let attempts = made.then_some(attempts);
        let kept = match outcome {
            Outcome::Completed(Asked { reply: Answer::Value(answer), .. }) => match &self.options.into {
                Some(field) => Some(record.with_field(field, &answer)),
                None => match record.replaced_by(answer) {
                    Ok(replaced) => Some(replaced),
                    Err(malformed) => {
                        self.unfit += 1;
                        let error = format!("the answer cannot replace the record: {}", malformed.reason);
                        self.failed(record, Reason::Error, &error, true, attempts, cx)?
                    }
                },
            },
            Outcome::Completed(Asked { reply: Answer::Empty, .. }) => self.empty(record, attempts, cx)?,
            Outcome::Failed { reason, .. } => {
                let (kind, error, unrecoverable) = self.explain(&reason);
                self.failed(record, kind, &error, unrecoverable, attempts, cx)?
            }
        };
        Ok(kept.map(|value| StreamElement::Record(Record { value, timestamp })))
    }

    fn empty(
        &self,
        record: JsonRecord,
        attempts: Option<Attempts>,
        cx: &mut Context,
    ) -> Result<Option<JsonRecord>, TaskError> {
        if let Some(figures) = self.figures(cx) {
            figures.empty.add(1);
        }
        let rejected = self.rejected(&record, Reason::Empty, "nothing is known about the record", attempts);
        match self.options.on_empty {
            OnEmpty::Keep => return Ok(Some(self.without_answer(record))),
            OnEmpty::Drop => cx.figures.dropped.add(1),
            OnEmpty::DeadLetter => cx.dead_letter(&rejected)?,
            // Asked again, the same would be known.
            OnEmpty::Fail => return Err(failure(&rejected, true, cx)),
        }
        Ok(None)
    }

    fn failed(
        &self,
        record: JsonRecord,
        reason: Reason,
        error: &str,
        unrecoverable: bool,
        attempts: Option<Attempts>,
        cx: &mut Context,
    ) -> Result<Option<JsonRecord>, TaskError> {
        let policy: OnFailure = self.options.on_failure;
        let kept = on_failure(policy, &self.rejected(&record, reason, error, attempts), unrecoverable, cx)?;
        Ok(kept.then(|| self.without_answer(record)))
    }

    fn rejected<'a>(
        &'a self,
        record: &'a JsonRecord,
        reason: Reason,
        error: &'a str,
        attempts: Option<Attempts>,
    ) -> Rejected<'a> {
        Rejected {
            record: Undelivered::Record(record),
            origin: record.origin(),
            step: Some(&self.options.name),
            reason,
            error,
            attempts: attempts.map(|a| (a.count, a.first_at, a.last_at)),
        }
    }

    fn without_answer(&self, record: JsonRecord) -> JsonRecord {
        match &self.options.into {
            Some(field) => record.with_field(field, b"null"),
            None => record,
        }
    }

    /// Why the calls have failed, as a dead letter says it, and whether a restart of the job cannot help.
    fn explain<'a>(&self, reason: &'a FailureReason<Asked<CallFailure>>) -> (Reason, Cow<'a, str>, bool) {
        let within = |limit: Option<std::time::Duration>| limit.unwrap_or_default();
        match reason {
            FailureReason::Timeout => {
                let budget = within(self.options.timeout);
                (Reason::Timeout, format!("no answer within the record's budget of {budget:?}").into(), false)
            }
            FailureReason::AttemptTimeout => {
                let limit = within(self.options.attempt_timeout);
                (Reason::Timeout, format!("the last attempt took longer than {limit:?}").into(), false)
            }
            FailureReason::Error(Asked { reply: failure, .. }) => {
                (Reason::Error, failure.message.as_str().into(), !failure.retryable)
            }
            FailureReason::HandleDropped => {
                (Reason::Error, "the call was given up before it ended".into(), false)
            }
            FailureReason::NotBegun(Asked { reply: failure, .. }) => {
                (Reason::Error, failure.message.as_str().into(), true)
            }
            // What panics would do so again.
            FailureReason::Panicked(text) | FailureReason::PredicatePanicked(text) => {
                (Reason::Error, format!("the call panicked: {text}").into(), true)
            }
            FailureReason::BatchMismatch { asked, answered } => {
                let error = format!("a batch of {asked} inputs was answered by {answered} results");
                (Reason::Error, error.into(), true)
            }
        }
    }
}
