//! A task executor with a call of its own: copy this file into a crate that depends on `taskexecutor` and `connectors`.
//!
//! ```text
//! cargo run --release --example own_calls -- --set taskexecutor.slots=4
//! ```
//!
//! It is a task executor like any other, with the same flags, keys and signals. A job uses the call by its name:
//!
//! ```yaml
//! steps:
//!   - enrich:
//!       name: risk
//!       call: {rust: risk_score}
//!       into: risk
//! ```
//!
//! Every task executor that may run the step has to know the name; one that does not refuses the task and says which
//! names it has.

use std::process::ExitCode;
use std::time::Duration;

use connectors::call::{Answer, CallFailure, CallRequest};
use taskexecutor::TaskExecutor;

/// Answers with a score for the field `amount`; for a record without one nothing is known.
///
/// An `async fn` may wait for as long as the step's timeout lets it, but must not block: it shares its threads with
/// heartbeats. Work that computes for long belongs on `tokio::task::spawn_blocking`.
async fn risk_score(request: CallRequest) -> Result<Answer, CallFailure> {
    let Some(amount) = request.record.field("amount") else { return Ok(Answer::Empty) };
    let Some(amount) = amount.as_f64() else {
        // Another attempt would find the same text.
        return Err(CallFailure::terminal(format!("`amount` is no number: {}", amount.text())));
    };
    // Stands for the service that is really asked. `request.idempotency_key` is the same for every attempt at this
    // record, in every life of the job: services that change something are to be given it.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let score = (amount / 1000.0).clamp(0.0, 1.0);
    Ok(Answer::Value(format!("{{\"score\":{score}}}").into()))
}

fn main() -> ExitCode {
    TaskExecutor::builder().call("risk_score", risk_score).run()
}
