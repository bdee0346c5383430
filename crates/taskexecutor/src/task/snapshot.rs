//! What a task adds to a checkpoint.

use asyncio::Snapshot;
use connectors::sink::file::StagedFile;
use job::record::JsonRecord;
use runtime_core::AttemptId;
use wire::v1;

use super::savepoint::SavepointTarget;
use crate::chain::Progress;

/// A task's part of a checkpoint, or its last word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskSnapshot {
    /// What its steps hold; absent where that is nothing.
    pub state: Option<v1::StateHandle>,
    /// What its sink has staged and does not know to be visible, in order.
    pub staged: Vec<StagedFile>,
    /// Of a sink into a single file: the target's length once all of that is appended.
    pub committed_length: u64,
    /// Of a source.
    pub source: Option<Progress>,
    /// What it had counted.
    pub figures: v1::Figures,
}

/// A task's answer to a checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointAnswer {
    /// Whose.
    pub attempt: AttemptId,
    /// To which checkpoint.
    pub checkpoint: u64,
    /// Its part, or one sentence why it has none.
    pub outcome: Result<TaskSnapshot, String>,
}

/// What the steps of a chain held at a barrier: only those that held anything.
pub(crate) type Held = Vec<Snapshot<JsonRecord>>;

/// What came of a checkpoint on the task's thread; the state is not written yet.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) checkpoint: u64,
    pub(crate) outcome: Result<(Held, TaskSnapshot), String>,
    /// Of a savepoint.
    pub(crate) savepoint: Option<SavepointTarget>,
}

impl From<TaskSnapshot> for v1::TaskSnapshot {
    fn from(snapshot: TaskSnapshot) -> Self {
        Self {
            state: snapshot.state,
            staged: snapshot.staged.iter().map(staged_out).collect(),
            committed_length: snapshot.committed_length,
            source: snapshot.source.map(source_out),
            figures: Some(snapshot.figures),
        }
    }
}

fn source_out(progress: Progress) -> v1::SourceProgress {
    let reading = progress.reading.map(|(split, at)| v1::SplitPosition {
        split,
        position: Some(v1::ReadPosition { offset: at.offset, line: at.line }),
    });
    v1::SourceProgress { finished: progress.finished, reading }
}

/// Paths come from a job file, which is UTF-8.
fn staged_out(staged: &StagedFile) -> v1::StagedFile {
    v1::StagedFile {
        staged_path: staged.staged_path.to_string_lossy().into_owned(),
        final_path: staged.final_path.to_string_lossy().into_owned(),
        length: staged.length,
        offset: staged.offset,
    }
}
