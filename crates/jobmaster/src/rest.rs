//! The REST interface (Flink: its REST API, as far as there is something behind it here).
//!
//! Every path exists as `/v1/...` and without. Errors are `{"errors":["..."]}` with the status codes of the original.

mod cluster;
mod errors;
mod jobs;
mod submit;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use runtime_core::time::TokioClock;

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
        .route("/jobs/{id}/exceptions", get(jobs::exceptions))
        .route("/jobs/{id}/execution-result", get(jobs::execution_result))
        .route("/jobs/{id}/rescaling", axum::routing::patch(jobs::rescaling));
    Router::new()
        .nest("/v1", routes.clone())
        .merge(routes)
        .fallback(|| async { ApiError::not_found("there is no such path") })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(MAX_JOB_FILE))
        .with_state(api)
}

pub(crate) use cluster::ClusterSource as Cluster;
