//! Between the messages of the wire and what the job master works with, where `wire` does not know the latter.

use std::path::PathBuf;

use connectors::sink::file::StagedFile;
use connectors::source::file::FileSplit;
use wire::convert::attempt_id;
use wire::{RpcError, v1};

use crate::scheduler::TaskUpdate;
use crate::status::ExecutionState;

/// Stands in a message for "to the end of the file, wherever that is".
const TO_THE_END: u64 = u64::MAX;

pub(crate) fn update_in(update: v1::TaskStateUpdate) -> Result<TaskUpdate, RpcError> {
    let state = match update.state() {
        v1::TaskState::Initializing => ExecutionState::Initializing,
        v1::TaskState::Running => ExecutionState::Running,
        v1::TaskState::Finished => ExecutionState::Finished,
        v1::TaskState::Canceled => ExecutionState::Canceled,
        v1::TaskState::Failed => ExecutionState::Failed,
        v1::TaskState::Unspecified => return Err(RpcError::application("a task update without a state")),
    };
    Ok(TaskUpdate {
        attempt: attempt_id(update.attempt.as_ref(), "attempt")?,
        state,
        error: update.error,
        unrecoverable: update.unrecoverable,
        figures: update.figures,
        last: update.last.map(Box::new),
    })
}

pub(crate) fn split_out(split: &FileSplit) -> Result<v1::FileSplit, String> {
    let path = split.path.to_str().ok_or_else(|| format!("{} is no UTF-8 path", split.path.display()))?;
    Ok(v1::FileSplit {
        id: split.id,
        path: path.to_owned(),
        start: split.start,
        end: split.end.unwrap_or(TO_THE_END),
        gzip: split.gzip,
        resume: None,
        subtask: None,
    })
}

pub(crate) fn staged_in(staged: v1::StagedFile) -> StagedFile {
    StagedFile {
        staged_path: PathBuf::from(staged.staged_path),
        final_path: PathBuf::from(staged.final_path),
        length: staged.length,
        offset: staged.offset,
    }
}
