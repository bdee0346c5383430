//! Reading what an earlier life has left of a job.

use std::sync::Arc;

use entrypoint::{StateDir, StateDirError};
use runtime_core::{EpochMillis, JobId};
use serde::de::DeserializeOwned;
use wire::v1;

use super::folder::{
    CHECKPOINT_IDS, CHECKPOINTS, JobFolder, OUTPUT, PROGRESS, SPLITS, SUBMISSION, StoredOutput, StoredSplit,
};
use super::{Damage, JOBS, Progress, StoredFailure, StoredSubmission, container};
use crate::checkpoint::CheckpointPointer;
use crate::counts::Counts;
use crate::scheduler::{FailureEntry, Recovered};

/// All that is known of a job that is not over.
#[derive(Debug)]
pub struct Remembered {
    /// Where it goes on being remembered.
    pub folder: JobFolder,
    /// The job.
    pub submission: StoredSubmission,
    /// How far it had got.
    pub left: Left,
}

/// What an earlier life has left of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Left {
    /// When it was submitted, in milliseconds since 1970.
    pub submitted_at: i64,
    /// The parts of its input, if its outputs have been prepared.
    pub splits: Option<Vec<v1::FileSplit>>,
    /// No checkpoint beyond this number was begun.
    pub reserved: u64,
    /// The checkpoints that can be restored, oldest first.
    pub completed: Vec<CheckpointPointer>,
    /// The staged output, if all tasks of a job without checkpoints had finished.
    pub output: Option<StoredOutput>,
    /// What it had come to.
    pub progress: Progress,
}

impl From<Left> for Recovered {
    fn from(left: Left) -> Self {
        let Progress { restarts, checkpoints, calls, retries, timeouts, failures } = left.progress;
        Self {
            submitted_at: EpochMillis(left.submitted_at),
            splits: left.splits,
            reserved: left.reserved,
            completed: left.completed,
            output: left.output.map(|output| (output.staged(), output.counts)),
            restarts,
            checkpoints,
            counts: Counts { calls, retries, timeouts, ..Counts::default() },
            // Stored as they are shown, newest first.
            failures: failures.into_iter().rev().map(FailureEntry::from).collect(),
        }
    }
}

impl From<StoredFailure> for FailureEntry {
    fn from(stored: StoredFailure) -> Self {
        Self {
            text: stored.text,
            at: EpochMillis(stored.at),
            task: stored.task,
            task_executor: stored.task_executor.and_then(|id| id.parse().ok()),
        }
    }
}

/// A job that cannot be taken up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}. {WAY_OUT}, {folder}")]
pub struct Unrecoverable {
    /// What is wrong, with the file's path.
    pub cause: String,
    /// The job's folder.
    pub folder: String,
    /// The job as it was submitted, where that can be read.
    pub submission: Option<StoredSubmission>,
}

const WAY_OUT: &str = "The job is left as it is and does not run: with the job master stopped, restore the file from a copy, or give the job up by removing its folder";

pub(super) fn load(dir: &Arc<StateDir>, job: JobId) -> Result<Option<Remembered>, Unrecoverable> {
    let folder = JobFolder::new(Some(Arc::clone(dir)), job);
    let unrecoverable = |cause: String, submission: Option<StoredSubmission>| Unrecoverable {
        cause,
        folder: JobFolder::new(Some(Arc::clone(dir)), job).path(),
        submission,
    };
    let submission = match read::<StoredSubmission>(dir, job, SUBMISSION) {
        Ok(Some(submission)) => submission,
        Ok(None) if dir.names(&format!("{JOBS}/{job}")).is_ok_and(|names| names.is_empty()) => {
            tracing::info!(%job, "a submission that was never answered is removed");
            if let Err(error) = folder.remove() {
                tracing::warn!(%job, %error, "its folder stays");
            }
            return Ok(None);
        }
        Ok(None) => return Err(unrecoverable(of_file(dir, job, SUBMISSION, &Damage::Missing), None)),
        Err(cause) => return Err(unrecoverable(cause, None)),
    };
    match left(dir, job, &submission) {
        Ok(left) => Ok(Some(Remembered { folder, submission, left })),
        Err(cause) => Err(unrecoverable(cause, Some(submission))),
    }
}

fn left(dir: &StateDir, job: JobId, submission: &StoredSubmission) -> Result<Left, String> {
    let splits = read::<Vec<StoredSplit>>(dir, job, SPLITS)?;
    Ok(Left {
        submitted_at: submission.submitted_at,
        splits: splits.map(|splits| splits.into_iter().map(Into::into).collect()),
        reserved: read(dir, job, CHECKPOINT_IDS)?.unwrap_or(0),
        completed: read(dir, job, CHECKPOINTS)?.unwrap_or_default(),
        output: read(dir, job, OUTPUT)?,
        progress: read(dir, job, PROGRESS)?.unwrap_or_default(),
    })
}

fn read<T: DeserializeOwned>(dir: &StateDir, job: JobId, kind: &str) -> Result<Option<T>, String> {
    let bytes =
        dir.read(&format!("{JOBS}/{job}/{kind}")).map_err(|error: StateDirError| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    container::decode(kind, job, &bytes).map(Some).map_err(|damage| of_file(dir, job, kind, &damage))
}

fn of_file(dir: &StateDir, job: JobId, kind: &str, damage: &Damage) -> String {
    let path = dir.path().join(JOBS).join(job.to_string()).join(kind);
    format!("{} cannot be used: {damage}", path.display())
}
