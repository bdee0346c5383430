//! `/metrics` and `/healthz` over HTTP.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use runtime_core::shutdown::ShutdownSignal;
use tokio::net::TcpListener;

use super::encode::MetricSources;
use super::health::Health;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves until the process is asked to end.
///
/// # Errors
/// The listener's; none is expected while it is open.
pub async fn serve(
    listener: TcpListener,
    metrics: MetricSources,
    health: Health,
    mut until: ShutdownSignal,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(show_metrics))
        .with_state(metrics)
        .merge(Router::new().route("/healthz", get(show_health)).with_state(health));
    axum::serve(listener, router).with_graceful_shutdown(async move { until.wait().await }).await
}

async fn show_metrics(State(metrics): State<MetricSources>) -> Response {
    match metrics.encode() {
        Ok(page) => ([(header::CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

async fn show_health(State(health): State<Health>) -> Response {
    let report = health.report();
    let status = if report.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(report)).into_response()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use runtime_core::shutdown::Shutdown;

    use super::*;
    use crate::telemetry::{ProbeError, check};

    async fn probe(url: String) -> Result<(), ProbeError> {
        tokio::task::spawn_blocking(move || check(&url)).await.unwrap()
    }

    #[tokio::test]
    async fn healthz_follows_the_health_of_the_process_and_the_probe_tells_why() {
        let listener = crate::listen::tcp("metrics.bind", SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let (health, shutdown) = (Health::starting(), Shutdown::new());
        let served =
            tokio::spawn(serve(listener, MetricSources::default(), health.clone(), shutdown.signal()));

        let unwell = probe(format!("http://{address}")).await.unwrap_err();
        assert!(matches!(&unwell, ProbeError::Unwell { status: 503, .. }), "{unwell}");
        assert!(unwell.to_string().contains("not ready yet"), "{unwell}");
        health.started();
        probe(format!("http://{address}/healthz")).await.unwrap();
        probe(format!("{address}")).await.unwrap();
        let missing = probe(format!("http://{address}/nothing")).await.unwrap_err();
        assert!(matches!(missing, ProbeError::Unwell { status: 404, .. }));

        shutdown.trigger();
        served.await.unwrap().unwrap();
        let gone = probe(format!("http://{address}")).await.unwrap_err();
        assert!(matches!(gone, ProbeError::Unreachable { .. }), "{gone}");
    }
}
