//! The jobs, one and all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use runtime_core::{Clock, EpochMillis, JobId};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::errors::ApiError;
use super::params::Params;
use super::{Api, checkpoints, exceptions};
use crate::dispatcher::{CancelOutcome, PastJob};
use crate::master::view::{JobView, SubtaskView, VertexView};
use crate::status::ExecutionState;

/// How long a request to cancel may wait for the job's master.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// A job that runs here or has, or one of before this process.
pub(super) enum Found {
    Here(Arc<JobView>),
    Past(Box<PastJob>),
}

pub(super) fn find(api: &Api, id: &str) -> Result<Found, ApiError> {
    let job: JobId = id.parse().map_err(|e| ApiError::bad_request(vec![format!("the job id: {e}")]))?;
    if let Some(view) = api.dispatcher.view(job) {
        return Ok(Found::Here(view));
    }
    let past = api.dispatcher.past_job(job);
    past.map(|past| Found::Past(Box::new(past)))
        .ok_or_else(|| ApiError::not_found(format!("there is no job {job}")))
}

pub(crate) async fn list(State(api): State<Api>) -> Json<Value> {
    let jobs: Vec<Value> =
        every(&api).iter().map(|job| json!({ "id": job["jid"], "status": job["state"] })).collect();
    Json(json!({ "jobs": jobs }))
}

pub(crate) async fn overview(State(api): State<Api>) -> Json<Value> {
    Json(json!({ "jobs": every(&api) }))
}

/// All jobs, newest first, each once: one that runs here is not also one of the past.
fn every(api: &Api) -> Vec<Value> {
    let now = api.clock.wall();
    let views = api.dispatcher.all();
    let mut jobs: Vec<Value> = views.iter().map(|view| in_overview(view, now)).collect();
    for past in api.dispatcher.past() {
        if views.iter().all(|view| view.id.to_string() != past.result.job_id) {
            jobs.push(past_in_overview(&past));
        }
    }
    jobs
}

fn in_overview(view: &JobView, now: EpochMillis) -> Value {
    let mut tasks = Map::new();
    let subtasks = || view.vertices.iter().flat_map(|v| &v.subtasks);
    tasks.insert("total".into(), json!(subtasks().count()));
    for state in ExecutionState::ALL {
        let count = subtasks().filter(|s| s.state == state).count();
        tasks.insert(state.as_str().to_lowercase(), json!(count));
    }
    json!({
        "jid": view.id.to_string(),
        "name": view.name,
        "state": view.status.as_str(),
        "start-time": view.started_at().0,
        "end-time": view.ended_at().map_or(-1, |at| at.0),
        "duration": view.duration_ms(now),
        "last-modification": view.timestamps.iter().map(|(_, at)| at.0).max().unwrap_or(0),
        "tasks": tasks,
        "pending-operators": 0,
    })
}

fn past_in_overview(past: &PastJob) -> Value {
    let mut tasks: BTreeMap<String, u64> =
        ExecutionState::ALL.iter().map(|state| (state.as_str().to_lowercase(), 0)).collect();
    let ended = if past.result.state == "FINISHED" { "finished" } else { "canceled" };
    tasks.insert(ended.into(), past.tasks);
    tasks.insert("total".into(), past.tasks);
    json!({
        "jid": past.result.job_id,
        "name": past.result.name,
        "state": past.result.state,
        "start-time": past.start_time,
        "end-time": past.end_time,
        "duration": past.result.duration_ms,
        "last-modification": past.end_time,
        "tasks": tasks,
        "pending-operators": 0,
    })
}

pub(crate) async fn detail(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let now = api.clock.wall();
    let view = match find(&api, &id)? {
        Found::Here(view) => view,
        Found::Past(past) => {
            let mut value = past_in_overview(&past);
            if let Some(fields) = value.as_object_mut() {
                let failures: Vec<Value> = past.failures.iter().map(exceptions::entry).collect();
                fields.insert("failures".into(), json!(failures));
                fields.insert("result".into(), json!(past.result));
                fields.insert("vertices".into(), json!([]));
            }
            return Ok(Json(value));
        }
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for state in ExecutionState::ALL {
        counts.insert(state.as_str(), view.vertices.iter().filter(|v| vertex_state(v) == state).count());
    }
    let timestamps: BTreeMap<&str, i64> = view.timestamps.iter().map(|(s, at)| (s.as_str(), at.0)).collect();
    Ok(Json(json!({
        "jid": view.id.to_string(),
        "name": view.name,
        "isStoppable": false,
        "state": view.status.as_str(),
        "job-type": "STREAMING",
        "start-time": view.started_at().0,
        "end-time": view.ended_at().map_or(-1, |at| at.0),
        "duration": view.duration_ms(now),
        "maxParallelism": view.max_parallelism,
        "now": now.0,
        "timestamps": timestamps,
        "vertices": view.vertices.iter().map(|v| vertex(v, now)).collect::<Vec<_>>(),
        "status-counts": counts,
        "checkpoints": checkpoints::document(view.checkpoints.as_ref()),
        "failures": view.failures.iter().map(exceptions::entry_of).collect::<Vec<_>>(),
        "result": view.result(now),
        "pending-operators": 0,
    })))
}

/// The state of a vertex: that of the subtask which is furthest from a good end.
fn vertex_state(vertex: &VertexView) -> ExecutionState {
    let any = |state| vertex.subtasks.iter().any(|s| s.state == state);
    for state in [ExecutionState::Failed, ExecutionState::Canceling, ExecutionState::Canceled] {
        if any(state) {
            return state;
        }
    }
    vertex.subtasks.iter().map(|s| s.state).min().unwrap_or(ExecutionState::Created)
}

fn vertex(vertex: &VertexView, now: EpochMillis) -> Value {
    let mut tasks: BTreeMap<&str, usize> = ExecutionState::ALL.iter().map(|s| (s.as_str(), 0)).collect();
    for subtask in &vertex.subtasks {
        *tasks.entry(subtask.state.as_str()).or_default() += 1;
    }
    let start = vertex.subtasks.iter().filter_map(|s| s.started_at).min();
    let over = vertex.subtasks.iter().all(|s| s.state.is_terminal());
    let end = vertex.subtasks.iter().filter_map(|s| s.ended_at).max().filter(|_| over);
    let sum = |of: fn(&wire::v1::Figures) -> u64| vertex.subtasks.iter().map(|s| of(&s.figures)).sum::<u64>();
    json!({
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "status": vertex_state(vertex).as_str(),
        "start-time": start.map_or(-1, |at| at.0),
        "end-time": end.map_or(-1, |at| at.0),
        "duration": start.map_or(-1, |at| end.unwrap_or(now).0 - at.0),
        "tasks": tasks,
        "metrics": {
            "read-bytes": sum(|f| f.bytes_in), "read-bytes-complete": true,
            "write-bytes": sum(|f| f.bytes_out), "write-bytes-complete": true,
            "read-records": sum(|f| f.records_in), "read-records-complete": true,
            "write-records": sum(|f| f.records_out), "write-records-complete": true,
            "accumulated-backpressured-time": sum(|f| f.backpressured_ms),
            "accumulated-idle-time": sum(|f| f.idle_ms),
            "accumulated-busy-time": sum(|f| f.busy_ms),
        },
        "subtasks": vertex.subtasks.iter().map(subtask).collect::<Vec<_>>(),
    })
}

fn subtask(subtask: &SubtaskView) -> Value {
    let steps: Vec<Value> = subtask
        .figures
        .steps
        .iter()
        .map(|step| {
            json!({
                "name": step.name,
                "in-flight": step.in_flight,
                "capacity": step.capacity,
                "completed-waiting": step.completed_waiting,
                "calls": step.calls,
                "retries": step.retries,
                "timeouts": step.timeouts,
                "failures": step.failures,
                "empty": step.empty,
                "oldest-in-flight-ms": step.oldest_in_flight_ms,
            })
        })
        .collect();
    json!({
        "subtask": subtask.attempt.subtask,
        "attempt": subtask.attempt.attempt,
        "status": subtask.state.as_str(),
        "taskmanager-id": subtask.task_executor,
        "start-time": subtask.started_at.map_or(-1, |at| at.0),
        "end-time": subtask.ended_at.map_or(-1, |at| at.0),
        "watermark": subtask.figures.watermark,
        "steps": steps,
    })
}

pub(crate) async fn status(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let status = match find(&api, &id)? {
        Found::Here(view) => view.status.as_str().to_owned(),
        Found::Past(past) => past.result.state,
    };
    Ok(Json(json!({ "status": status })))
}

pub(crate) async fn execution_result(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let result = match find(&api, &id)? {
        Found::Here(view) if view.status.is_terminal() => view.result(api.clock.wall()),
        Found::Here(_) => return Ok(Json(json!({ "status": { "id": "IN_PROGRESS" } }))),
        Found::Past(past) => past.result,
    };
    Ok(Json(json!({ "status": { "id": "COMPLETED" }, "job-execution-result": result })))
}

/// The request may still be carried out.
const TOO_BUSY: &str = "the job's master has not answered in time; ask again whether the job is cancelled";

#[derive(Debug, Deserialize)]
pub(crate) struct CancelQuery {
    mode: Option<String>,
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
    Params(query): Params<CancelQuery>,
) -> Result<Response, ApiError> {
    match query.mode.as_deref().unwrap_or("cancel") {
        "cancel" => {}
        "stop" => {
            let place = [(header::LOCATION, format!("/jobs/{id}/stop"))];
            let gone =
                ApiError::new(StatusCode::PERMANENT_REDIRECT, "`mode=stop` is gone: POST /jobs/ID/stop");
            return Ok((place, gone).into_response());
        }
        other => {
            let error = format!("`mode` is `{other}`; `cancel` is the only one");
            return Err(ApiError::bad_request(vec![error]));
        }
    }
    let job: JobId = id.parse().map_err(|e| ApiError::bad_request(vec![format!("the job id: {e}")]))?;
    let outcome = tokio::time::timeout(CANCEL_PATIENCE, api.dispatcher.cancel(job)).await;
    match outcome.map_err(|_| ApiError::new(StatusCode::REQUEST_TIMEOUT, TOO_BUSY))? {
        CancelOutcome::Accepted => Ok((StatusCode::ACCEPTED, Json(json!({}))).into_response()),
        CancelOutcome::Ended => match find(&api, &id)? {
            Found::Past(past) if past.result.state == "CANCELED" => {
                Ok((StatusCode::ACCEPTED, Json(json!({}))).into_response())
            }
            _ => Err(ApiError::conflict(format!("job {job} has ended already"))),
        },
        CancelOutcome::Unknown => Err(ApiError::not_found(format!("there is no job {job}"))),
    }
}

pub(crate) async fn rescaling() -> ApiError {
    ApiError::unavailable("a running job is not rescaled here; stop it with a savepoint and start it wider")
}
