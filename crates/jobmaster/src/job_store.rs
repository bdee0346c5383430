//! What a job master process remembers of jobs that are not over.
//!
//! Each job has a folder `jobs/<job id>/` in the role's part of `state.dir`. A file there is replaced whole, so that a
//! crash at any byte leaves the old content or the new, and begins with a line that says what it is, so that a damaged
//! one is noticed (see `container`):
//!
//! | file | written | says |
//! |---|---|---|
//! | `submission` | before the submission is answered | the checked job file, when it came, the savepoint that it begins with |
//! | `splits` | when the outputs are prepared, before the first task is deployed | the parts of the input; `overwrite` has acted |
//! | `checkpoint-ids` | before a checkpoint of a number is begun | up to which number checkpoints may have been begun |
//! | `checkpoints` | when a checkpoint is complete | the checkpoints that can be restored |
//! | `output` | when all tasks have finished without checkpoints, or a savepoint that ends the job is complete | the staged output, which only has to become visible |
//! | `progress` | at a failure, else at most once a second | restarts, failures, counts of calls |
//!
//! A job that is over has no folder; its result is stored first (FLINK-21928).

mod container;
mod folder;
mod load;
mod progress;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use entrypoint::{StateDir, StateDirError};
use runtime_core::{EpochMillis, JobId};
use serde::{Deserialize, Serialize};

pub use container::Damage;
pub use folder::{JobFolder, StoredOutput};
pub use load::{Left, Remembered, Unrecoverable};
pub use progress::{Progress, ProgressRecorder, StoredFailure};

/// The folder of all jobs.
const JOBS: &str = "jobs";

/// A job as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSubmission {
    /// The checked job file as JSON.
    pub file: String,
    /// When it was taken, in milliseconds since 1970.
    pub submitted_at: i64,
    /// What the job's random numbers are drawn from.
    pub seed: u64,
    /// The savepoint that it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savepoint: Option<Box<StoredSavepoint>>,
}

/// The savepoint that a job begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSavepoint {
    /// Its folder, a URL.
    pub url: String,
    /// The job that first read the records.
    pub origin: String,
}

impl StoredSubmission {
    /// When it was taken.
    #[must_use]
    pub fn submitted_at(&self) -> EpochMillis {
        EpochMillis(self.submitted_at)
    }
}

/// The folders of the jobs that are not over. Without a folder of the role nothing is remembered.
#[derive(Debug, Clone)]
pub struct JobStore {
    dir: Option<Arc<StateDir>>,
}

impl JobStore {
    /// Jobs are remembered in this folder of the role, or not at all.
    #[must_use]
    pub fn new(dir: Option<Arc<StateDir>>) -> Self {
        Self { dir }
    }

    /// Remembers a job. When this returns, a job master that is started again takes it up.
    ///
    /// # Errors
    /// The folder cannot be written; nothing is remembered then.
    pub fn accept(&self, job: JobId, submission: &StoredSubmission) -> Result<JobFolder, StateDirError> {
        let folder = self.folder(job);
        folder.write(folder::SUBMISSION, submission)?;
        Ok(folder)
    }

    /// The folder of one job.
    #[must_use]
    pub fn folder(&self, job: JobId) -> JobFolder {
        JobFolder::new(self.dir.clone(), job)
    }

    /// The jobs that are remembered.
    ///
    /// # Errors
    /// The folders cannot be listed.
    pub fn jobs(&self) -> Result<Vec<JobId>, StateDirError> {
        let Some(dir) = &self.dir else { return Ok(Vec::new()) };
        let mut jobs = Vec::new();
        for name in dir.folders(JOBS)? {
            match name.parse() {
                Ok(job) => jobs.push(job),
                Err(_) => {
                    let folder = dir.path().join(JOBS).join(&name);
                    tracing::warn!(folder = %folder.display(), "no job has a folder of this name; it is left alone");
                }
            }
        }
        Ok(jobs)
    }

    /// All that is known of a job. `None`: its submission was cut off before it was answered; what there is of it is
    /// removed.
    ///
    /// # Errors
    /// What is there cannot be used.
    pub fn load(&self, job: JobId) -> Result<Option<Remembered>, Unrecoverable> {
        self.dir.as_ref().map_or(Ok(None), |dir| load::load(dir, job))
    }
}
