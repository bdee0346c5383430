//! Jobs that have ended: kept on disk, so that a result can be asked for after a restart too.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use entrypoint::{StateDir, StateDirError};
use runtime_core::JobId;
use serde::{Deserialize, Serialize};

use crate::job_store::StoredFailure;
use crate::master::view::{JobResult, JobView};

/// The folder of the results, below the role's own.
const FOLDER: &str = "ended-jobs";

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastJob {
    /// Its result.
    pub result: JobResult,
    /// When it was submitted, in milliseconds since 1970.
    pub start_time: i64,
    /// When it ended.
    pub end_time: i64,
    /// How many subtasks it had.
    pub tasks: u64,
    /// Its last failures, newest first.
    #[serde(default)]
    pub failures: Vec<StoredFailure>,
    /// Its job file, to tell a repeated submission from another job of the same id.
    pub file: String,
    /// The savepoint that it began with, a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savepoint: Option<String>,
}

/// All of them. Without a folder they are kept in memory only.
pub(crate) struct History {
    folder: Option<Arc<StateDir>>,
    jobs: RwLock<BTreeMap<JobId, PastJob>>,
}

impl History {
    /// Reads what has been kept. A file that cannot be read is named in a log line and left alone.
    pub(crate) fn open(folder: Option<Arc<StateDir>>) -> Result<Self, StateDirError> {
        let mut jobs = BTreeMap::new();
        if let Some(dir) = &folder {
            for name in dir.names(FOLDER)? {
                let Some(id) = name.strip_suffix(".json").and_then(|id| id.parse::<JobId>().ok()) else {
                    continue;
                };
                let path = format!("{FOLDER}/{name}");
                match dir.read(&path)?.map(|content| serde_json::from_slice::<PastJob>(&content)) {
                    Some(Ok(job)) => drop(jobs.insert(id, job)),
                    Some(Err(error)) => {
                        tracing::error!(file = %path, %error, "the result of a job cannot be read and is left out");
                    }
                    None => {}
                }
            }
        }
        Ok(Self { folder, jobs: RwLock::new(jobs) })
    }

    /// Stores the result of a job that has ended. When this returns well, the job is known to be over after a restart too.
    pub(crate) fn add(
        &self,
        view: &JobView,
        file: &Bytes,
        savepoint: Option<String>,
    ) -> Result<(), StateDirError> {
        let past = PastJob {
            result: view.result(view.at),
            start_time: view.started_at().0,
            end_time: view.ended_at().unwrap_or(view.at).0,
            tasks: view.vertices.iter().map(|v| v.subtasks.len() as u64).sum(),
            failures: view.failures.iter().map(StoredFailure::from).collect(),
            file: String::from_utf8_lossy(file).into_owned(),
            savepoint,
        };
        let written = match (&self.folder, serde_json::to_vec(&past)) {
            (Some(dir), Ok(content)) => dir.write(&format!("{FOLDER}/{}.json", view.id), &content),
            _ => Ok(()),
        };
        self.jobs.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(view.id, past);
        written
    }

    /// Shows a job that cannot be taken up, in this life: the next one tries again.
    pub(crate) fn show(&self, job: JobId, past: PastJob) {
        self.jobs.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(job, past);
    }

    pub(crate) fn get(&self, job: JobId) -> Option<PastJob> {
        self.jobs.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&job).cloned()
    }

    /// Newest first.
    pub(crate) fn all(&self) -> Vec<PastJob> {
        let jobs = self.jobs.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut all: Vec<PastJob> = jobs.values().cloned().collect();
        all.sort_by_key(|job| std::cmp::Reverse(job.start_time));
        all
    }
}
