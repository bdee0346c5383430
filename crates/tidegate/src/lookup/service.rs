//! The service: one path a row.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use percent_encoding::percent_decode_str;
use runtime_core::metrics::Counter;
use serde_json::json;
use tokio::net::TcpListener;

use super::{Faults, LookupError, Rows};

/// Answers `GET /KEY` with the row of the key.
#[derive(Debug)]
pub struct LookupService {
    rows: Rows,
    delay: Duration,
    faults: Mutex<Faults>,
    served: Counter,
    injected: Counter,
}

/// What a service has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were answered, however.
    pub served: u64,
    /// Those of them that were answered by an injected 503.
    pub injected: u64,
}

impl LookupService {
    /// A service that answers each request after `delay`.
    #[must_use]
    pub fn new(rows: Rows, delay: Duration, faults: Faults) -> Self {
        Self {
            rows,
            delay,
            faults: Mutex::new(faults),
            served: Counter::default(),
            injected: Counter::default(),
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { served: self.served.get(), injected: self.injected.get() }
    }

    /// Serves until the listener fails or the future is dropped.
    ///
    /// # Errors
    ///
    /// [`LookupError::Ended`]
    pub async fn serve(self: Arc<Self>, listener: TcpListener, bound: SocketAddr) -> Result<(), LookupError> {
        // Answers are small and waited for: none is to be held back until there is more to send.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let router = Router::new().fallback(answer).with_state(self);
        axum::serve(listener, router).await.map_err(|cause| LookupError::Ended { bound, cause })
    }

    fn row(&self, uri: &Uri) -> Response {
        let path = uri.path();
        let encoded = path.strip_prefix('/').unwrap_or(path);
        let row = percent_decode_str(encoded).decode_utf8().ok().and_then(|key| self.rows.get(&key));
        match row {
            Some(row) => (StatusCode::OK, [(header::CONTENT_TYPE, JSON)], row.clone()).into_response(),
            None => said(StatusCode::NOT_FOUND, "there is no such row"),
        }
    }
}

const JSON: &str = "application/json";

async fn answer(State(service): State<Arc<LookupService>>, method: Method, uri: Uri) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return said(StatusCode::METHOD_NOT_ALLOWED, "rows can only be read: GET /KEY");
    }
    service.served.increment();
    // Drawn before the delay, in the order in which requests come.
    let fails = service.faults.lock().unwrap_or_else(PoisonError::into_inner).strikes();
    if !service.delay.is_zero() {
        tokio::time::sleep(service.delay).await;
    }
    if fails {
        service.injected.increment();
        return said(StatusCode::SERVICE_UNAVAILABLE, "an injected failure");
    }
    service.row(&uri)
}

fn said(status: StatusCode, error: &str) -> Response {
    let body = json!({ "error": error }).to_string();
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}
