//! The folder of one job, as its master writes it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use entrypoint::{StateDir, StateDirError};
use runtime_core::JobId;
use serde::{Deserialize, Serialize};
use wire::v1;

use super::{JOBS, Progress, container};
use crate::checkpoint::{CheckpointLog, CheckpointPointer, LogError};
use crate::counts::Counts;

pub(super) const SUBMISSION: &str = "submission";
pub(super) const SPLITS: &str = "splits";
pub(super) const CHECKPOINT_IDS: &str = "checkpoint-ids";
pub(super) const CHECKPOINTS: &str = "checkpoints";
pub(super) const OUTPUT: &str = "output";
pub(super) const PROGRESS: &str = "progress";

/// Whether and what is still to be written.
#[derive(Debug, Default)]
struct Writing {
    /// The folder was removed: whoever comes late writes nothing.
    gone: bool,
    /// The newest progress that is not written yet.
    progress: Option<Progress>,
}

/// The folder of a job that is not over. Its calls block for a few milliseconds (two syncs each).
#[derive(Debug)]
pub struct JobFolder {
    dir: Option<Arc<StateDir>>,
    job: JobId,
    writing: Mutex<Writing>,
}

impl JobFolder {
    pub(super) fn new(dir: Option<Arc<StateDir>>, job: JobId) -> Self {
        Self { dir, job, writing: Mutex::default() }
    }

    /// Remembers the parts of the input, once the outputs have been prepared: a later life does not prepare them again.
    ///
    /// # Errors
    /// The folder cannot be written; a later life prepares the outputs again.
    pub fn prepared(&self, splits: &[v1::FileSplit]) -> Result<(), StateDirError> {
        self.write(SPLITS, &splits.iter().map(StoredSplit::from).collect::<Vec<_>>())
    }

    /// Remembers the staged output of a job whose tasks have all finished, before any of it is made visible: a later life
    /// makes it visible again and runs nothing.
    ///
    /// # Errors
    /// The folder cannot be written; nothing may be made visible then.
    pub fn output(&self, staged: &[v1::StagedFile], counts: Counts) -> Result<(), StateDirError> {
        let staged = staged.iter().map(StoredFile::from).collect();
        self.write(OUTPUT, &StoredOutput { counts, staged })
    }

    /// Leaves a job's progress to be written by [`Self::write_progress`], in place of one that still waits.
    pub(super) fn leave_progress(&self, progress: Progress) {
        self.lock().progress = Some(progress);
    }

    /// Writes the progress that was left last, if it is not written yet. In whatever order these calls come, the newest
    /// progress is the one that stays.
    ///
    /// # Errors
    /// The folder cannot be written; the progress before is there still.
    pub fn write_progress(&self) -> Result<(), StateDirError> {
        let mut writing = self.lock();
        match writing.progress.take() {
            Some(progress) => self.write_locked(&writing, PROGRESS, &progress),
            None => Ok(()),
        }
    }

    /// Forgets the job. What comes later from its master is not written.
    ///
    /// # Errors
    /// The folder cannot be removed; the next start tries again.
    pub fn remove(&self) -> Result<(), StateDirError> {
        let mut writing = self.lock();
        writing.gone = true;
        match &self.dir {
            Some(dir) => dir.remove_folder(&format!("{JOBS}/{}", self.job)),
            None => Ok(()),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> String {
        let dir = self.dir.as_ref().map(|dir| dir.path().join(JOBS));
        dir.unwrap_or_default().join(self.job.to_string()).display().to_string()
    }

    pub(super) fn write<T: Serialize>(&self, kind: &str, content: &T) -> Result<(), StateDirError> {
        self.write_locked(&self.lock(), kind, content)
    }

    fn write_locked<T: Serialize>(
        &self,
        writing: &Writing,
        kind: &str,
        content: &T,
    ) -> Result<(), StateDirError> {
        let Some(dir) = self.dir.as_ref().filter(|_| !writing.gone) else { return Ok(()) };
        let name = format!("{JOBS}/{}/{kind}", self.job);
        let bytes = container::encode(kind, self.job, content).map_err(|error| {
            StateDirError::Unwritable { path: dir.path().join(&name), cause: error.into() }
        })?;
        dir.write(&name, &bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointLog for JobFolder {
    fn reserve(&self, up_to: u64) -> Result<(), LogError> {
        self.write(CHECKPOINT_IDS, &up_to).map_err(|error| LogError(error.to_string()))
    }

    fn completed(&self, pointers: &[CheckpointPointer]) -> Result<(), LogError> {
        self.write(CHECKPOINTS, &pointers).map_err(|error| LogError(error.to_string()))
    }
}

/// A part of the input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredSplit {
    id: u32,
    path: String,
    start: u64,
    end: u64,
    gzip: bool,
    /// Where the job begins to read it, if it began with a savepoint: offset and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resume: Option<(u64, u64)>,
    /// Which subtask is to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subtask: Option<u32>,
}

impl From<&v1::FileSplit> for StoredSplit {
    fn from(split: &v1::FileSplit) -> Self {
        Self {
            id: split.id,
            path: split.path.clone(),
            start: split.start,
            end: split.end,
            gzip: split.gzip,
            resume: split.resume.map(|at| (at.offset, at.line)),
            subtask: split.subtask,
        }
    }
}

impl From<StoredSplit> for v1::FileSplit {
    fn from(split: StoredSplit) -> Self {
        Self {
            id: split.id,
            path: split.path,
            start: split.start,
            end: split.end,
            gzip: split.gzip,
            resume: split.resume.map(|(offset, line)| v1::ReadPosition { offset, line }),
            subtask: split.subtask,
        }
    }
}

/// The whole output of a job, staged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredOutput {
    /// What the job had counted when its last task had finished.
    pub counts: Counts,
    staged: Vec<StoredFile>,
}

impl StoredOutput {
    /// The files, as tasks have reported them.
    #[must_use]
    pub fn staged(&self) -> Vec<v1::StagedFile> {
        self.staged.iter().map(Into::into).collect()
    }
}

/// A staged file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredFile {
    staged_path: String,
    final_path: String,
    length: u64,
    offset: Option<u64>,
}

impl From<&v1::StagedFile> for StoredFile {
    fn from(staged: &v1::StagedFile) -> Self {
        Self {
            staged_path: staged.staged_path.clone(),
            final_path: staged.final_path.clone(),
            length: staged.length,
            offset: staged.offset,
        }
    }
}

impl From<&StoredFile> for v1::StagedFile {
    fn from(stored: &StoredFile) -> Self {
        Self {
            staged_path: stored.staged_path.clone(),
            final_path: stored.final_path.clone(),
            length: stored.length,
            offset: stored.offset,
        }
    }
}
