//! The documents of the REST interface, as far as the command line looks into them.

use serde::Deserialize;

pub use jobmaster::JobResult;

/// Whether an operation is over.
#[derive(Debug, Clone, Deserialize)]
pub struct OperationStatus {
    id: String,
}

impl OperationStatus {
    /// Whether it is.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.id == "COMPLETED"
    }
}

/// `/jobs/{id}/execution-result`.
#[derive(Debug, Clone, Deserialize)]
pub struct ExecutionResult {
    /// Whether the job is over.
    pub status: OperationStatus,
    /// Its result, once it is.
    #[serde(rename = "job-execution-result")]
    pub result: Option<JobResult>,
}

/// `/jobs/{id}/savepoints/{request}`.
#[derive(Debug, Clone, Deserialize)]
pub struct SavepointStatus {
    /// Whether it is over.
    pub status: OperationStatus,
    /// What it came to, once it is.
    pub operation: Option<SavepointOperation>,
}

/// What a savepoint came to: a place or a failure.
#[derive(Debug, Clone, Deserialize)]
pub struct SavepointOperation {
    /// Where it lies.
    pub location: Option<String>,
    /// Why there is none.
    #[serde(rename = "failure-cause")]
    pub failure_cause: Option<serde_json::Value>,
}

/// A job in `/jobs/overview`.
#[derive(Debug, Clone, Deserialize)]
pub struct JobOverview {
    /// 32 hexadecimal digits.
    pub jid: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// When it was submitted, in milliseconds since 1970.
    #[serde(rename = "start-time")]
    pub start_time: i64,
    /// Milliseconds from its submission to its end, or to now.
    pub duration: u64,
    /// Subtasks: `total`, and one key a state.
    pub tasks: std::collections::BTreeMap<String, u64>,
}

impl JobOverview {
    /// Whether it will not go on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "FINISHED" | "FAILED" | "CANCELED")
    }
}

/// `/jobs/{id}`.
#[derive(Debug, Clone, Deserialize)]
pub struct JobDetail {
    /// 32 hexadecimal digits.
    pub jid: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// When it was submitted, in milliseconds since 1970.
    #[serde(rename = "start-time")]
    pub start_time: i64,
    /// When it ended; -1 before.
    #[serde(rename = "end-time")]
    pub end_time: i64,
    /// Its result so far.
    pub result: JobResult,
    /// Its chains; none where the job ended before the job master was started.
    #[serde(default)]
    pub vertices: Vec<Vertex>,
    /// Its last failures, newest first.
    #[serde(default)]
    pub failures: Vec<JobFailure>,
    /// Its checkpoints.
    #[serde(default)]
    pub checkpoints: Checkpoints,
}

/// A failure of a job, whether it was begun again or not.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobFailure {
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// One sentence naming task, place and cause.
    pub stacktrace: String,
}

/// `/jobs/{id}/checkpoints`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Checkpoints {
    /// The last ones, newest first.
    #[serde(default)]
    pub history: Vec<Checkpoint>,
}

/// A checkpoint.
#[derive(Debug, Clone, Deserialize)]
pub struct Checkpoint {
    /// Its number.
    pub id: u64,
    /// How far it is: `IN_PROGRESS`, `COMPLETED` or `FAILED`.
    pub status: String,
    /// When it was begun, in milliseconds since 1970.
    pub trigger_timestamp: i64,
    /// Milliseconds from its beginning to its end, or to now.
    pub end_to_end_duration: u64,
    /// The bytes of the state in it.
    pub state_size: u64,
    /// How many subtasks take part.
    pub num_subtasks: u32,
    /// How many of them have acknowledged.
    pub num_acknowledged_subtasks: u32,
    /// Why it was given up, where it was.
    pub failure_message: Option<String>,
}

/// A chain.
#[derive(Debug, Clone, Deserialize)]
pub struct Vertex {
    /// Its operators.
    pub name: String,
    /// How many subtasks it has.
    pub parallelism: u32,
    /// Its state.
    pub status: String,
    /// What it has counted.
    pub metrics: Metrics,
    /// Its subtasks.
    #[serde(default)]
    pub subtasks: Vec<Subtask>,
}

/// What a chain has counted.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Metrics {
    /// Records that came in.
    pub read_records: u64,
    /// Records that went out.
    pub write_records: u64,
    /// Bytes that came in.
    pub read_bytes: u64,
    /// Bytes that went out.
    pub write_bytes: u64,
    /// Milliseconds of its subtasks' work.
    pub accumulated_busy_time: u64,
    /// Milliseconds in which its subtasks could not give away what they had.
    pub accumulated_backpressured_time: u64,
    /// Milliseconds in which its subtasks had nothing to do.
    pub accumulated_idle_time: u64,
}

/// A subtask of a chain.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Subtask {
    /// Counted from 0.
    pub subtask: u32,
    /// Its current attempt, counted from 0.
    pub attempt: u32,
    /// How far that is.
    pub status: String,
    /// The task executor that runs it.
    pub taskmanager_id: Option<String>,
    /// Its event time in milliseconds since 1970.
    pub watermark: Option<i64>,
    /// Its asynchronous steps.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// An asynchronous step of a subtask.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Records that are being asked about.
    pub in_flight: u64,
    /// How many may be in the operator.
    pub capacity: u64,
    /// Records that wait for others to leave before them.
    pub completed_waiting: u64,
    /// Attempts begun.
    pub calls: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
    /// Records that got no answer.
    pub failures: u64,
    /// Empty outcomes.
    pub empty: u64,
    /// Milliseconds since the oldest record in flight was first asked about.
    pub oldest_in_flight_ms: u64,
}

/// What `/taskmanagers` says beside the task executors.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workforce {
    /// How old all of it is, in milliseconds: the resource manager is away.
    pub resource_manager_age_ms: u64,
    /// Workers that are wanted and have not registered yet.
    #[serde(rename = "numPendingTaskManagers")]
    pub pending: u32,
    /// Why jobs lack slots and get none.
    pub worker_trouble: Option<String>,
}

/// A task executor in `/taskmanagers`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskExecutor {
    /// Its resource id.
    pub id: String,
    /// Where it is called.
    pub path: String,
    /// All of its slots.
    pub slots_number: u32,
    /// Those that nobody has.
    pub free_slots: u32,
    /// Milliseconds since its last heartbeat.
    pub heartbeat_age_ms: Option<u64>,
    /// What the resource manager thinks of it.
    pub liveness_state: Option<String>,
    /// Why, where it is not alive and well.
    #[serde(default)]
    pub liveness_reason: Option<String>,
    /// The Rust calls that it knows.
    #[serde(default)]
    pub calls: Vec<String>,
}
