//! Why a job has failed, as far back as is kept.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Api;
use super::errors::ApiError;
use super::jobs::{Found, find};
use super::params::Params;
use crate::job_store::StoredFailure;
use crate::master::view::FailureView;

/// How many failures are shown unless the request says otherwise, as in Flink. Fewer are kept.
const SHOWN_FAILURES: usize = 20;

#[derive(Debug, Deserialize)]
pub(crate) struct ExceptionsQuery {
    #[serde(rename = "maxExceptions")]
    max_exceptions: Option<usize>,
}

pub(crate) async fn exceptions(
    State(api): State<Api>,
    Path(id): Path<String>,
    Params(query): Params<ExceptionsQuery>,
) -> Result<Json<Value>, ApiError> {
    let failures: Vec<Value> = match find(&api, &id)? {
        Found::Here(view) => view.failures.iter().map(entry_of).collect(),
        Found::Past(past) => past.failures.iter().map(entry).collect(),
    };
    Ok(Json(history(&failures, query.max_exceptions.unwrap_or(SHOWN_FAILURES))))
}

/// The newest of them.
pub(crate) fn history(failures: &[Value], most: usize) -> Value {
    let entries = failures.get(..most).unwrap_or(failures);
    json!({ "exceptionHistory": { "entries": entries, "truncated": entries.len() < failures.len() } })
}

pub(crate) fn entry_of(failure: &FailureView) -> Value {
    entry(&StoredFailure::from(failure))
}

pub(crate) fn entry(failure: &StoredFailure) -> Value {
    json!({
        "exceptionName": "failure",
        "stacktrace": failure.text,
        "timestamp": failure.at,
        "taskName": failure.task,
        "endpoint": failure.task_executor,
        "taskManagerId": failure.task_executor,
        "failureLabels": {},
        "concurrentExceptions": [],
    })
}
