//! What is shown of a job: a snapshot that the loop publishes and that REST, the command line and the result read.

use std::collections::BTreeMap;
use std::time::Duration;

use job::options::CheckpointOptions;
use runtime_core::{AllocationId, AttemptId, EpochMillis, JobId, ResourceId};
use serde::Serialize;
use wire::v1;

use super::Submission;
use crate::checkpoint::CheckpointStats;
use crate::counts::{Counts, add_records};
use crate::execution::Execution;
use crate::scheduler::Scheduler;
use crate::status::{ExecutionState, JobStatus};

/// How far apart snapshots are that show nothing but new figures.
pub(super) const PUBLISH_PAUSE: Duration = Duration::from_millis(250);

/// A job as it is shown.
#[derive(Debug, Clone)]
pub struct JobView {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// When it entered its states.
    pub timestamps: Vec<(JobStatus, EpochMillis)>,
    /// Its sums.
    pub counts: Counts,
    /// How often it was begun again.
    pub restarts: u64,
    /// Why it failed.
    pub failure: Option<String>,
    /// The last failures, newest first.
    pub failures: Vec<FailureView>,
    /// Its chains.
    pub vertices: Vec<VertexView>,
    /// The slots it holds, and whose they are.
    pub slots: BTreeMap<AllocationId, ResourceId>,
    /// Its checkpoints, if it takes any.
    pub checkpoints: Option<CheckpointStats>,
    /// When and where they are made.
    pub checkpoint_options: Option<CheckpointOptions>,
    /// The number of key groups.
    pub max_parallelism: u32,
    /// When this snapshot was made.
    pub at: EpochMillis,
}

/// A failure as it is shown.
#[derive(Debug, Clone)]
pub struct FailureView {
    /// One sentence naming task, place and cause.
    pub text: String,
    /// When.
    pub at: EpochMillis,
    /// The task.
    pub task: Option<String>,
    /// The task executor.
    pub task_executor: Option<String>,
}

/// A chain as it is shown.
#[derive(Debug, Clone)]
pub struct VertexView {
    /// Its id in texts.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How many subtasks it has.
    pub parallelism: u32,
    /// Its subtasks.
    pub subtasks: Vec<SubtaskView>,
}

/// A subtask as it is shown.
#[derive(Debug, Clone)]
pub struct SubtaskView {
    /// Its current attempt.
    pub attempt: AttemptId,
    /// How far that is.
    pub state: ExecutionState,
    /// Where it runs.
    pub task_executor: Option<String>,
    /// When it was deployed.
    pub started_at: Option<EpochMillis>,
    /// When it ended.
    pub ended_at: Option<EpochMillis>,
    /// What it has counted, with the records of the attempts before that it goes on from.
    pub figures: v1::Figures,
}

/// The result of a job, as `tidegate run --json` prints it and REST gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct JobResult {
    /// 32 hexadecimal digits.
    pub job_id: String,
    /// The job's name.
    pub name: String,
    /// Its state.
    pub state: String,
    /// Lines read, except empty ones.
    pub records_in: u64,
    /// Records in the sink.
    pub records_out: u64,
    /// Records that a filter kept back.
    pub filtered: u64,
    /// Records left out by a policy.
    pub dropped: u64,
    /// Records and lines that became dead letters.
    pub dead_letters: u64,
    /// Empty outcomes.
    pub empty: u64,
    /// Attempts begun.
    pub calls: u64,
    /// Attempts beyond the first of a record.
    pub retries: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
    /// How often the job was begun again.
    pub restarts: u64,
    /// Completed checkpoints.
    pub checkpoints: u64,
    /// From its submission to its end, or to now.
    pub duration_ms: u64,
    /// Why it failed: one sentence.
    pub failure: Option<String>,
}

impl JobResult {
    /// Whether the job has come to its good end.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == JobStatus::Finished.as_str()
    }
}

impl JobView {
    pub(crate) fn of(submission: &Submission, scheduler: &Scheduler, now: EpochMillis) -> Self {
        let vertices = scheduler.graph().vertices.iter().map(|vertex| VertexView {
            id: vertex.id.to_string(),
            name: vertex.name.clone(),
            parallelism: vertex.parallelism,
            subtasks: scheduler.executions().of_vertex(vertex.id).iter().map(SubtaskView::of).collect(),
        });
        let failures = scheduler.failures().map(|entry| FailureView {
            text: entry.text.clone(),
            at: entry.at,
            task: entry.task.clone(),
            task_executor: entry.task_executor.as_ref().map(ToString::to_string),
        });
        let mut failures: Vec<FailureView> = failures.collect();
        failures.reverse();
        Self {
            id: submission.job,
            name: submission.graph.name.clone(),
            status: scheduler.status(),
            timestamps: scheduler.timestamps().iter().collect(),
            counts: scheduler.counts(),
            restarts: scheduler.restarts(),
            failure: scheduler.failure().map(str::to_owned),
            failures,
            vertices: vertices.collect(),
            slots: scheduler
                .pool()
                .iter()
                .map(|slot| (slot.allocation, slot.task_executor.clone()))
                .collect(),
            checkpoints: scheduler.checkpoint_stats().cloned(),
            checkpoint_options: submission.graph.checkpoints.clone(),
            max_parallelism: submission.graph.max_parallelism,
            at: now,
        }
    }

    /// When the job was submitted.
    #[must_use]
    pub fn started_at(&self) -> EpochMillis {
        self.entered(JobStatus::Initializing).unwrap_or(self.at)
    }

    /// When it ended, if it has.
    #[must_use]
    pub fn ended_at(&self) -> Option<EpochMillis> {
        self.status.is_terminal().then(|| self.entered(self.status)).flatten()
    }

    fn entered(&self, status: JobStatus) -> Option<EpochMillis> {
        self.timestamps.iter().find(|(entered, _)| *entered == status).map(|(_, at)| *at)
    }

    /// Milliseconds from its submission to its end, or to `now`.
    #[must_use]
    pub fn duration_ms(&self, now: EpochMillis) -> u64 {
        let end = self.ended_at().unwrap_or(now);
        u64::try_from(end.0 - self.started_at().0).unwrap_or(0)
    }

    /// The job's result so far.
    #[must_use]
    pub fn result(&self, now: EpochMillis) -> JobResult {
        let counts = &self.counts;
        JobResult {
            job_id: self.id.to_string(),
            name: self.name.clone(),
            state: self.status.as_str().to_owned(),
            records_in: counts.records_in,
            records_out: counts.records_out,
            filtered: counts.filtered,
            dropped: counts.dropped,
            dead_letters: counts.dead_letters,
            empty: counts.empty,
            calls: counts.calls,
            retries: counts.retries,
            timeouts: counts.timeouts,
            restarts: self.restarts,
            checkpoints: self.checkpoints.as_ref().map_or(0, |checkpoints| checkpoints.completed),
            duration_ms: self.duration_ms(now),
            failure: self.failure.clone(),
        }
    }
}

impl SubtaskView {
    fn of(execution: &Execution) -> Self {
        let mut figures = execution.figures.clone();
        add_records(&mut figures, &execution.base);
        Self {
            attempt: execution.id,
            state: execution.state,
            task_executor: execution.location.as_ref().map(|l| l.task_executor.to_string()),
            started_at: execution.started_at,
            ended_at: execution.ended_at,
            figures,
        }
    }
}
