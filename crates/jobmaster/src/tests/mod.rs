//! A job master within the test, over the in-memory network: without a resource manager its jobs wait for slots.

// Everything here is a test; the lints know only functions that are marked as one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod peers;
mod recovery;
mod rest;
mod task_executors;
mod terms;

use std::future::IntoFuture as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use entrypoint::config::Layers;
use entrypoint::{Config, Placement, Role, Server, StateDir};
use job::file::JobFile;
use job::graph::JobGraph;
use runtime_core::shutdown::Shutdown;
use runtime_core::time::TokioClock;
use runtime_core::{Clock as _, JobId};
use serde_json::Value;
use wire::network::{InMemoryNetwork, NetworkOptions};

use crate::{JobMaster, JobView};

const JOB: JobId = JobId::from_u128(0x0b);
const OTHER: JobId = JobId::from_u128(0x0c);

struct World {
    dir: tempfile::TempDir,
    network: InMemoryNetwork,
    lives: std::cell::Cell<u128>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("in.jsonl"), "{\"a\":1}\n").unwrap();
        Self { dir, network: InMemoryNetwork::new(NetworkOptions::calm(7)), lives: std::cell::Cell::new(0) }
    }

    /// A job master on the folder, which has taken up what was left there.
    async fn start(&self) -> JobMaster {
        let master = self.begin().await;
        master.taken_up().await;
        master
    }

    /// A job master that has just begun to take up what was left.
    async fn begin(&self) -> JobMaster {
        let set = [
            "resourcemanager.address=http://resourcemanager:6120",
            "heartbeat.interval=200ms",
            "heartbeat.timeout=30s",
        ];
        let set = set.map(str::to_owned).to_vec();
        let config =
            Config::load(Role::JobMaster, &Layers { file: None, environment: Vec::new(), set }).unwrap();
        let clock = TokioClock::start();
        let (server, _) = Server::embedded(config, clock.clone(), Shutdown::new().signal());
        let state = StateDir::open(self.dir.path(), Role::JobMaster).unwrap();
        let epoch = state.draw_epoch(clock.wall()).unwrap();
        self.lives.set(self.lives.get() + 1);
        let transport = Arc::new(self.network.node("jobmaster"));
        let state = Some((state, epoch));
        let stores = Arc::new(checkpoint::MemoryStores::new());
        JobMaster::start(&server, transport, Placement::Tasks, state, stores, self.lives.get()).await.unwrap()
    }

    fn job(&self, name: &str) -> (Bytes, Arc<JobGraph>) {
        self.job_with(name, "")
    }

    fn job_with(&self, name: &str, more: &str) -> (Bytes, Arc<JobGraph>) {
        let restart = if more.contains("restart:") { "" } else { "restart: none\n" };
        let text = format!(
            "name: {name}\n{more}{restart}source: {{file: {{path: in.jsonl}}}}\nsteps: [{{filter: 'a > 0'}}]\n\
             sink: {{file: {{path: out.jsonl, overwrite: true}}}}\n"
        );
        let mut file = JobFile::parse(&text, "job.yaml").unwrap();
        file.absolute_paths(self.dir.path());
        (Bytes::from(file.to_json()), Arc::new(job::plan::plan(&file).unwrap()))
    }

    fn folder(&self, job: JobId) -> PathBuf {
        self.dir.path().join("jobmaster/jobs").join(job.to_string())
    }
}

/// Waits for what follows by itself.
async fn until(master: &JobMaster, job: JobId, wanted: impl Fn(&JobView) -> bool) -> Arc<JobView> {
    for _ in 0..10_000 {
        if let Some(view) = master.dispatcher.view(job).filter(|view| wanted(view)) {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came: {:?}", master.dispatcher.view(job));
}

/// What REST answers.
async fn ask(master: &JobMaster, method: &'static str, path: &str) -> (u16, Value) {
    ask_router(master.rest(), method, path, "").await
}

async fn ask_with(master: &JobMaster, method: &'static str, path: &str, body: &str) -> (u16, Value) {
    ask_router(master.rest(), method, path, body).await
}

async fn ask_router(router: axum::Router, method: &'static str, path: &str, body: &str) -> (u16, Value) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = tokio::spawn(axum::serve(listener, router).into_future());
    let (path, body) = (path.to_owned(), body.to_owned());
    let asked = tokio::task::spawn_blocking(move || {
        testkit::http::request(&address, method, &path, "application/json", body.as_bytes()).unwrap()
    });
    let answer = asked.await.unwrap();
    served.abort();
    (answer.status, answer.json().unwrap())
}
