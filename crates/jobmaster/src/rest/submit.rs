//! A job comes in.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use job::file::JobFile;
use job::graph::JobGraph;
use runtime_core::JobId;
use serde::Deserialize;
use serde_json::json;

use super::errors::ApiError;
use super::params::Params;
use super::{Api, MAX_JOB_FILE};
use crate::dispatcher::SubmitError;

/// How errors name a job file that came by the network.
const POSTED: &str = "the posted job file";

#[derive(Debug, Deserialize)]
pub(crate) struct SubmitQuery {
    jobid: Option<String>,
    #[serde(rename = "savepointPath")]
    savepoint_path: Option<String>,
}

/// The client draws the id, so that a repeated request is no second job.
pub(crate) async fn submit(
    State(api): State<Api>,
    Params(query): Params<SubmitQuery>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = body.map_err(|rejected| too_large(&rejected))?;
    let id = query.jobid.ok_or_else(|| {
        ApiError::bad_request(vec!["the query names no `jobid`: draw 32 hexadecimal digits for it".into()])
    })?;
    let job: JobId = id.parse().map_err(|e| ApiError::bad_request(vec![format!("`jobid`: {e}")]))?;
    if query.savepoint_path.is_some() {
        let error =
            "`savepointPath` is not supported by this version: jobs start from the beginning of their input";
        return Err(ApiError::bad_request(vec![error.into()]));
    }
    let text = std::str::from_utf8(&body)
        .map_err(|e| ApiError::bad_request(vec![format!("{POSTED} is no UTF-8: {e}")]))?
        .to_owned();
    // Checking compiles expressions and looks at files: not on a thread that answers heartbeats.
    let known = api.dispatcher.view(job).is_some() || api.dispatcher.past_job(job).is_some();
    let checked = tokio::task::spawn_blocking(move || check(&text, known)).await;
    let (file, graph) = checked
        .map_err(|e| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("checking the job file failed: {e}"))
        })?
        .map_err(ApiError::bad_request)?;
    match api.dispatcher.submit(job, file, graph).await {
        Ok(()) => Ok((StatusCode::ACCEPTED, Json(json!({ "jobid": job.to_string() }))).into_response()),
        Err(error @ SubmitError::Duplicate(_)) => Err(ApiError::conflict(error.to_string())),
        Err(error @ (SubmitError::Starting | SubmitError::Stopping | SubmitError::Overloaded(_))) => {
            Err(ApiError::unavailable(error.to_string()))
        }
        Err(error @ (SubmitError::Start { .. } | SubmitError::Store { .. })) => {
            Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        }
    }
}

fn too_large(rejected: &BytesRejection) -> ApiError {
    if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let error = format!("{POSTED} is larger than {} MiB", MAX_JOB_FILE >> 20);
        return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error);
    }
    ApiError::new(rejected.status(), rejected.body_text())
}

/// Checks a job file whole, and the paths in it unless the job runs already (its outputs exist then).
fn check(text: &str, known: bool) -> Result<(Bytes, Arc<JobGraph>), Vec<String>> {
    let lines = |errors: job::file::JobFileErrors| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let file = JobFile::parse(text, POSTED).map_err(lines)?;
    file.require_absolute_paths().map_err(lines)?;
    let graph = job::plan::plan(&file).map_err(lines)?;
    if !known {
        let mistake =
            |f: &connectors::check::Finding| file.mistake_at(&f.key, f.problem.to_string()).to_string();
        connectors::check::check_job(&graph)
            .map_err(|findings| findings.iter().map(mistake).collect::<Vec<_>>())?;
    }
    Ok((Bytes::from(file.to_json()), Arc::new(graph)))
}
