//! What a job has come to, beyond its checkpoints.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::Tick;
use serde::{Deserialize, Serialize};

use super::JobFolder;
use crate::master::view::{FailureView, JobView};

/// How often counts alone are stored: as often as task executors report them.
const PAUSE: Duration = Duration::from_secs(1);

/// What goes on over all lives of a job master.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How often the job was begun again.
    pub restarts: u64,
    /// Completed checkpoints.
    pub checkpoints: u64,
    /// Attempts begun.
    pub calls: u64,
    /// Attempts beyond a record's first.
    pub retries: u64,
    /// Records whose budget ran out.
    pub timeouts: u64,
    /// The last failures, newest first.
    pub failures: Vec<StoredFailure>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFailure {
    /// One sentence naming task, place and cause.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The task, where it was one.
    pub task: Option<String>,
    /// The task executor, where one is to be named.
    pub task_executor: Option<String>,
}

impl From<&FailureView> for StoredFailure {
    fn from(failure: &FailureView) -> Self {
        Self {
            text: failure.text.clone(),
            at: failure.at.0,
            task: failure.task.clone(),
            task_executor: failure.task_executor.clone(),
        }
    }
}

impl Progress {
    /// What a view of the job shows of it.
    #[must_use]
    pub fn of(view: &JobView) -> Self {
        let result = view.result(view.at);
        Self {
            restarts: result.restarts,
            checkpoints: result.checkpoints,
            calls: result.calls,
            retries: result.retries,
            timeouts: result.timeouts,
            failures: view.failures.iter().map(StoredFailure::from).collect(),
        }
    }

    /// Whether more than counts of calls differ.
    fn differs_in_more_than_calls(&self, other: &Self) -> bool {
        (self.restarts, self.checkpoints) != (other.restarts, other.checkpoints)
            || self.failures != other.failures
    }
}

/// Decides when a job's progress is stored: at once after a failure, a restart or a checkpoint, otherwise once a second
/// where calls were counted.
#[derive(Debug)]
pub struct ProgressRecorder {
    folder: Arc<JobFolder>,
    known: Progress,
    not_before: Tick,
}

impl ProgressRecorder {
    /// Nothing has changed since `known` was stored.
    #[must_use]
    pub fn new(folder: Arc<JobFolder>, known: Progress) -> Self {
        Self { folder, known, not_before: Tick::ZERO }
    }

    /// Takes note of a job's progress. Returns the folder whose [`JobFolder::write_progress`] is to be called now.
    pub fn note(&mut self, progress: Progress, now: Tick) -> Option<Arc<JobFolder>> {
        let due = progress.differs_in_more_than_calls(&self.known)
            || (progress != self.known && now >= self.not_before);
        if !due {
            return None;
        }
        self.known = progress.clone();
        self.not_before = now + PAUSE;
        self.folder.leave_progress(progress);
        Some(Arc::clone(&self.folder))
    }

    /// Stores a job's progress, due or not: this life ends. Blocks.
    pub fn suspend(&mut self, progress: Progress) {
        self.folder.leave_progress(progress);
        if let Err(error) = self.folder.write_progress() {
            tracing::warn!(%error, "the job's counts are not stored; those of the last second are lost");
        }
    }
}
