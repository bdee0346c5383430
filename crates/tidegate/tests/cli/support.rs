//! The built program, and a job master that answers what a test has written down.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An id that the scripts know.
pub(crate) const JOB: &str = "3f1c8d0e9a7b46529d1e0c2b7a615f48";

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
}

/// Runs the program to its end.
pub(crate) fn tidegate(args: &[&str]) -> Ran {
    program().args(args).output().unwrap().into()
}

/// An address where connections are refused, for as long as the socket is kept.
pub(crate) fn nobody() -> (tokio::net::TcpSocket, String) {
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let url = format!("http://{}", bound.local_addr().unwrap());
    (bound, url)
}

/// A folder with a job file that has no mistakes, and its input.
pub(crate) fn job_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let text = "name: big-orders\nsource:\n  file: {path: orders.jsonl}\nsteps:\n  - filter: amount > 500\nsink:\n  file: {path: out/big.jsonl}\n";
    let file = write(folder.path(), "job.yaml", text);
    write(folder.path(), "orders.jsonl", "{\"amount\":501}\n");
    (folder, file)
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

type Answers = BTreeMap<String, VecDeque<(u16, Value)>>;

#[derive(Default)]
struct Script {
    answers: Mutex<Answers>,
    asked: Mutex<Vec<Asked>>,
}

/// A job master that gives, for each `METHOD /path`, the answers that were written down, the last one for ever.
pub(crate) struct ScriptedJobMaster {
    pub(crate) url: String,
    script: Arc<Script>,
    _runtime: tokio::runtime::Runtime,
}

impl ScriptedJobMaster {
    pub(crate) fn start(answers: &[(&str, u16, Value)]) -> Self {
        let script = Arc::new(Script::default());
        for (request, status, body) in answers {
            let mut all = script.answers.lock().unwrap();
            all.entry((*request).to_owned()).or_default().push_back((*status, body.clone()));
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, script, _runtime: runtime }
    }

    /// Runs a command against it.
    pub(crate) fn tidegate(&self, args: &[&str]) -> Ran {
        let mut all = vec!["--jobmaster", &self.url];
        all.extend(args);
        tidegate(&all)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.asked.lock().unwrap().clone()
    }

    /// How often a path was asked.
    pub(crate) fn count(&self, method: &str, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method == method && asked.path == path).count()
    }
}

async fn answer(State(script): State<Arc<Script>>, method: Method, uri: Uri, body: String) -> Response {
    let path = uri.path().to_owned();
    let query = uri.query().unwrap_or_default().to_owned();
    // The program draws the id of a submission; the script calls it JOB, or asks for any job by `*`.
    let wanted = [format!("{method} {path}"), format!("{method} {}", any_job(&path))];
    script.asked.lock().unwrap().push(Asked { method: method.to_string(), path, query, body });
    let mut answers = script.answers.lock().unwrap();
    for request in wanted {
        if let Some(left) = answers.get_mut(&request) {
            let next = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
            let (status, body) = next.unwrap();
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            return (StatusCode::from_u16(status).unwrap(), body).into_response();
        }
    }
    let body = json!({ "errors": ["there is no such path"] }).to_string();
    (StatusCode::NOT_FOUND, body).into_response()
}

fn any_job(path: &str) -> String {
    let is_id = |part: &str| part.len() == 32 && part.bytes().all(|b| b.is_ascii_hexdigit());
    path.split('/').map(|part| if is_id(part) { "*" } else { part }).collect::<Vec<_>>().join("/")
}

/// A result in some state.
pub(crate) fn result(state: &str, failure: Option<&str>) -> Value {
    json!({
        "job_id": JOB, "name": "big-orders", "state": state, "records_in": 336_776, "records_out": 336_000,
        "filtered": 776, "dropped": 0, "dead_letters": 0, "empty": 52_606, "calls": 334_264, "retries": 3,
        "timeouts": 0, "restarts": 1, "checkpoints": 0, "duration_ms": 4711, "failure": failure,
    })
}

pub(crate) fn running() -> Value {
    json!({ "status": { "id": "IN_PROGRESS" } })
}

pub(crate) fn ended(state: &str, failure: Option<&str>) -> Value {
    json!({ "status": { "id": "COMPLETED" }, "job-execution-result": result(state, failure) })
}

pub(crate) fn unknown_job() -> Value {
    json!({ "errors": [format!("there is no job {JOB}")] })
}

/// A job in detail, as a job master shows it.
pub(crate) fn detail(state: &str) -> Value {
    json!({
        "jid": JOB, "name": "big-orders", "isStoppable": false, "state": state, "job-type": "STREAMING",
        "start-time": 1_709_251_200_000_i64, "end-time": -1, "duration": 4711, "maxParallelism": 128,
        "now": 1_709_251_204_711_i64, "timestamps": {}, "status-counts": {}, "pending-operators": 0,
        "result": result(state, None), "vertices": [vertex()],
    })
}

fn vertex() -> Value {
    let step = json!({
        "name": "customer", "in-flight": 17, "capacity": 100, "completed-waiting": 4, "calls": 1250,
        "retries": 16, "timeouts": 1, "failures": 2, "empty": 9, "oldest-in-flight-ms": 35,
    });
    let metrics = json!({
        "read-bytes": 4096, "read-bytes-complete": true, "write-bytes": 2048, "write-bytes-complete": true,
        "read-records": 1234, "read-records-complete": true, "write-records": 1000,
        "write-records-complete": true, "accumulated-backpressured-time": 0, "accumulated-idle-time": 1,
        "accumulated-busy-time": 1500,
    });
    let subtask = json!({
        "subtask": 0, "attempt": 2, "status": "RUNNING", "taskmanager-id": "te-1", "start-time": 1,
        "end-time": -1, "watermark": 1_709_251_200_000_i64, "steps": [step],
    });
    json!({
        "id": "0", "name": "source: orders.jsonl -> customer -> sink", "parallelism": 1, "status": "RUNNING",
        "start-time": 1, "end-time": -1, "duration": 2, "tasks": {"RUNNING": 1}, "metrics": metrics,
        "subtasks": [subtask],
    })
}
