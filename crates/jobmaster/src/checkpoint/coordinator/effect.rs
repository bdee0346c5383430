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
    },
    /// Write the metadata, then remember which can be restored; answer with `written`.
    Write {
        /// All of the checkpoint.
        metadata: Box<v1::CheckpointMetadata>,
        /// Those that can be restored from then on, oldest first.
        kept: Vec<CheckpointPointer>,
    },
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
