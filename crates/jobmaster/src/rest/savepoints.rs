//! Savepoints and checkpoints that somebody asks for, and polls for.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use checkpoint::savepoint;
use runtime_core::{Clock as _, JobId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Api;
use super::errors::ApiError;
use super::operations::{OperationId, Status, Subject};
use crate::checkpoint::coordinator::{Done, Stop, Wanted};

/// `POST /jobs/{id}/savepoints`. Fields that are not known are ignored, as Flink's clients send more of them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SavepointBody {
    target_directory: Option<String>,
    cancel_job: bool,
    #[serde(rename = "triggerId")]
    trigger_id: Option<String>,
}

/// `POST /jobs/{id}/stop`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StopBody {
    target_directory: Option<String>,
    drain: bool,
    trigger_id: Option<String>,
}

/// `POST /jobs/{id}/checkpoints`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CheckpointBody {
    trigger_id: Option<String>,
}

/// `POST /savepoint-disposal`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct DisposalBody {
    savepoint_path: String,
}

pub(crate) async fn trigger_savepoint(
    State(api): State<Api>,
    Path(id): Path<String>,
    body: String,
) -> Result<Response, ApiError> {
    let body: SavepointBody = read(&body)?;
    if body.cancel_job {
        let error =
            "`cancel-job` is not supported: POST /jobs/ID/stop ends a job with a savepoint and loses nothing";
        return Err(ApiError::bad_request(vec![error.into()]));
    }
    let job = job_id(&id)?;
    let wanted = Wanted::Savepoint { url: target(&api, job, body.target_directory)?, stop: None };
    trigger(&api, job, wanted, body.trigger_id)
}

pub(crate) async fn stop(
    State(api): State<Api>,
    Path(id): Path<String>,
    body: String,
) -> Result<Response, ApiError> {
    let body: StopBody = read(&body)?;
    let job = job_id(&id)?;
    let stop = Some(if body.drain { Stop::Drain } else { Stop::Suspend });
    let wanted = Wanted::Savepoint { url: target(&api, job, body.target_directory)?, stop };
    trigger(&api, job, wanted, body.trigger_id)
}

pub(crate) async fn trigger_checkpoint(
    State(api): State<Api>,
    Path(id): Path<String>,
    body: String,
) -> Result<Response, ApiError> {
    let body: CheckpointBody = read(&body)?;
    trigger(&api, job_id(&id)?, Wanted::Checkpoint, body.trigger_id)
}

pub(crate) async fn savepoint_status(
    State(api): State<Api>,
    Path((id, request)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let subject = Subject::Savepoint(job_id(&id)?);
    status(&api, &request, &subject, |done| json!({ "location": done.location }), failure)
}

pub(crate) async fn checkpoint_status(
    State(api): State<Api>,
    Path((id, request)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let subject = Subject::Checkpoint(job_id(&id)?);
    let failed = |cause: &str| json!({ "failureCause": cause_of(cause) });
    status(&api, &request, &subject, |done| json!({ "checkpointId": done.checkpoint }), failed)
}

pub(crate) async fn dispose(State(api): State<Api>, body: String) -> Result<Json<Value>, ApiError> {
    let body: DisposalBody = read(&body)?;
    let url = location(&body.savepoint_path);
    let operation = operation_id(None)?;
    let begun = api.operations.begin(operation, Subject::Disposal, api.clock.now());
    debug_assert_eq!(begun, Ok(true));
    let (operations, stores, clock) = (api.operations.clone(), api.stores.clone(), api.clock.clone());
    tokio::task::spawn_blocking(move || {
        let disposed = savepoint::dispose(&*stores, &url).map_err(|error| error.to_string());
        let done = disposed.map(|()| Done { checkpoint: 0, location: url });
        operations.complete(operation, done, clock.now());
    });
    Ok(Json(json!({ "request-id": operation.to_string() })))
}

pub(crate) async fn disposal_status(
    State(api): State<Api>,
    Path(request): Path<String>,
) -> Result<Json<Value>, ApiError> {
    status(&api, &request, &Subject::Disposal, |_| json!({}), failure)
}

/// A savepoint's folder as the command line and people name it: a URL, a path, or that of its metadata.
pub(super) fn location(place: &str) -> String {
    let url = savepoint::url_of(place);
    url.strip_suffix(&format!("/{}", savepoint::METADATA)).map_or(url.clone(), str::to_owned)
}

/// Where a new savepoint goes.
fn target(api: &Api, job: JobId, given: Option<String>) -> Result<String, ApiError> {
    let Some(dir) = given.filter(|dir| !dir.is_empty()).or_else(|| api.savepoints_dir.clone()) else {
        let error = "no folder for savepoints: name one in the request (`tidegate savepoint ID DIR`, `tidegate stop ID \
                     --savepoint-dir DIR`), or set `savepoints.dir` of the job master";
        return Err(ApiError::bad_request(vec![error.into()]));
    };
    let random = entrypoint::entropy::draw().map_err(internal)?;
    // The upper half is as random as the lower.
    let url = savepoint::new_url(&dir, job, (random >> 64) as u64);
    api.stores.open(&url).map_err(|error| ApiError::bad_request(vec![error.to_string()]))?;
    Ok(url)
}

/// Begins what is wanted, and answers with its number. What comes of it, that there is no such job too, is asked with that.
fn trigger(api: &Api, job: JobId, wanted: Wanted, given: Option<String>) -> Result<Response, ApiError> {
    let operation = operation_id(given)?;
    let subject = match wanted {
        Wanted::Checkpoint => Subject::Checkpoint(job),
        Wanted::Savepoint { .. } => Subject::Savepoint(job),
    };
    let new = api.operations.begin(operation, subject, api.clock.now());
    let new =
        new.map_err(|()| ApiError::conflict(format!("`triggerId` {operation} is that of another request")))?;
    if new {
        let (operations, dispatcher, clock) =
            (api.operations.clone(), api.dispatcher.clone(), api.clock.clone());
        tokio::spawn(async move {
            let result = dispatcher.request(job, wanted).await;
            operations.complete(operation, result, clock.now());
        });
    }
    Ok((StatusCode::ACCEPTED, Json(json!({ "request-id": operation.to_string() }))).into_response())
}

fn status(
    api: &Api,
    request: &str,
    subject: &Subject,
    done: impl FnOnce(&Done) -> Value,
    failed: impl FnOnce(&str) -> Value,
) -> Result<Json<Value>, ApiError> {
    let unknown =
        || ApiError::not_found(format!("there is no request {request}, or its outcome is forgotten"));
    let operation: OperationId =
        request.parse().map_err(|e| ApiError::bad_request(vec![format!("the request's number: {e}")]))?;
    let status = api.operations.status(operation, subject, api.clock.now()).ok_or_else(unknown)?;
    Ok(Json(match status {
        Status::InProgress => json!({ "status": { "id": "IN_PROGRESS" } }),
        Status::Completed(Ok(result)) => {
            json!({ "status": { "id": "COMPLETED" }, "operation": done(&result) })
        }
        Status::Completed(Err(cause)) => {
            json!({ "status": { "id": "COMPLETED" }, "operation": failed(&cause) })
        }
    }))
}

fn failure(cause: &str) -> Value {
    json!({ "failure-cause": cause_of(cause) })
}

fn cause_of(cause: &str) -> Value {
    // The last is Java's own form of an exception; there is none here.
    json!({ "class": "CheckpointException", "stack-trace": cause, "serialized-throwable": null })
}

/// The body of a request; none is as good as an empty one.
fn read<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, ApiError> {
    let text = if body.trim().is_empty() { "{}" } else { body };
    serde_json::from_str(text).map_err(|e| ApiError::bad_request(vec![format!("the body: {e}")]))
}

fn job_id(id: &str) -> Result<JobId, ApiError> {
    id.parse().map_err(|e| ApiError::bad_request(vec![format!("the job id: {e}")]))
}

fn operation_id(given: Option<String>) -> Result<OperationId, ApiError> {
    match given {
        Some(id) => id.parse().map_err(|e| ApiError::bad_request(vec![format!("`triggerId`: {e}")])),
        None => Ok(JobId::from_u128(entrypoint::entropy::draw().map_err(internal)?)),
    }
}

fn internal(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}
