//! The REST interface (Flink: its REST API, as far as there is something behind it here).
//!
//! Every path exists as `/v1/...` and without. Errors are `{"errors":["..."]}` with the status codes of the original.

pub(crate) mod checkpoints;
mod cluster;
mod errors;
pub(crate) mod exceptions;
mod jobs;
mod operations;
mod params;
mod savepoints;
mod submit;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use checkpoint::Stores;
use runtime_core::time::TokioClock;

use crate::checkpoint::coordinator::Done;
use crate::dispatcher::Dispatcher;
use cluster::ClusterSource;
use errors::ApiError;

/// The largest job file that is taken.
pub(crate) const MAX_JOB_FILE: usize = 8 << 20;

/// What the handlers work with.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) cluster: Arc<ClusterSource>,
    pub(crate) clock: TokioClock,
    /// Where savepoints are looked for.
    pub(crate) stores: Arc<dyn Stores>,
    /// Where savepoints go that were asked for without a place.
    pub(crate) savepoints_dir: Option<String>,
    pub(crate) operations: operations::Shared<Done>,
}

/// The routes.
pub(crate) fn router(api: Api) -> Router {
    let routes = Router::new()
        .route("/overview", get(cluster::overview))
        .route("/config", get(cluster::config))
        .route("/taskmanagers", get(cluster::task_managers))
        .route("/taskmanagers/{id}", get(cluster::task_manager))
        .route("/jobs", get(jobs::list).post(submit::submit))
        .route("/jobs/overview", get(jobs::overview))
        .route("/jobs/{id}", get(jobs::detail).patch(jobs::cancel))
        .route("/jobs/{id}/status", get(jobs::status))
        .route("/jobs/{id}/exceptions", get(exceptions::exceptions))
        .route("/jobs/{id}/checkpoints", get(checkpoints::checkpoints).post(savepoints::trigger_checkpoint))
        .route("/jobs/{id}/checkpoints/{request}", get(savepoints::checkpoint_status))
        .route("/jobs/{id}/savepoints", post(savepoints::trigger_savepoint))
        .route("/jobs/{id}/savepoints/{request}", get(savepoints::savepoint_status))
        .route("/jobs/{id}/stop", post(savepoints::stop))
        .route("/savepoint-disposal", post(savepoints::dispose))
        .route("/savepoint-disposal/{request}", get(savepoints::disposal_status))
        .route("/jobs/{id}/checkpoints/config", get(checkpoints::config))
        .route("/jobs/{id}/execution-result", get(jobs::execution_result))
        .route("/jobs/{id}/rescaling", axum::routing::patch(jobs::rescaling));
    Router::new()
        .nest("/v1", routes.clone())
        .merge(routes)
        .fallback(|| async { ApiError::not_found("there is no such path") })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(axum::middleware::from_fn_with_state(api.clone(), not_before_the_start))
        .layer(DefaultBodyLimit::max(MAX_JOB_FILE))
        .with_state(api)
}

/// Until the jobs of before are taken up nothing is known of any job: "try again", never "there is no such job".
async fn not_before_the_start(State(api): State<Api>, request: Request, next: Next) -> Response {
    if api.dispatcher.started.is_over() {
        return next.run(request).await;
    }
    ApiError::unavailable("the job master is starting: it takes up the jobs of before").into_response()
}

pub(crate) use cluster::ClusterSource as Cluster;
