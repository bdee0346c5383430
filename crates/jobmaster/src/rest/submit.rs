//! A job comes in.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use checkpoint::Stores;
use connectors::check::{Finding, Problem};
use connectors::sink::SinkError;
use job::file::JobFile;
use job::graph::JobGraph;
use runtime_core::JobId;
use serde::Deserialize;
use serde_json::json;

use super::errors::ApiError;
use super::params::Params;
use super::{Api, MAX_JOB_FILE, savepoints};
use crate::dispatcher::SubmitError;
use crate::job_store::StoredSavepoint;

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
    let savepoint = query.savepoint_path.map(|place| savepoints::location(&place));
    let text = std::str::from_utf8(&body)
        .map_err(|e| ApiError::bad_request(vec![format!("{POSTED} is no UTF-8: {e}")]))?
        .to_owned();
    // Checking compiles expressions and looks at files: not on a thread that answers heartbeats.
    let known = api.dispatcher.view(job).is_some() || api.dispatcher.past_job(job).is_some();
    let stores = Arc::clone(&api.stores);
    let checked =
        tokio::task::spawn_blocking(move || check(&text, known, savepoint.as_deref(), &stores)).await;
    let (file, graph, savepoint) = checked
        .map_err(|e| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("checking the job file failed: {e}"))
        })?
        .map_err(ApiError::bad_request)?;
    match api.dispatcher.submit_from(job, file, graph, savepoint).await {
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

/// A job that may be taken.
type Checked = (Bytes, Arc<JobGraph>, Option<StoredSavepoint>);

/// Checks a job file whole, and the paths in it and the savepoint that it is to begin with, unless the job runs already
/// (its outputs exist then).
fn check(
    text: &str,
    known: bool,
    savepoint: Option<&str>,
    stores: &Arc<dyn Stores>,
) -> Result<Checked, Vec<String>> {
    let lines = |errors: job::file::JobFileErrors| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let file = JobFile::parse(text, POSTED).map_err(lines)?;
    file.require_absolute_paths().map_err(lines)?;
    let graph = job::plan::plan(&file).map_err(lines)?;
    if known {
        // Who it first was is known as well, and asked of nobody.
        let savepoint = savepoint.map(|url| StoredSavepoint { url: url.to_owned(), origin: String::new() });
        return Ok((Bytes::from(file.to_json()), Arc::new(graph), savepoint));
    }
    let (savepoint, continued) = match savepoint {
        Some(url) => {
            let (savepoint, continued) = crate::master::savepoints::check(stores, url, &graph)?;
            (Some(savepoint), continued)
        }
        None => (None, Vec::new()),
    };
    let mistake = |f: &Finding| file.mistake_at(&f.key, f.problem.to_string()).to_string();
    let findings = connectors::check::check_job(&graph).err().unwrap_or_default();
    let findings = findings.iter().filter(|finding| !is_continued(finding, &continued));
    let mistakes: Vec<String> = findings.map(mistake).collect();
    if mistakes.is_empty() {
        Ok((Bytes::from(file.to_json()), Arc::new(graph), savepoint))
    } else {
        Err(mistakes)
    }
}

/// Whether an output is in the way only because the job is to continue it.
fn is_continued(finding: &Finding, continued: &[PathBuf]) -> bool {
    match &finding.problem {
        Problem::Sink(SinkError::Exists { path }) => continued.contains(path),
        Problem::Sink(SinkError::PartsExist { part }) => continued
            .iter()
            .any(|folder| part.parent().is_some_and(|found| found == folder.components().as_path())),
        _ => false,
    }
}
