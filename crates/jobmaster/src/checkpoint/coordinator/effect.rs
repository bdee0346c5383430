//! What a coordinator wants done, and what it answers.

use runtime_core::{EpochMillis, Tick};
use wire::v1;

use super::AttemptsByPlace;
use crate::checkpoint::CheckpointPointer;

/// What is to be done for a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckpointEffect {
    /// Remember that ids up to this one may be used; answer with `reserved`.
    Reserve(u64),
    /// Tell these attempts that a checkpoint has begun; answer with `trigger_failed` where one cannot be told.
    Trigger {
        /// Its number.
        checkpoint: u64,
        /// When it was begun.
        begun_at: EpochMillis,
        /// Whom to tell.
        attempts: AttemptsByPlace,
        /// Of a savepoint: its folder, and whether tasks stand still behind it. First all are told of that.
        savepoint: Option<(String, bool)>,
    },
    /// Write the metadata, then remember which can be restored; answer with `written`.
    Write {
        /// All of the checkpoint.
        metadata: Box<v1::CheckpointMetadata>,
        /// Those that can be restored from then on, oldest first.
        kept: Vec<CheckpointPointer>,
    },
    /// Write a savepoint to its folder, with the output that is staged and not visible; answer with `written`.
    WriteSavepoint {
        /// All of it.
        metadata: Box<v1::CheckpointMetadata>,
        /// The folder.
        url: String,
    },
    /// The savepoint that ends the job is complete.
    Saved(Saved),
    /// Tell all sources to read no further.
    DrainSources,
    /// The savepoint that the job was drained for has failed: all of it begins again from its latest checkpoint.
    Undrain(String),
    /// What became of a request.
    Answer(u64, Result<Done, String>),
    /// Remove what was written of a savepoint that was given up.
    Discard(String),
    /// Make its output visible; answer with `committed`.
    Commit {
        /// Its number.
        checkpoint: u64,
        /// What is to become visible.
        staged: Vec<v1::StagedFile>,
    },
    /// Tell all tasks that it is complete and its output visible.
    Confirm(u64),
    /// Tell all tasks that it is given up.
    Abort {
        /// Its number.
        checkpoint: u64,
        /// The newest complete one; 0: there is none.
        latest_completed: u64,
    },
    /// Remove all that is stored of these.
    Remove(Vec<u64>),
    /// Remove one stored object that nobody waits for.
    RemoveObject(String),
    /// Look again at this moment.
    WakeAt(u64, Tick),
    /// Call `expire` for this checkpoint at this moment.
    ExpireAt(u64, Tick),
    /// Too much has failed: the job fails, and may restart.
    FailJob(String),
}

/// A checkpoint or savepoint that was asked for is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Its number.
    pub checkpoint: u64,
    /// Where it is, as a URL.
    pub location: String,
}

/// The savepoint that ends the job.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The number of the request.
    pub request: u64,
    /// The savepoint.
    pub done: Done,
    /// What is to become visible.
    pub staged: Vec<v1::StagedFile>,
    /// All of it.
    pub metadata: Box<v1::CheckpointMetadata>,
}

/// What an acknowledgement was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    /// The task's part of the checkpoint.
    Success,
    /// Known already.
    Duplicate,
    /// Of an attempt that does not take part; its state is removed.
    Unknown,
    /// Of a checkpoint that is no longer made; its state is removed.
    Late,
}

/// Why a checkpoint is not complete after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFailure {
    /// What could not be written, in one sentence.
    pub cause: String,
    /// Whether it may have been remembered nevertheless: then what is stored of it stays (FLINK-25486).
    pub may_be_there: bool,
}
