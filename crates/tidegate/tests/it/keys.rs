//! A look-up service within the test that fails now and then, and remembers the idempotency keys that it has seen.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use testkit::flights;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// One call in so many fails.
const FAILS: u64 = 100;

pub(crate) struct KeyedService {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Ends with the service.
    _runtime: Runtime,
}

struct Shared {
    rows: BTreeMap<String, Vec<u8>>,
    /// How often each was asked, by its idempotency key.
    asked: Mutex<BTreeMap<String, u64>>,
    calls: AtomicU64,
    delay: Duration,
}

impl KeyedService {
    pub(crate) fn start(delay: Duration) -> Self {
        let rows = flights::lines(&flights::planes()).unwrap().into_iter().map(|line| {
            let row: Value = serde_json::from_slice(&line).unwrap();
            (row["tailnum"].as_str().unwrap().to_owned(), line)
        });
        let (asked, calls) = (Mutex::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { rows: rows.collect(), asked, calls, delay });
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, shared, _runtime: runtime }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// How many keys were seen, and how many calls were made.
    pub(crate) fn seen(&self) -> (u64, u64) {
        let asked = self.shared.asked.lock().unwrap();
        (asked.len() as u64, asked.values().sum())
    }
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, uri: Uri) -> (StatusCode, Vec<u8>) {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned()).unwrap_or_default();
    *shared.asked.lock().unwrap().entry(key).or_default() += 1;
    tokio::time::sleep(shared.delay).await;
    if shared.calls.fetch_add(1, Ordering::Relaxed) % FAILS == FAILS - 1 {
        return (StatusCode::SERVICE_UNAVAILABLE, Vec::new());
    }
    match shared.rows.get(uri.path().trim_start_matches('/')) {
        Some(row) => (StatusCode::OK, row.clone()),
        None => (StatusCode::NOT_FOUND, Vec::new()),
    }
}
