//! What becomes of a record that could not be dealt with.

use job::dead_letter::Undelivered;
use job::options::OnFailure;

use super::context::{Context, Rejected};
use crate::task::TaskError;

/// Carries out a failure policy. True: the record is kept, and the step says how it looks then.
///
/// # Errors
///
/// The policy is to fail, or to write a dead letter where there are none.
pub(crate) fn on_failure(
    policy: OnFailure,
    rejected: &Rejected<'_>,
    unrecoverable: bool,
    cx: &mut Context,
) -> Result<bool, TaskError> {
    match policy {
        OnFailure::Keep => return Ok(true),
        OnFailure::Drop => cx.figures.dropped.add(1),
        OnFailure::DeadLetter => cx.dead_letter(rejected)?,
        OnFailure::Fail => return Err(failure(rejected, unrecoverable, cx)),
    }
    Ok(false)
}

/// The error of a task that fails because of a record.
pub(crate) fn failure(rejected: &Rejected<'_>, unrecoverable: bool, cx: &mut Context) -> TaskError {
    let place = cx.place(rejected.origin);
    let what = match (rejected.step, rejected.record) {
        (Some(step), _) => format!("step `{step}` failed for the record at {place}"),
        (None, Undelivered::Text(_) | Undelivered::Record(_)) => format!("malformed input at {place}"),
    };
    let after = match rejected.attempts {
        Some((count, ..)) if count > 1 => format!(" (after {count} attempts)"),
        _ => String::new(),
    };
    TaskError { message: format!("{what}: {}{after}", rejected.error), unrecoverable }
}
